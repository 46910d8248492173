#!/usr/bin/env bash
# Stops the network and keeps its ledger; with --purge removes all that carries the network's label.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=network/lib/common.sh
. "$here/lib/common.sh"
# shellcheck source=network/lib/checks.sh
. "$here/lib/checks.sh"

case ${1-} in
  "") purge="" ;;
  --purge) purge=yes ;;
  -h | --help)
    echo "usage: network/down.sh [--purge]      --purge also removes the ledger, the identities and the registry's images"
    exit 0
    ;;
  *) die "$USAGE" "unknown flag '$1'" "down.sh takes --purge alone" "network/down.sh [--purge]" ;;
esac

require_engine
lock_network
label=label=attestree.network=$PROJECT
mapfile -t containers < <(docker ps -aq --filter "$label")
[ ${#containers[@]} -eq 0 ] || docker stop --time 10 "${containers[@]}" >/dev/null
[ ${#containers[@]} -eq 0 ] || docker rm --force --volumes "${containers[@]}" >/dev/null
mapfile -t networks < <(docker network ls -q --filter "$label")
[ ${#networks[@]} -eq 0 ] || docker network rm "${networks[@]}" >/dev/null
say "stopped ${#containers[@]} containers of '$PROJECT'"
[ -n "$purge" ] || exit 0

mapfile -t volumes < <(docker volume ls -q --filter "$label")
[ ${#volumes[@]} -eq 0 ] || docker volume rm "${volumes[@]}" >/dev/null
rm -rf "$STATE"
say "removed ${#volumes[@]} volumes and the identities of '$PROJECT'"
