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

label=label=attestree.network=$PROJECT

main() {
  local count
  require_engine
  lock_network
  count=$(listed ps --all | wc -l)
  # Until nothing is left: a container that its restart policy is just bringing back is not there to be stopped, and holds
  # the network a moment later.
  eventually 120 "the containers and the network of '$PROJECT' are removed" nothing_is_left
  say "stopped $count containers of '$PROJECT'"
  [ -n "$purge" ] || return 0
  count=$(listed volume ls | wc -l)
  eventually 60 "the volumes of '$PROJECT' are removed" no_volume_is_left
  rm -rf "$STATE"
  say "removed $count volumes and the identities of '$PROJECT'"
}

# listed DOCKER_ARGUMENT...: the ids of what carries this network's label.
listed() { docker "$@" --quiet --filter "$label"; }

# none_left DOCKER_ARGUMENT...: the engine answers, and nothing carries the label.
none_left() {
  local ids
  ids=$(listed "$@") && [ -z "$ids" ]
}

nothing_is_left() { no_container_is_left && no_network_is_left; }

no_container_is_left() {
  local containers grace=10
  none_left ps --all && return 0
  # What is purged has nothing to write down.
  [ -z "$purge" ] || grace=0
  mapfile -t containers < <(listed ps --all)
  docker update --restart no "${containers[@]}"
  docker stop --time "$grace" "${containers[@]}"
  docker rm --force --volumes "${containers[@]}"
  none_left ps --all
}

no_network_is_left() {
  local network name
  for network in $(listed network ls); do
    docker network rm "$network" && continue
    # Of a container that was removed while it started, the engine may keep the place in the network.
    for name in $(docker network inspect --format '{{range .Containers}}{{println .Name}}{{end}}' "$network"); do
      docker container inspect "$name" >/dev/null || docker network disconnect --force "$network" "$name"
    done
  done
  none_left network ls
}

no_volume_is_left() {
  local volumes
  none_left volume ls && return 0
  mapfile -t volumes < <(listed volume ls)
  docker volume rm "${volumes[@]}"
  none_left volume ls
}

main
