# shellcheck shell=bash
# The images the network runs: official ones where a container registry answers, built ones elsewhere.
# Either way the same compose file and the same Dockerfiles serve.

OFFICIAL_IMAGES=("$OFFICIAL_PEER" "$OFFICIAL_ORDERER" "$OFFICIAL_CA" "$OFFICIAL_REGISTRY" "$OFFICIAL_PYTHON")

image_exists() { docker image inspect "$1" >/dev/null 2>&1; }

# locked_digest IMAGE: the digest that the project has for an official image; nothing where it knows none.
locked_digest() { awk -v image="$1" '$1 == image { print $2; exit }' "$ROOT/network/official-images.lock"; }

# pinned IMAGE: its locked digest, else the one that this machine got the first time; nothing before that.
pinned() {
  local digest
  digest=$(locked_digest "$1")
  if [ -n "$digest" ]; then
    echo "$digest"
  elif [ -f "$CACHE/official-images" ]; then
    awk -v image="$1" '$1 == image { print $2; exit }' "$CACHE/official-images"
  fi
}

# by_pin IMAGE: how to pull it: by its digest, once that is known, so that nobody can serve another under the version.
by_pin() {
  local digest
  digest=$(pinned "$1")
  if [ -n "$digest" ]; then echo "${1%:*}@$digest"; else echo "$1"; fi
}

# official IMAGE: makes an official image available under its name, and always the same one.
official() {
  local image=$1 name digest
  name=$(by_pin "$image")
  image_exists "$name" || quietly "docker pull $name" docker pull "$name" || die "$FAILED" "no image $name" \
    "the container registry did not serve it" "check the connection, or use --images build"
  if [ "$name" != "$image" ]; then
    docker tag "$name" "$image"
    return 0
  fi
  digest=$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$image" | sed -n "s|^.*${image%:*}@||p" | head -n 1)
  [ -z "$digest" ] || echo "$image $digest" >>"$CACHE/official-images"
}

# choose_images auto|official|build: prints official or build. Automatically official only if every one can be had: a registry
# may answer and lack an image, or the digest that is locked.
choose_images() {
  local image name
  [ "$1" = auto ] || {
    echo "$1"
    return 0
  }
  for image in "${OFFICIAL_IMAGES[@]}"; do
    name=$(by_pin "$image")
    image_exists "$name" || timeout 300 docker pull --quiet "$name" >/dev/null 2>&1 || {
      say "images: no container registry serves $name, building from Go modules and Debian packages"
      echo build
      return 0
    }
  done
  say "images: a container registry answers, using the official images"
  echo official
}

# prepare_images official|build: makes every image available; prints which, NAME=IMAGE a line, as compose reads them.
prepare_images() {
  local peer orderer ca registry base image
  if [ "$1" = official ]; then
    peer=$OFFICIAL_PEER orderer=$OFFICIAL_ORDERER ca=$OFFICIAL_CA registry=$OFFICIAL_REGISTRY base=$OFFICIAL_PYTHON
    for image in "${OFFICIAL_IMAGES[@]}"; do official "$image"; done
  else
    peer=$(build_scratch_image peer)
    orderer=$(build_scratch_image orderer)
    ca=$(build_scratch_image ca)
    registry=$(build_scratch_image registry)
    base=$(build_python_base)
  fi
  printf '%s\n' "PEER_IMAGE=$peer" "ORDERER_IMAGE=$orderer" "CA_IMAGE=$ca" "REGISTRY_IMAGE=$registry"
  image=$(prepare_chaincode_image "$base")
  echo "CHAINCODE_IMAGE=$image"
}

prepare_chaincode_image() { # PYTHON_BASE; prints the image
  if [ -n "${ATTESTREE_CHAINCODE_IMAGE:-}" ]; then
    image_exists "$ATTESTREE_CHAINCODE_IMAGE" || die "$FAILED" "no image $ATTESTREE_CHAINCODE_IMAGE" \
      "ATTESTREE_CHAINCODE_IMAGE names it and the engine does not have it" "pull or build it, or unset the variable"
    echo "$ATTESTREE_CHAINCODE_IMAGE"
  else
    build_chaincode_image "$1"
  fi
}

# The images below hold static programs and nothing else: no shell, no package manager, nothing to patch.
build_scratch_image() { # peer|orderer|ca|registry; prints the image
  local part=$1 sources
  case $part in
    peer) sources=("$(tools fabric)"/{peer,config/core.yaml} "$(tools helpers)"/{detect,build,release}) ;;
    orderer) sources=("$(tools fabric)"/{orderer,config/orderer.yaml}) ;;
    ca) sources=("$(tools fabric-ca)"/fabric-ca-{server,client}) ;;
    registry) sources=("$(tools registry)/registry") ;;
  esac
  # The directories of the tools are named by their pins, so their names stand for their content.
  build_once "attestree/$part" "$(printf '%s\n' "${sources[@]#"$CACHE"}" | cat - "$ROOT/network/images/$part.Dockerfile" | key)" \
    "$ROOT/network/images/$part.Dockerfile" "${sources[@]}"
}

key() { sha256sum | cut -c1-16; }

# build_once NAME KEY DOCKERFILE SOURCE... [-- DOCKER BUILD ARGUMENT...]: the tag is the digest of all that goes in, so an
# image is built again only when something changed. Prints the image.
build_once() {
  local name=$1 image=$1:$2 dockerfile=$3 context
  shift 3
  echo "$image"
  image_exists "$image" && return 0
  alone_with "$name"
  image_exists "$image" && return 0
  say "$name: building the image"
  context=$(mktemp -d)
  cp "$dockerfile" "$context/Dockerfile"
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    cp -r "$1" "$context/"
    shift
  done
  [ $# -eq 0 ] || shift
  # The build needs no network: everything is in the context.
  quietly "docker build of $name" env DOCKER_BUILDKIT=0 docker build --network none --label "attestree.image=$name" "$@" \
    --tag "$image" "$context" || die "$FAILED" "$name did not build" "docker build said the above" "see the lines above"
  rm -rf "$context"
}

# build_python_base: Debian's own Python 3.11, installed by debootstrap. Prints the image.
build_python_base() {
  local image=attestree/python:3.11-$DEBIAN_SUITE archive=$CACHE/python-3.11-$DEBIAN_SUITE.tar.gz work
  echo "$image"
  image_exists "$image" && return 0
  alone_with "$image"
  image_exists "$image" && return 0
  if [ ! -f "$archive" ]; then
    say "python base: installing Debian $DEBIAN_SUITE with debootstrap (once, about a minute)"
    [ "$(id -u)" = 0 ] || die "$FAILED" "no Python base image" \
      "no container registry answers, and debootstrap needs root" "run as root once, or connect to a registry"
    command -v debootstrap >/dev/null || install_packages debootstrap "debootstrap, for the Python base image" "debootstrap and Debian's keys"
    work=$(mktemp -d "$CACHE/.debootstrap.XXXXXX")
    [ -f "$DEBIAN_KEYS" ] || install_packages debootstrap "Debian's keys, for the Python base image" "debian-archive-keyring"
    quietly debootstrap debootstrap --force-check-gpg --keyring="$DEBIAN_KEYS" --variant=minbase --include=python3,python3-venv,ca-certificates \
      "$DEBIAN_SUITE" "$work/root" ${ATTESTREE_DEBIAN_MIRROR:+"$ATTESTREE_DEBIAN_MIRROR"} ||
      die "$FAILED" "debootstrap failed" "it said the above" "check that Debian's mirror can be reached"
    # debootstrap cannot take /proc away again while a container that started meanwhile has it.
    umount --lazy "$work/root/proc" 2>/dev/null || true
    rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
    tar -C "$work/root" --one-file-system --numeric-owner -czf "$work/image.tar.gz" .
    mv "$work/image.tar.gz" "$archive"
    rm -rf --one-file-system "$work"
    compare_with_lock "$archive"
  fi
  quietly "docker import" docker import --change 'ENV LANG=C.UTF-8' "$archive" "$image"
}

# compare_with_lock ARCHIVE: says whether a base has the locked packages; with others, images get other ids than elsewhere.
compare_with_lock() {
  local lock found=$CACHE/debian.differences
  lock=$(debian_lock)
  [ -f "$lock" ] || return 0
  plain_python "$ROOT/network/lib/debian_lock.py" "$1" "$lock" >"$found" ||
    say "python base: other Debian packages than are locked, so images get other ids than elsewhere; $found lists them," \
      "and ATTESTREE_DEBIAN_MIRROR may name a mirror of the day that has the locked ones"
}

debian_lock() { echo "$ROOT/network/debian-$(uname -m).lock"; }

# base_lock IMAGE: which lock a base image is as in: prints its file, or nothing where it is as in none. What counts is what the
# engine has, not what it was made from; the answer is kept by image and lock.
base_lock() {
  local image=$1 lock digest id known
  digest=$(locked_digest "$image")
  id=$(image_id "$image")
  if [ -n "$digest" ] && [ "$id" = "$(image_id "${image%:*}@$digest")" ]; then
    echo official-images.lock
    return 0
  fi
  lock=$(debian_lock)
  [ -f "$lock" ] || return 0
  known=$CACHE/bases/$(echo "$id" | cat - "$lock" | key)
  [ -f "$known" ] || compare_image_with_lock "$image" "$lock" "$known"
  cat "$known"
}

image_id() { docker image inspect --format '{{.Id}}' "$1" 2>/dev/null || true; }

compare_image_with_lock() { # IMAGE LOCK ANSWER
  local work container
  say "python base: comparing its packages with $(basename "$2")"
  mkdir -p "$CACHE/bases"
  work=$(mktemp -d "$CACHE/bases/.comparing.XXXXXX")
  container=$(docker create --network none "$1" true)
  docker export --output "$work/root.tar" "$container"
  docker rm "$container" >/dev/null
  if plain_python "$ROOT/network/lib/debian_lock.py" "$work/root.tar" "$2" >"$work/differences"; then
    basename "$2" >"$work/answer"
  else
    mv "$work/differences" "$CACHE/debian.differences"
    : >"$work/answer"
  fi
  mv "$work/answer" "$3"
  rm -rf "$work"
}

# python_with_pip: the environment's own where there is one; the system's may come without pip.
python_with_pip() { if [ -x "$ROOT/.venv/bin/pip" ]; then echo "$ROOT/.venv/bin/python"; else echo python3; fi; }

# wheels PART: prints a directory with every locked wheel of requirements/PART.txt for the images' Python.
wheels() {
  local part=$1 target work machine
  machine=$(uname -m)
  target=$CACHE/wheels/$part-$machine-$(sha256sum "$ROOT/requirements/$part.txt" | cut -c1-16)
  if [ ! -d "$target" ]; then
    mkdir -p "$CACHE/wheels"
    work=$(mktemp -d "$CACHE/wheels/.loading.XXXXXX")
    say "$part: downloading locked wheels"
    quietly "pip download" "$(python_with_pip)" -m pip download --quiet --require-hashes --only-binary=:all: --no-deps \
      --implementation cp --python-version 3.11 --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" \
      --platform "manylinux2014_$machine" --dest "$work" -r "$ROOT/requirements/$part.txt" ||
      die "$FAILED" "wheels of $part" "pip said the above" "check that the Python package index can be reached"
    mv -T "$work" "$target" 2>/dev/null || rm -rf "$work"
  fi
  echo "$target"
}

# build_chaincode_image PYTHON_BASE: locked wheels and the two packages chaincode needs, in their one form. Prints the image.
build_chaincode_image() {
  local base=$1 image
  image=attestree/chaincode:$( (cd "$ROOT" && package_files protocol chaincode | sort -z |
    xargs -0 sha256sum chaincode/Dockerfile learner-image/rootfs.py executor/image/{archive,build,context}.py requirements/chaincode.txt
    image_id "$base") | key)
  echo "$image"
  image_exists "$image" && return 0
  alone_with attestree/chaincode
  image_exists "$image" && return 0
  say "attestree/chaincode: building the image"
  quietly "build of attestree/chaincode" "$ROOT/.venv/bin/executor" image build --chaincode --base "$base" --tag "$image" ||
    die "$FAILED" "attestree/chaincode did not build" "executor image build said the above" "see the lines above"
}

# package_files NAME...: the sources of Python packages, without bytecode, each ending in NUL.
package_files() { find "$@" -type f \( -name '*.py' -o -name py.typed \) -print0; }
