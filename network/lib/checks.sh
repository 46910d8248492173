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
  local org orderer port ports=() held
  for org in $(organisations); do ports+=("$(peer_port "$org")" "$(ca_port "$org")"); done
  for orderer in $(orderers); do ports+=("$(orderer_port "$orderer")" "$(orderer_admin_port "$orderer")"); done
  ports+=("$(registry_port)")
  held=$(docker ps --filter "label=attestree.network=$PROJECT" --format '{{.Ports}}')
  for port in "${ports[@]}"; do
    case $held in *"127.0.0.1:$port->"*) continue ;; esac
    plain_python - "$port" <<'EOF' || die "$FAILED" "port $port is taken" "$(port_holder "$port") listens on it" \
      "stop it, or choose other ports: ATTESTREE_PORTS=8 network/up.sh"
import socket, sys
with socket.socket() as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind(("127.0.0.1", int(sys.argv[1])))
    except OSError:
        sys.exit(1)
EOF
  done
}

port_holder() {
  local holder
  holder=$(ss -Hltnp "sport = :$1" 2>/dev/null | grep -o 'users:.*' | head -n 1) || true
  echo "${holder:-another process}"
}

# require_own_volumes: data of another network, or of another version of Fabric, is never started upon.
require_own_volumes() {
  local found volume id version
  found=$(docker volume ls -q --filter "label=attestree.network=$PROJECT")
  for volume in $found; do
    id=$(docker volume inspect -f '{{index .Labels "attestree.id"}}' "$volume")
    version=$(docker volume inspect -f '{{index .Labels "attestree.fabric"}}' "$volume")
    [ "$version" = "$FABRIC_VERSION" ] || die "$WRONG_STATE" "volume $volume holds data of Fabric $version" \
      "this network runs Fabric $FABRIC_VERSION" "keep that data with its own version, or remove it: network/down.sh --purge"
    [ "$id" = "$NETWORK_ID" ] || die "$WRONG_STATE" "volume $volume belongs to another network" \
      "its id is $id, and $STATE knows $NETWORK_ID" \
      "remove that network with network/up.sh --fresh, or choose another name: ATTESTREE_PROJECT=NAME"
  done
}
