#!/usr/bin/env bash
# Runs the peer CLI as one identity of one organisation: network/peer.sh ORG [IDENTITY] -- <peer arguments>
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for part in common tools identities channel; do
  # shellcheck source=/dev/null
  . "$here/lib/$part.sh"
done
remember_tools fabric helpers

usage() {
  cat <<EOF
usage: network/peer.sh ORG [IDENTITY] -- <peer arguments>

  network/peer.sh org2 auditor -- chaincode query -C $CHANNEL -n image -c '{"Args":["List"]}'
  network/peer.sh org1 admin -- channel getinfo -c $CHANNEL

IDENTITY is admin unless named. Where the arguments name no orderer, the first that answers is added; an invoke goes to
every organisation's peer and waits for its commit.
EOF
}

case ${1-} in -h | --help) usage && exit 0 ;; esac
org=${1-} identity=admin
[ $# -gt 0 ] && shift
if [ $# -gt 0 ] && [ "$1" != -- ]; then identity=$1 && shift; fi
if [ "${1-}" != -- ] || [ $# -lt 2 ]; then
  usage >&2
  die "$USAGE" "no peer arguments" "they come after --" "see the usage above"
fi
shift
load_network
require_organisation "$org"
require_name "$identity"
[ -d "$(org_dir "$org")/users/$identity/msp" ] || die "$USAGE" "unknown identity '$identity' of $org" \
  "$org has: $(find "$(org_dir "$org")/users" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | paste -sd ' ')" \
  "name one of them, or make it: network/enroll.sh $org $identity ROLE"

# orderer_unless_named PEER_ARGUMENT...: one flag or value a line.
orderer_unless_named() { [[ " $* " == *" -o "* || " $* " == *" --orderer "* ]] || orderer_flags; }

extra=()
case "$1 ${2-} ${3-}" in
  "chaincode invoke "* | "lifecycle chaincode approveformyorg" | "lifecycle chaincode commit" | \
    "channel fetch "* | "channel update "*)
    flags=$(orderer_unless_named "$@")
    [ -z "$flags" ] || mapfile -t extra <<<"$flags"
    ;;
esac
if [ "$1 ${2-}" = "chaincode invoke" ]; then
  [[ " $* " == *" --peerAddresses "* ]] || mapfile -t -O ${#extra[@]} extra < <(endorser_flags)
  extra+=(--waitForEvent)
fi
as "$org" "$identity" "$@" "${extra[@]}"
