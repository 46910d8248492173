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

# package_chaincodes ORG IMAGE_ID: the packages and the service's configuration, which names their ids. A service that has another
# one keeps it until renew_services: it serves what is committed.
package_chaincodes() {
  local org=$1 served_by=$2 dir config entry name ids packages=() entries=()
  local tls='{"key": "tls/server.key", "cert": "tls/server.crt", "client_ca": "tls/ca.crt"}'
  dir=$(org_dir "$org")
  config=$dir/chaincode/serve.json
  mkdir -p "$dir/packages"
  for entry in $(chaincode_ports); do
    name=${entry%%:*}
    packages+=(--label "${name}_$served_by" --address "chaincode.$org:${entry##*:}" --output "$dir/packages/$name.tar.gz")
  done
  ids=$(umask 077 && plain_python "$ROOT/network/lib/package.py" --root "$dir/tlsca.pem" --client "$dir/chaincode-client/tls" \
    "${packages[@]}")
  mapfile -t ids <<<"$ids"
  for entry in $(chaincode_ports); do
    name=${entry%%:*}
    echo "${ids[${#entries[@]}]}" >"$dir/packages/$name.id"
    entries+=("{\"name\": \"$name\", \"id\": \"${ids[${#entries[@]}]}\", \"listen\": \"0.0.0.0:${entry##*:}\", \"tls\": $tls}")
  done
  printf '{"log": "info", "chaincodes": [\n%s\n]}\n' "$(IFS=,; echo "${entries[*]}")" >"$config.new"
  if cmp -s "$config.new" "$config"; then
    rm -f "$config.new"
    return 0
  fi
  [ -f "$config" ] || take_configuration "$org"
}

# has_new_configuration ORG: whether its service runs with another configuration than it is to have, or would.
has_new_configuration() { [ -f "$(org_dir "$1")/chaincode/serve.json.new" ]; }

take_configuration() { # ORG
  local dir
  dir=$(org_dir "$1")/chaincode
  mv "$dir/serve.json.new" "$dir/serve.json"
  give "$dir"
}

# renew_services: starts those anew that have a new configuration, which they read at the start.
renew_services() {
  local org services=()
  for org in $(organisations); do ! has_new_configuration "$org" || services+=("chaincode.$org"); done
  [ "${#services[@]}" -gt 0 ] || return 0
  quietly "stop the chaincode services" compose rm --stop --force "${services[@]}"
  for org in "${services[@]#chaincode.}"; do take_configuration "$org"; done
  quietly "start the chaincode services" compose up -d "${services[@]}"
}

# install_chaincodes ORG: its packages, on its peer, where they are not there yet.
install_chaincodes() {
  local org=$1 name dir installed pids=() pid
  dir=$(org_dir "$org")
  installed=$(as "$org" admin lifecycle chaincode queryinstalled -O json 2>/dev/null) || installed=""
  for name in $(chaincodes); do
    grep -qF "\"$(cat "$dir/packages/$name.id")\"" <<<"$installed" && continue
    quietly "install $name on peer.$org" as "$org" admin lifecycle chaincode install "$dir/packages/$name.tar.gz" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || return 1; done
}

# found_in JSON NAME: the value of the first field of that name, without its quotation marks; nothing where there is none.
found_in() { [[ $1 =~ \"$2\":[[:space:]]*\"?([^\",[:space:]]*) ]] && echo "${BASH_REMATCH[1]}"; }

# committed NAME: "SEQUENCE VERSION" of the definition on the channel, or nothing.
committed() {
  local answer
  answer=$(as org1 admin lifecycle chaincode querycommitted -C "$CHANNEL" -n "$1" -O json 2>/dev/null) || return 0
  echo "$(found_in "$answer" sequence) $(found_in "$answer" version)"
}

# approved ORG NAME SEQUENCE: the id of the package that the organisation approved for it, or nothing.
approved() {
  local answer
  answer=$(as "$1" admin lifecycle chaincode queryapproved -C "$CHANNEL" -n "$2" --sequence "$3" -O json 2>/dev/null) || return 0
  found_in "$answer" package_id || true
}

# deploy NAME IMAGE_ID: brings the channel's definition to the image at hand; does nothing where it already is.
deploy() {
  local name=$1 version=$CHAINCODE_VERSION-$2 sequence=0 current="" known="" org pids=() pid flags answer
  read -r sequence current <<<"$(committed "$name")" || true
  sequence=${sequence:-0}
  if [ "$current" = "$version" ]; then known=committed; else sequence=$((sequence + 1)); fi
  answer=$(orderer_flags) || return 1
  mapfile -t flags <<<"$answer"
  mapfile -t -O "${#flags[@]}" flags < <(definition_flags "$name")
  for org in $(organisations); do
    approve "$org" "$name" "$version" "$sequence" "$known" "${flags[@]}" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || return 1; done
  [ -z "$known" ] || return 0
  say "  $name: committing sequence $sequence"
  local endorsers
  mapfile -t endorsers < <(endorser_flags)
  # A peer that has not seen the last approval yet answers otherwise than the rest, and the answers must agree.
  eventually 300 "the peers agree on the definition of $name" \
    commit_definition "$name" "$version" "$sequence" "${flags[@]}" "${endorsers[@]}"
}

# approve ORG NAME VERSION SEQUENCE COMMITTED FLAG...: succeeds if it is approved already; asks first where the definition is committed.
approve() {
  local org=$1 name=$2 version=$3 sequence=$4 known=$5 id answer
  shift 5
  id=$(cat "$(org_dir "$org")/packages/$name.id")
  [ -z "$known" ] || [ "$(approved "$org" "$name" "$sequence")" != "$id" ] || return 0
  answer=$(as "$org" admin lifecycle chaincode approveformyorg "$@" -C "$CHANNEL" -n "$name" --version "$version" \
    --sequence "$sequence" --package-id "$id" 2>&1) || [ "$(approved "$org" "$name" "$sequence")" = "$id" ] || {
    say "--- output of: approve $name by $org"
    say "$answer"
    return 1
  }
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
