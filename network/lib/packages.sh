# shellcheck shell=bash
# Which packages of this machine's distribution bring what is needed, and their installation. Known: Debian 12 and 13, Ubuntu 22.04
# and 24.04; a newer release is taken for the newest that is known.

# distribution: ID and VERSION_ID of this machine's os-release.
distribution() {
  sed -n 's/^ID=//p; s/^VERSION_ID=//p' "${ATTESTREE_OS_RELEASE:-/etc/os-release}" 2>/dev/null | tr -d '"' | sort -r | paste -sd ' '
}

# packages python|compiler|engine|compose|debootstrap: the packages, one line; nothing where the distribution has none.
packages() {
  local known
  known=$(distribution)
  case "$1 $known" in
    # Its python3 is 3.10; 3.11 is in universe.
    "python ubuntu 22.04") echo python3.11 python3.11-venv ;;
    "compiler ubuntu 22.04") echo gcc libc6-dev python3.11-dev ;;
    "python debian"* | "python ubuntu"*) echo python3 python3-venv ;;
    "compiler debian"* | "compiler ubuntu"*) echo gcc libc6-dev python3-dev ;;
    # Up to Debian 12, and on Ubuntu, the docker command is part of docker.io.
    "engine debian 12" | "engine ubuntu"*) echo docker.io iptables ;;
    "engine debian"*) echo docker.io docker-cli iptables ;;
    # Debian 12 has the first version of Compose alone, which does not serve.
    "compose debian 12") ;;
    "compose debian"*) echo docker-compose ;;
    "compose ubuntu"*) echo docker-compose-v2 ;;
    # Without Debian's keys, debootstrap would take packages that nobody signed.
    "debootstrap ubuntu"*) echo debootstrap debian-archive-keyring ;;
    "debootstrap debian"*) echo debootstrap ;;
  esac
}

# how_to_install WHAT PACKAGES: what to type, for whoever asks.
how_to_install() {
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo="sudo "
  if [ -n "$(packages "$1")" ]; then
    echo "${sudo}apt-get install $(packages "$1")"
  else
    echo "install $2 by your system's means"
  fi
}

# install_packages WHAT NAME ELSEWHERE: the packages of a part, as root; ELSEWHERE is what to look for on another distribution.
install_packages() (
  local found
  found=$(packages "$1")
  if [ -z "$found" ] || ! command -v apt-get >/dev/null; then
    die "$FAILED" "$2 is missing" "packages are known for Debian and Ubuntu, and this is '$(distribution)'" "install: $3"
  fi
  [ "$(id -u)" = 0 ] || die "$FAILED" "$2 is missing" "only root can install packages" "$(how_to_install "$1" "$3")"
  alone_with "Debian packages"
  say "$2: installing the packages $found"
  quietly "apt-get update" apt-get update
  # shellcheck disable=SC2086  # several words
  quietly "apt-get install $found" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $found ||
    die "$FAILED" "$2 was not installed" "apt-get said the above" "install by hand: $found"
)

readonly DEBIAN_KEYS=/usr/share/keyrings/debian-archive-keyring.gpg APT_HELPER=/usr/lib/apt/apt-helper

# own_apt FOLDER SUITE: a configuration of apt for packages that are unpacked and never installed; mirror and keys are Debian's.
own_apt() {
  { [ -f "$DEBIAN_KEYS" ] && command -v apt-get >/dev/null; } || die "$FAILED" "no packages of Debian $2" \
    "$DEBIAN_KEYS or apt-get is missing" "install debian-archive-keyring, or use a Debian host"
  local mirror
  mirror=$(debian_mirror)
  write_apt "$1" "$DEBIAN_KEYS" "$mirror $2 main"
}

# ubuntu_apt FOLDER SUITE: the same for Ubuntu's, from the mirror that is named; its keys are taken from there, by their hash.
ubuntu_apt() {
  local mirror=${ATTESTREE_UBUNTU_MIRROR:-}
  [ -n "$mirror" ] || die "$USAGE" "no packages of Ubuntu $2" "no mirror of Ubuntu is named" "set ATTESTREE_UBUNTU_MIRROR to the address of one"
  mkdir -p "$1"
  quietly "download of Ubuntu's keys" "$APT_HELPER" download-file "$mirror/$UBUNTU_KEYS" "$1/keys.deb" "SHA256:$UBUNTU_KEYS_SHA256" ||
    die "$FAILED" "no packages of Ubuntu $2" "its keys were not had from $mirror, or are others" \
      "set ATTESTREE_UBUNTU_MIRROR to a mirror that can be reached"
  dpkg-deb --extract "$1/keys.deb" "$1/keys"
  write_apt "$1" "$1/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$mirror $2 main universe" "$mirror $2-updates main universe"
}

write_apt() { # FOLDER KEYS SOURCE...
  local folder=$1 keys=$2
  shift 2
  mkdir -p "$folder"/{state/lists/partial,cache/archives/partial}
  : >"$folder/state/status"
  printf "deb [signed-by=$keys] %s\\n" "$@" >"$folder/sources.list"
  cat >"$folder/apt.conf" <<EOF
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$folder/state";
Dir::State::status "$folder/state/status";
Dir::Cache "$folder/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
EOF
}

# debian_mirror: ATTESTREE_DEBIAN_MIRROR, or the mirror from which the host's own apt has Debian's packages.
debian_mirror() {
  [ -z "${ATTESTREE_DEBIAN_MIRROR:-}" ] || { echo "$ATTESTREE_DEBIAN_MIRROR" && return 0; }
  # shellcheck disable=SC2016  # for apt to fill in
  apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' 2>/dev/null | head -n 1 | sed 's:/*$::' | grep . ||
    die "$FAILED" "no mirror of Debian is known" "this host's apt names none" "set ATTESTREE_DEBIAN_MIRROR to one"
}
