#!/usr/bin/env bash
# Deploys the probe's two counterparts, bench-go and bench-node, on a running network: as services with mutual TLS, like
# the network's own chaincodes. Prints the path of the load program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for part in common tools images identities channel chaincode; do
  # shellcheck source=/dev/null
  . "$here/../../network/lib/$part.sh"
done
readonly PORT=9000

main() {
  load_network
  local programs packages image base key
  programs=$(go_programs)
  packages=$(node_packages)
  image=$(build_once attestree/bench-go "$(key <"$programs/chaincode")" "$here/go.Dockerfile" "$programs/chaincode")
  serve_everywhere bench-go "$image"
  base=$(python_base)
  key=$( (cat "$here/node/"* "$here/node.Dockerfile" && node --version && echo "$base") | key)
  image=$(build_once attestree/bench-node "$key" "$here/node.Dockerfile" "$here/node/chaincode.js" "$packages/node_modules" \
    "$(node -p process.execPath)" -- --build-arg "BASE=$base")
  serve_everywhere bench-node "$image"
  echo "$programs/load"
}

# python_base: prints the Python image that the network itself uses.
python_base() { if [ "$(recorded IMAGES)" = build ]; then build_python_base; else echo "$OFFICIAL_PYTHON"; fi; }

# go_programs: prints the directory with chaincode and load, built once for their sources and pins.
go_programs() {
  local target work go
  target=$CACHE/tools/bench-go-$(find "$here/go" -type f -print0 | sort -z | xargs -0 cat | key)
  if [ ! -d "$target" ]; then
    go_program >/dev/null || install_go
    go=$(go_program)
    say "bench-go: building from Go modules"
    mkdir -p "$CACHE/tools"
    work=$(mktemp -d "$CACHE/tools/.building.XXXXXX")
    (cd "$here/go" && CGO_ENABLED=0 GOFLAGS=-mod=readonly quietly "go build of bench-go" \
      "$go" build -trimpath -ldflags "-s -w" -o "$work/" ./...) ||
      die "$FAILED" "bench-go did not build" "the Go compiler said the above" "check that the Go module proxy can be reached"
    mv -T "$work" "$target" 2>/dev/null || rm -rf "$work"
  fi
  echo "$target"
}

# node_packages: prints the directory with node_modules, installed once for the lock file.
node_packages() {
  local target work
  command -v npm >/dev/null || die "$FAILED" "there is no npm" \
    "the comparison with fabric-shim needs Node 18 or newer" "install Node"
  target=$CACHE/tools/bench-node-$(cat "$here"/node/package*.json | key)
  if [ ! -d "$target" ]; then
    say "bench-node: installing locked npm packages"
    mkdir -p "$CACHE/tools"
    work=$(mktemp -d "$CACHE/tools/.installing.XXXXXX")
    cp "$here"/node/package*.json "$here/node/.npmrc" "$work/"
    quietly "npm ci" npm ci --prefix "$work" --omit=dev --ignore-scripts --no-audit --no-fund ||
      die "$FAILED" "the npm packages were not installed" "npm said the above" "check that the npm registry can be reached"
    mv -T "$work" "$target" 2>/dev/null || rm -rf "$work"
  fi
  echo "$target"
}

serve_everywhere() { # NAME IMAGE
  local org
  for org in $(organisations); do serve "$1" "$2" "$org"; done
  # The definition's version names the image, as for the network's own chaincodes.
  deploy "$1" "$2"
  for org in $(organisations); do
    eventually 90 "$1 of $org answers its peer" \
      as "$org" admin chaincode query -C "$CHANNEL" -n "$1" -c '{"Args":["put","key","value"]}'
  done
}

# serve NAME IMAGE ORG: the package and the running service of one organisation, within the limits of the network's own.
serve() {
  local name=$1 image=$2 org=$3 dir id
  dir=$(org_dir "$org")
  issue_tls "$org" "$name" "$dir/$name" "$name.$org,localhost,127.0.0.1"
  give "$dir/$name"
  id=$(umask 077 && python3 "$ROOT/network/lib/package.py" --label "$name" --address "$name.$org:$PORT" --root "$dir/tlsca.pem" \
    --client "$dir/chaincode-client/tls" --output "$dir/packages/$name.tar.gz")
  echo "$id" >"$dir/packages/$name.id"
  docker rm --force "$PROJECT-$name.$org" >/dev/null 2>&1 || true
  quietly "start $name.$org" docker run --detach --name "$PROJECT-$name.$org" --hostname "$name.$org" \
    --network "${PROJECT}_default" --network-alias "$name.$org" --label "attestree.network=$PROJECT" \
    --user "$SERVICE_UID:$SERVICE_GID" --read-only --cap-drop ALL --security-opt no-new-privileges:true --memory 768m \
    --volume "$dir/$name/tls:/etc/attestree/tls:ro" "$image" "$id" "0.0.0.0:$PORT"
}

main "$@"
