# shellcheck shell=bash
# Chaincode as a service: one package per organisation (its own service, its own TLS material), installed and approved by
# each, committed by a majority. The id of the image that serves it is in the package's label, where the organisation's
# own peer reports it, and in the definition's version, where every organisation approves it.

# NAME:PORT, the port inside the organisation's chaincode container. The probe protects nothing: it is deployed where asked for.
CHAINCODES=(image:9002 orchestration:9003 execution-record:9004 model:9005)
readonly CHAINCODES CHAINCODE_VERSION=0.1.0
# For how many blocks a confidential process may have its trees kept, beside for good.
readonly CONFIDENTIAL_BLOCKS=${ATTESTREE_CONFIDENTIAL_BLOCKS-1000 100000}

chaincode_ports() {
  printf '%s\n' "${CHAINCODES[@]}"
  [ "$PROBE" != yes ] || echo probe:9001
}

chaincodes() { chaincode_ports | sed 's/:.*//'; }

image_id() { docker image inspect -f '{{.Id}}' "$1" | sed 's/^sha256://'; } # IMAGE

json() { plain_python -c "import json,sys; d=json.load(sys.stdin); print($1)"; }

# package_chaincodes ORG IMAGE: the packages and the service's configuration, which names their ids.
package_chaincodes() {
  local org=$1 dir entry name port id entries=() served_by
  local tls='{"key": "tls/server.key", "cert": "tls/server.crt", "client_ca": "tls/ca.crt"}'
  dir=$(org_dir "$org")
  served_by=$(image_id "$2")
  mkdir -p "$dir/packages"
  for entry in $(chaincode_ports); do
    name=${entry%%:*} port=${entry##*:}
    id=$(umask 077 && plain_python "$ROOT/network/lib/package.py" --label "${name}_$served_by" --address "chaincode.$org:$port" \
      --root "$dir/tlsca.pem" --client "$dir/chaincode-client/tls" --output "$dir/packages/$name.tar.gz")
    echo "$id" >"$dir/packages/$name.id"
    entries+=("{\"name\": \"$name\", \"id\": \"$id\", \"listen\": \"0.0.0.0:$port\", \"tls\": $tls}")
  done
  printf '{"log": "info", "chaincodes": [\n%s\n]}\n' "$(IFS=,; echo "${entries[*]}")" >"$dir/chaincode/serve.json.new"
  if ! cmp -s "$dir/chaincode/serve.json.new" "$dir/chaincode/serve.json"; then
    mv "$dir/chaincode/serve.json.new" "$dir/chaincode/serve.json"
    give "$dir/chaincode"
    compose rm --stop --force "chaincode.$org" >/dev/null 2>&1
  fi
  rm -f "$dir/chaincode/serve.json.new"
}

# committed NAME: "SEQUENCE VERSION" of the definition on the channel, or nothing.
committed() {
  as org1 admin lifecycle chaincode querycommitted -C "$CHANNEL" -n "$1" -O json 2>/dev/null |
    json 'd["sequence"], d["version"]' 2>/dev/null || true
}

# approved ORG NAME: "SEQUENCE PACKAGE_ID" of what the organisation approved last, or nothing.
approved() {
  as "$1" admin lifecycle chaincode queryapproved -C "$CHANNEL" -n "$2" -O json 2>/dev/null |
    json 'd["sequence"], d["source"]["Type"]["LocalPackage"]["package_id"]' 2>/dev/null || true
}

# deploy NAME IMAGE: brings the channel's definition to the image at hand; does nothing where it already is.
deploy() {
  local name=$1 version sequence=0 current="" org pids=() pid flags answer
  version=$CHAINCODE_VERSION-$(image_id "$2")
  read -r sequence current <<<"$(committed "$name")" || true
  sequence=${sequence:-0}
  [ "$current" = "$version" ] || sequence=$((sequence + 1))
  answer=$(orderer_flags) || return 1
  mapfile -t flags <<<"$answer"
  for org in $(organisations); do
    install_and_approve "$org" "$name" "$version" "$sequence" "${flags[@]}" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || return 1; done
  [ "$current" = "$version" ] && return 0
  say "  $name: committing sequence $sequence"
  local endorsers
  mapfile -t -O "${#flags[@]}" flags < <(definition_flags "$name")
  mapfile -t endorsers < <(endorser_flags)
  # A peer that has not seen the last approval yet answers otherwise than the rest, and the answers must agree.
  eventually 300 "the peers agree on the definition of $name" \
    commit_definition "$name" "$version" "$sequence" "${flags[@]}" "${endorsers[@]}"
}

# definition_flags NAME: what a definition says beside version and sequence; one flag or value a line.
definition_flags() {
  case $1 in
    image | orchestration | execution-record | model) printf '%s\n' --collections-config "$STATE/channel/collections.json" ;;
  esac
}

write_collections() {
  local org msps=()
  for org in $(organisations); do msps+=("$(msp_id "$org")"); done
  # shellcheck disable=SC2086  # the numbers are words of their own
  plain_python "$ROOT/network/lib/private_data.py" "${msps[@]}" --blocks $CONFIDENTIAL_BLOCKS >"$STATE/channel/collections.json"
}

commit_definition() { # NAME VERSION SEQUENCE FLAG...; done also when an earlier try was and nobody heard of it
  local name=$1 version=$2 sequence=$3
  shift 3
  as org1 admin lifecycle chaincode commit "$@" -C "$CHANNEL" -n "$name" --version "$version" --sequence "$sequence" ||
    [ "$(committed "$name")" = "$sequence $version" ]
}

install_and_approve() { # ORG NAME VERSION SEQUENCE ORDERER_FLAG...
  local org=$1 name=$2 version=$3 sequence=$4 id dir more
  shift 4
  dir=$(org_dir "$org")
  id=$(cat "$dir/packages/$name.id")
  [ "$(approved "$org" "$name")" = "$sequence $id" ] && return 0
  if ! grep -qF "\"$id\"" <<<"$(as "$org" admin lifecycle chaincode queryinstalled -O json 2>/dev/null)"; then
    quietly "install $name on peer.$org" as "$org" admin lifecycle chaincode install "$dir/packages/$name.tar.gz" || return 1
  fi
  mapfile -t more < <(definition_flags "$name")
  quietly "approve $name by $org" as "$org" admin lifecycle chaincode approveformyorg "$@" "${more[@]}" -C "$CHANNEL" -n "$name" \
    --version "$version" --sequence "$sequence" --package-id "$id"
}
