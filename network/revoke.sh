#!/usr/bin/env bash
# Revokes an identity: its CA puts it on the revocation list, and the channel's configuration carries the list. Each step
# can be repeated, so a run that was interrupted, or an identity that is revoked already, only needs the command again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for part in common tools identities channel; do
  # shellcheck source=/dev/null
  . "$here/lib/$part.sh"
done
remember_tools fabric fabric-ca helpers

main() {
  case ${1-} in -h | --help) echo "usage: network/revoke.sh ORG NAME" && exit 0 ;; esac
  [ $# -eq 2 ] || die "$USAGE" "$# arguments" "revoke.sh takes two" "network/revoke.sh ORG NAME"
  local org=$1 name=$2 work tries
  load_network
  require_revocable "$org" "$name"
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # the directory is known here and not when the script ends
  trap "rm -rf '$work'" EXIT
  revoke_at_ca "$org" "$name"
  say "the CA of $org has revoked $name"
  # Two changes of a channel's configuration at once exclude each other, and the later list must be the longer one.
  lock_network
  list_revoked "$org"
  publish_list "$org" "$work" 0
  # An orderer may lose an update that it has taken: with BFT one that was away keeps it for itself until it has caught up, and
  # gives it up after three minutes. So it is made anew and sent to another.
  for tries in 1 2; do
    (eventually 100 "the peers refuse $name" is_refused "$org" "$name") 2>/dev/null && break
    say "try $tries: the peers still take $name; the list is sent again"
    (publish_list "$org" "$work" "$tries") || say "the orderers did not take it; the first may be on its way"
  done
  eventually 300 "the peers refuse $name" is_refused "$org" "$name"
  say "revoked $name of $org"
}

require_revocable() { # ORG NAME
  local org=$1 name=$2 dir
  require_organisation "$org"
  require_name "$name"
  dir=$(org_dir "$org")
  [ "$name" != admin ] || die "$USAGE" "the administrator signs the revocation" \
    "without it the organisation could not change its own list" "make another administrator first"
  [ -d "$dir/users/$name/msp" ] || die "$USAGE" "unknown identity '$name' of $org" \
    "there is no $dir/users/$name/msp" "see network/peer.sh $org NAME"
}

registrar_of() { echo "$(org_dir "$1")/ca/registrar-ca"; } # ORG

revoke_at_ca() { # ORG NAME
  quietly "revoke $2" ca_client "$1" ca "$(registrar_of "$1")" revoke --url "https://127.0.0.1:$(ca_port "$1")" \
    --revoke.name "$2" ||
    die "$FAILED" "the CA did not revoke $2" "it said the above" "is the network up? network/up.sh"
}

# The list of all that the CA ever revoked and that has not expired: what `revoke --gencrl` answers is empty for an identity
# that was revoked before.
list_revoked() { # ORG
  quietly "list what the CA of $1 has revoked" ca_client "$1" ca "$(registrar_of "$1")" gencrl \
    --url "https://127.0.0.1:$(ca_port "$1")" ||
    die "$FAILED" "the CA of $1 made no revocation list" "it said the above" "run the command again"
}

publish_list() { # ORG DIRECTORY TURN
  local org=$1 work=$2 flags orderer version crl
  crl=$(registrar_of "$org")/msp/crls/crl.pem
  flags=$(orderer_flags "$3")
  mapfile -t orderer <<<"$flags"
  quietly "fetch the channel's configuration" as "$org" admin channel fetch config "$work/block" -c "$CHANNEL" "${orderer[@]}"
  fabric configtxlator proto_decode --type common.Block --input "$work/block" --output "$work/block.json"
  plain_python "$here/lib/crl.py" --msp "$(msp_id "$org")" <"$work/block.json" >"$work/old.json"
  plain_python "$here/lib/crl.py" --msp "$(msp_id "$org")" --crl "$crl" <"$work/block.json" >"$work/new.json"
  for version in old new; do
    fabric configtxlator proto_encode --type common.Config --input "$work/$version.json" --output "$work/$version"
  done
  fabric configtxlator compute_update --channel_id "$CHANNEL" --original "$work/old" --updated "$work/new" \
    --output "$work/update"
  fabric configtxlator proto_decode --type common.ConfigUpdate --input "$work/update" --output "$work/update.json"
  printf '{"payload": {"header": {"channel_header": {"channel_id": "%s", "type": 2}}, "data": {"config_update": %s}}}' \
    "$CHANNEL" "$(cat "$work/update.json")" >"$work/envelope.json"
  fabric configtxlator proto_encode --type common.Envelope --input "$work/envelope.json" --output "$work/envelope"
  quietly "update the channel's configuration" as "$org" admin channel update -f "$work/envelope" -c "$CHANNEL" \
    "${orderer[@]}" ||
    die "$FAILED" "the channel did not take the revocation list" "the orderer said the above" "run the command again"
}

is_refused() { # ORG NAME
  grep -q 'access denied' <<<"$(as "$1" "$2" chaincode query -C "$CHANNEL" -n image -c '{"Args":["metadata"]}' 2>&1 || true)"
}

main "$@"
