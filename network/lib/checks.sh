# shellcheck shell=bash
# Checks of what must hold before anything is started; each refusal says what is wrong, why, and what to do.

require_engine() {
  local answer
  answer=$(docker version --format '{{.Server.Version}}' 2>&1) && return 0
  case $answer in
    *"permission denied"*) die "$DOCKER_UNREACHABLE" "no permission on the Docker socket" "$answer" \
      "add yourself to the docker group (sudo usermod -aG docker \$USER, then log in again) or run as root" ;;
    *) die "$DOCKER_UNREACHABLE" "the Docker engine does not answer" "$answer" "run scripts/bootstrap, which starts it" ;;
  esac
}

require_disk() {
  local free
  free=$(df -Pm "$ROOT" | awk 'NR==2 {print $4}')
  [ "$free" -ge 3000 ] || die "$FAILED" "too little disk" "$free MB are free at $ROOT, the network needs 3000" "free some space"
}

# require_ports: every port that a service of this network publishes is free, or already held by that service.
require_ports() {
  local org orderer port ports=() asked=() held
  for org in $(organisations); do ports+=("$(peer_port "$org")" "$(ca_port "$org")"); done
  for orderer in $(orderers); do ports+=("$(orderer_port "$orderer")" "$(orderer_admin_port "$orderer")"); done
  ports+=("$(registry_port)")
  held=$(docker ps --filter "label=attestree.network=$PROJECT" --format '{{.Ports}}')
  for port in "${ports[@]}"; do
    case $held in *"127.0.0.1:$port->"*) ;; *) asked+=("$port") ;; esac
  done
  port=$(taken_port "${asked[@]}")
  [ -z "$port" ] || die "$FAILED" "port $port is taken" "$(port_holder "$port") listens on it" \
    "stop it, or choose other ports: ATTESTREE_PORTS=8 network/up.sh"
}

# taken_port PORT...: prints the first that somebody listens on; nothing where all are free.
taken_port() {
  plain_python - "$@" <<'EOF'
import socket, sys
for port in sys.argv[1:]:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(port)))
        except OSError:
            sys.exit(print(port))
EOF
}

port_holder() {
  local holder
  holder=$(ss -Hltnp "sport = :$1" 2>/dev/null | grep -o 'users:.*' | head -n 1) || true
  echo "${holder:-another process}"
}

# require_own_volumes: data of another network, or of another version of Fabric, is never started upon.
require_own_volumes() {
  local found volumes volume id version
  found=$(docker volume ls -q --filter "label=attestree.network=$PROJECT")
  [ -n "$found" ] || return 0
  mapfile -t volumes <<<"$found"
  found=$(docker volume inspect -f '{{.Name}}|{{index .Labels "attestree.fabric"}}|{{index .Labels "attestree.id"}}' "${volumes[@]}")
  while IFS='|' read -r volume version id; do
    [ "$version" = "$FABRIC_VERSION" ] || die "$WRONG_STATE" "volume $volume holds data of Fabric $version" \
      "this network runs Fabric $FABRIC_VERSION" "keep that data with its own version, or remove it: network/down.sh --purge"
    [ "$id" = "$NETWORK_ID" ] || die "$WRONG_STATE" "volume $volume belongs to another network" \
      "its id is $id, and $STATE knows $NETWORK_ID" \
      "remove that network with network/up.sh --fresh, or choose another name: ATTESTREE_PROJECT=NAME"
  done <<<"$found"
}
