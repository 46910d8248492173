#!/usr/bin/env bash
# Revokes an identity: its CA puts it on the revocation list, and the channel's configuration carries the list.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for part in common tools identities channel; do
  # shellcheck source=/dev/null
  . "$here/lib/$part.sh"
done

case ${1-} in -h | --help) echo "usage: network/revoke.sh ORG NAME" && exit 0 ;; esac
[ $# -eq 2 ] || die "$USAGE" "$# arguments" "revoke.sh takes two" "network/revoke.sh ORG NAME"
org=$1 name=$2
load_network
require_organisation "$org"
require_name "$name"
dir=$(org_dir "$org")
[ "$org" != orderer ] || die "$USAGE" "the orderer organisation has no users to revoke" \
  "its identities run the network" "name one of: $(organisations | paste -sd ' ')"
[ "$name" != admin ] || die "$USAGE" "the administrator signs the revocation" \
  "without it the organisation could not change its own list" "make another administrator first"
[ -d "$dir/users/$name/msp" ] || die "$USAGE" "unknown identity '$name' of $org" \
  "there is no $dir/users/$name/msp" "see network/peer.sh $org NAME"

registrar=$dir/ca/registrar-ca
quietly "revoke $name" ca_client "$org" ca "$registrar" revoke --url "https://127.0.0.1:$(ca_port "$org")" \
  --revoke.name "$name" --gencrl ||
  die "$FAILED" "the CA did not revoke $name" "it said the above" "is the network up? network/up.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=$(orderer_flags)
mapfile -t orderer <<<"$flags"
quietly "fetch the channel's configuration" as "$org" admin channel fetch config "$work/block" -c "$CHANNEL" "${orderer[@]}"
fabric configtxlator proto_decode --type common.Block --input "$work/block" --output "$work/block.json"
python3 "$here/lib/crl.py" --msp "$(msp_id "$org")" <"$work/block.json" >"$work/old.json"
python3 "$here/lib/crl.py" --msp "$(msp_id "$org")" --crl "$registrar/msp/crls/crl.pem" <"$work/block.json" >"$work/new.json"
for version in old new; do
  fabric configtxlator proto_encode --type common.Config --input "$work/$version.json" --output "$work/$version"
done
fabric configtxlator compute_update --channel_id "$CHANNEL" --original "$work/old" --updated "$work/new" --output "$work/update"
fabric configtxlator proto_decode --type common.ConfigUpdate --input "$work/update" --output "$work/update.json"
printf '{"payload": {"header": {"channel_header": {"channel_id": "%s", "type": 2}}, "data": {"config_update": %s}}}' \
  "$CHANNEL" "$(cat "$work/update.json")" >"$work/envelope.json"
fabric configtxlator proto_encode --type common.Envelope --input "$work/envelope.json" --output "$work/envelope"
quietly "update the channel's configuration" as "$org" admin channel update -f "$work/envelope" -c "$CHANNEL" "${orderer[@]}" ||
  die "$FAILED" "the channel did not take the revocation list" "the orderer said the above" "run the command again"

is_refused() { ! as "$1" "$2" channel getinfo -c "$CHANNEL" 2>/dev/null; } # ORG NAME
eventually 120 "the peers refuse $name" is_refused "$org" "$name"
say "revoked $name of $org"
