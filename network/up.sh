#!/usr/bin/env bash
# Makes the machine ready, then starts the Fabric network, or brings up one that was stopped or half started. A second run
# changes nothing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for part in common packages tools prerequisites checks images identities services consensus channel chaincode; do
  # shellcheck source=/dev/null
  . "$here/lib/$part.sh"
done
remember_tools fabric fabric-ca helpers registry

usage() {
  cat <<EOF
usage: network/up.sh [--orgs N] [--consensus raft|bft] [--orderers N] [--nodes N] [--images auto|official|build] [--probe]
                     [--fresh]

  --orgs N       organisations, 2 to 8 (default 4)
  --consensus C  how the orderers agree: raft, where each signs blocks alone, or bft, where a quorum must (default raft)
  --orderers N   orderers, dealt out to the organisations: with raft 1, 3 or 5 (default 3), with bft 4 or 7 (default 4)
  --nodes N      learning nodes, 1 to 200, dealt out to the organisations (default 20)
  --images MODE  official images, images built here, or whichever can be had (default auto)
  --probe        also deploy the probe contract, for tests and benchmarks; later starts keep it
  --fresh        remove the network of this name first, with its ledger

environment: ATTESTREE_PROJECT (name, default attestree), ATTESTREE_PORTS (port prefix, default 7), ATTESTREE_CACHE (builds),
ATTESTREE_CHAINCODE_IMAGE (a chaincode image at hand, instead of building one)
EOF
}

main() {
  local asked_orgs="" asked_consensus="" asked_orderers="" asked_nodes="" asked_images=auto asked_probe="" fresh="" known
  while [ $# -gt 0 ]; do
    case $1 in
      --orgs) asked_orgs=$(number "$1" "${2-}" 2 8) ;;
      --consensus)
        asked_consensus=${2-}
        [[ $asked_consensus =~ ^(raft|bft)$ ]] || die "$USAGE" "--consensus '$asked_consensus'" \
          "it is neither raft nor bft" "use one of them"
        ;;
      --orderers) asked_orderers=$(number "$1" "${2-}" 1 "$MOST_ORDERERS") ;;
      --nodes) asked_nodes=$(number "$1" "${2-}" 1 200) ;;
      --images)
        asked_images=${2-}
        [[ $asked_images =~ ^(auto|official|build)$ ]] || die "$USAGE" "--images '$asked_images'" \
          "it is none of auto, official, build" "use one of them"
        ;;
      --probe)
        asked_probe=yes
        shift
        continue
        ;;
      --fresh)
        fresh=yes
        shift
        continue
        ;;
      -h | --help)
        usage
        exit 0
        ;;
      *)
        usage >&2
        die "$USAGE" "unknown flag '$1'" "it is none of the above" "see the usage above"
        ;;
    esac
    shift 2
  done
  [[ $PORTS =~ ^[1-9][0-9]?$ && ${PORTS}999 -le 65535 ]] || die "$USAGE" "ATTESTREE_PORTS=$PORTS" \
    "it is the first one or two digits of the ports, 1 to 64" "for example 7 or 17"
  known=${asked_consensus:-$(recorded CONSENSUS)}
  [ -z "$asked_orderers" ] || require_orderers "${known:-raft}" "$asked_orderers"
  bring_up "$asked_orgs" "$asked_orderers" "$asked_nodes" "$asked_images" "$fresh" "$asked_probe" "$asked_consensus"
}

# bring_up ORGS ORDERERS NODES IMAGES FRESH PROBE CONSENSUS: what was not asked for is empty, IMAGES is auto.
bring_up() {
  local began=$SECONDS settings images served_by all
  # On a busy machine a connection takes longer than the three seconds that the peer CLI allows.
  export CORE_PEER_CLIENT_CONNTIMEOUT=30s
  step 1 "prerequisites"
  prepare_machine
  lock_network
  require_disk
  [ -z "$5" ] || "$here/down.sh" --purge
  settings=$(settle_network "$1" "$2" "$3" "$6" "$7")
  use_settings "$settings"
  warn_of_shares
  require_own_volumes
  require_ports
  step 2 "images"
  images=$(settle_images "$4")
  served_by=$(image_id "$(value_of CHAINCODE_IMAGE <<<"$images")")
  mapfile -t all < <(volumes)
  own_volumes "$(value_of PEER_IMAGE <<<"$images")" "${all[@]}"
  step 3 "certificate authorities"
  start_authorities
  step 4 "identities"
  for_each organisations issue_organisation
  step 5 "orderers, peers, chaincode services, registry"
  start_services "$served_by"
  step 6 "channel $CHANNEL"
  join_channel
  step 7 "chaincode"
  deploy_chaincodes "$served_by"
  say "up in $((SECONDS - began)) s: $ORGS organisations, $ORDERERS orderers ($CONSENSUS), $NODES learning nodes," \
    "registry at 127.0.0.1:$(registry_port)"
  say "try:"
  echo "network/peer.sh org1 auditor -- chaincode query -C $CHANNEL -n image -c '{\"Args\":[\"List\"]}'"
}

step() { say "[$1/7] $2"; }

number() { # FLAG VALUE LEAST MOST
  if ! [[ $2 =~ ^[0-9]{1,3}$ ]] || [ "$((10#$2))" -lt "$3" ] || [ "$((10#$2))" -gt "$4" ]; then
    die "$USAGE" "$1 '$2'" "it is not a number from $3 to $4" "give one"
  fi
  echo "$((10#$2))"
}

# settle_network ORGS ORDERERS NODES PROBE CONSENSUS, each empty where not asked for: takes the size of the network from its
# first start, and refuses to change what cannot be changed. Prints the settings, for use_settings.
settle_network() {
  local id uid gid how number
  if [ -f "$STATE/network.env" ]; then
    load_network
    set -- "${1:-$ORGS}" "${2:-$ORDERERS}" "${3:-$NODES}" "${4:-${PROBE-}}" "${5:-$CONSENSUS}"
    if [ "$1 $2 $5" != "$ORGS $ORDERERS $CONSENSUS" ] || [ "$3" -lt "$NODES" ]; then
      die "$WRONG_STATE" "this network has $ORGS organisations, $ORDERERS orderers ($CONSENSUS) and $NODES nodes" \
        "organisations, orderers and consensus are part of the channel; nodes can be added, not removed" \
        "leave the flags out, or start anew with --fresh"
    fi
  fi
  how=${5:-raft}
  number=${2:-$(default_orderers "$how")}
  require_orderers "$how" "$number"
  id=${NETWORK_ID:-$(head -c 8 /dev/urandom | od -An -tx1 | tr -d ' \n')}
  uid=$(id -u) gid=$(id -g)
  [ "$uid" != 0 ] || uid=10001 gid=10001
  printf '%s\n' "ORGS=${1:-4}" "ORDERERS=$number" "CONSENSUS=$how" "NODES=${3:-20}" "NETWORK_ID=$id" \
    "PORTS=$PORTS" "SERVICE_UID=$uid" "SERVICE_GID=$gid" "PROBE=${4:-no}"
}

# settle_images auto|official|build: makes every program and image available and writes the network's settings down. Prints
# the images, NAME=IMAGE a line.
settle_images() {
  local mode images part
  mode=$(recorded IMAGES)
  if [ -z "$mode" ] || [ "$1" != auto ]; then mode=$(choose_images "$1"); fi
  for part in helpers fabric fabric-ca; do tools "$part" >/dev/null; done
  images=$(prepare_images "$mode")
  mkdir -p "$STATE"
  write_network_settings "$mode" "$(value_of CHAINCODE_IMAGE <<<"$images")"
  write_compose_environment "$images"
  echo "$images"
}

# for_each LIST FUNCTION [ARGUMENT...]: calls FUNCTION ITEM ARGUMENT... for all items of the list at once. One after the other
# would leave a core idle while a CA signs.
for_each() {
  local item pids=() pid broken=""
  for item in $("$1"); do
    "$2" "$item" "${@:3}" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || broken=yes; done
  [ -z "$broken" ] || die "$FAILED" "$2 failed" "see the lines above" "run network/up.sh again: it goes on where it stopped"
}

wait_for() { # WHAT URL
  "$(tools_dir helpers)/healthy" -wait 300s "$2" || die "$TIMEOUT" "$1 does not answer" "nothing at $2 within 300 s" \
    "look at 'docker compose --env-file $STATE/compose.env logs $1'"
}

start_authorities() {
  local org services=()
  for org in $(organisations); do
    write_ca_config "$org"
    services+=("ca.$org")
  done
  quietly "start the certificate authorities" compose up -d "${services[@]}"
  for org in $(organisations); do wait_for "ca.$org" "https://127.0.0.1:$(ca_port "$org")/cainfo?ca=tlsca-$org"; done
}

# volumes: what holds the network's data; a directory within one is named after a slash.
volumes() {
  local org
  for org in $(organisations); do printf '%s\n' "ca.$org" "ca.$org/tlsca" "peer.$org"; done
  orderers
  echo registry
}

start_services() { # CHAINCODE_IMAGE_ID
  local org orderer services=(registry)
  for org in $(organisations); do
    write_peer_environment "$org"
    services+=("peer.$org")
  done
  for orderer in $(orderers); do
    write_orderer_environment "$orderer"
    services+=("$orderer")
  done
  # A copy, because the clone may be readable by its owner alone.
  install -m 0644 "$ROOT/network/registry/registry.yml" "$STATE/registry.yml"
  make_genesis_block
  for_each organisations package_chaincodes "$1"
  for org in $(organisations); do has_new_configuration "$org" || services+=("chaincode.$org"); done
  quietly "start orderers, peers, chaincode services and registry" compose up -d "${services[@]}"
  for orderer in $(orderers); do wait_for "$orderer" "tls://127.0.0.1:$(orderer_admin_port "$orderer")"; done
  for org in $(organisations); do wait_for "peer.$org" "tls://127.0.0.1:$(peer_port "$org")"; done
  wait_for registry "https://127.0.0.1:$(registry_port)/v2/"
}

join_channel() {
  for_each orderers join_orderer
  for_each organisations join_peer
  # Needs no orderer, and these may take seconds to choose a leader.
  for_each organisations install_chaincodes
  for_each orderers await_leader
}

await_leader() { # ORDERER
  eventually 300 "$1 knows a leader" takes_transactions "$1"
}

deploy_chaincodes() { # IMAGE_ID
  write_collections
  renew_services
  for_each chaincodes deploy "$1"
  for_each organisations await_chaincodes
}

await_chaincodes() { # ORG
  local name
  for name in $(chaincodes); do
    eventually 300 "$name of $1 answers its peer" \
      as "$1" admin chaincode query -C "$CHANNEL" -n "$name" -c '{"Args":["metadata"]}'
  done
}

main "$@"
