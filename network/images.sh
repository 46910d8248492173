#!/usr/bin/env bash
# Prints what the build of an image starts from, after making or fetching it: the Python base, or a directory of wheels.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for part in common packages tools images; do
  # shellcheck source=/dev/null
  . "$here/lib/$part.sh"
done

usage() {
  cat <<EOF
usage: network/images.sh python-base | base-lock IMAGE | wheels PART

  python-base      the image with Python 3.11 that the project's own images start from
  base-lock IMAGE  the lock that such an image is as in: official-images.lock, debian-MACHINE.lock, or nothing
  wheels PART      a directory with the wheels that requirements/PART.txt locks
EOF
}

main() {
  mkdir -p "$CACHE"
  case "$#:${1-}" in
    1:python-base) python_base ;;
    2:base-lock)
      image_exists "$2" || die "$USAGE" "no image $2" "the engine does not have it" "network/images.sh python-base makes it"
      base_lock "$2"
      ;;
    2:wheels)
      [[ $2 =~ ^[a-z]+$ && -f $ROOT/requirements/$2.txt ]] || die "$USAGE" "unknown part '$2'" \
        "there is no requirements/$2.txt" "name one of: $(cd "$ROOT/requirements" && echo *.txt)"
      wheels "$2"
      ;;
    1:-h | 1:--help) usage ;;
    *)
      usage >&2
      die "$USAGE" "wrong arguments" "they are none of the above" "see the usage above"
      ;;
  esac
}

# python_base: what the network of this name was built from, or what can be had. Prints the image.
python_base() {
  local mode image=$OFFICIAL_PYTHON
  mode=$(recorded IMAGES)
  if [ "$(choose_images "${mode:-auto}")" = build ]; then
    build_python_base
  else
    official "$image"
    echo "$image"
  fi
}

main "$@"
