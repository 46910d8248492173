# shellcheck shell=bash
# shellcheck disable=SC2034  # what is set here is used by the scripts that read this file
# Paths, settings, messages and waiting, for every script of the network. Source it; it starts nothing. It uses nothing of
# scripts/, which in turn use it.
#
# Functions take arguments and print results. The scripts share constants alone: the paths and names below, and the
# settings of one network, which use_settings makes read-only and which nothing else sets:
#   ORGS ORDERERS NODES      how many organisations, orderers and learning nodes
#   CONSENSUS                raft or bft: how the orderers agree on blocks
#   NETWORK_ID               tells this network's volumes from those of an earlier one of the same name
#   PORTS                    the first digits of every published port; what the environment says, until settings are used
#   SERVICE_UID SERVICE_GID  whom the services run as
#   PROBE                    yes where the probe contract is deployed, which is for tests and benchmarks

# A command that fails within $(...) ends it there too.
shopt -s inherit_errexit

# The same from a terminal, from cron and from a service: programs of root's paths, a home, an order of sorting on which
# digests depend, and files that the services' user can read. Whatever is secret is written under a mask of its own.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin
[ -n "${HOME-}" ] || HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
export PATH HOME LC_ALL=C.UTF-8
unset LANGUAGE
umask 022

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=network/versions.env
. "$ROOT/network/versions.env"

# A second network on one host takes another project name and another port prefix.
PROJECT=${ATTESTREE_PROJECT:-attestree}
PORTS=${ATTESTREE_PORTS:-7}
STATE=${ATTESTREE_STATE:-$ROOT/network/state/$PROJECT}
CACHE=${ATTESTREE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/attestree}
CHANNEL=attestree
# The most orderers that docker-compose.yml has.
MOST_ORDERERS=7
readonly ROOT PROJECT STATE CACHE CHANNEL MOST_ORDERERS

# Exit codes, the same numbers as the executor's: docs/exit-codes.md.
readonly FAILED=1 USAGE=2 TIMEOUT=3 WRONG_STATE=13 DOCKER_UNREACHABLE=30

# plain_python ARGUMENT...: Python with its standard library alone. The environment's own, where there is one: the python3 that
# PATH finds may be a version manager's script, which takes ten times as long to start.
plain_python() {
  local python=$ROOT/.venv/bin/python
  [ -x "$python" ] || python=python3
  "$python" -S "$@"
}

say() { printf '%s\n' "$*" >&2; }

# die CODE WHAT WHY REMEDY
die() {
  say "error: $2"
  say "  cause:  $3"
  say "  remedy: $4"
  exit "$1"
}

# quietly LABEL COMMAND...: output to the log, shown only if the command fails.
quietly() {
  local label=$1 log
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    rm -f "$log"
    return 0
  fi
  say "--- output of: $label"
  tail -n 40 "$log" >&2
  rm -f "$log"
  return 1
}

# eventually SECONDS WHAT COMMAND...: repeats a check until it holds, or dies naming what did not happen.
eventually() {
  local seconds=$1 what=$2 end
  shift 2
  end=$((SECONDS + seconds))
  until "$@" >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$end" ]; then
      say "--- the last answer:"
      "$@" >&2 || true
      die "$TIMEOUT" "$what: not within ${seconds} s" "the check above never passed" \
        "look at 'docker compose --env-file $STATE/compose.env logs', then run the command again"
    fi
    read -rt 0.2 <> <(:) || true
  done
}

# One list drives everything: configtx, the certificate authorities, compose profiles and the chaincode packages.
organisations() { local i; for ((i = 1; i <= ORGS; i++)); do echo "org$i"; done; }
orderers() { local i; for ((i = 1; i <= ORDERERS; i++)); do echo "orderer$i"; done; }
msp_id() { echo "Org${1#org}MSP"; }

# owner_of ORDERER, orderers_of ORG: the orderers are dealt out to the organisations, one after the other.
owner_of() { echo "org$(((${1#orderer} - 1) % ORGS + 1))"; }
orderers_of() { local i; for ((i = ${1#org}; i <= ORDERERS; i += ORGS)); do echo "orderer$i"; done; }
# The organisations that have an orderer.
ordering_organisations() { local i; for ((i = 1; i <= ORGS && i <= ORDERERS; i++)); do echo "org$i"; done; }

# nodes_of ORG: the learning nodes are dealt out in blocks, node01…node05 to org1 and so on.
nodes_of() {
  local i
  for ((i = 1; i <= NODES; i++)); do
    [ "org$(((i - 1) * ORGS / NODES + 1))" = "$1" ] && printf 'node%02d\n' "$i"
  done
  return 0
}

# Published ports, on 127.0.0.1 alone: PORTS followed by three digits.
peer_port() { echo "${PORTS}${1#org}51"; }
ca_port() { echo "${PORTS}${1#org}54"; }
orderer_port() { echo "${PORTS}0${1#orderer}0"; }
orderer_admin_port() { echo "${PORTS}0${1#orderer}3"; }
registry_port() { echo "${PORTS}005"; }

compose() { docker compose --env-file "$STATE/compose.env" --project-directory "$ROOT" -f "$ROOT/docker-compose.yml" "$@"; }

# load_network: uses the settings that an earlier up.sh wrote down.
load_network() {
  [ -f "$STATE/network.env" ] || die "$WRONG_STATE" "there is no network '$PROJECT' here" \
    "$STATE/network.env does not exist" "run network/up.sh"
  use_settings "$(cat "$STATE/network.env")"
  [ -n "${CONSENSUS-}" ] || die "$WRONG_STATE" "the network '$PROJECT' has an orderer organisation" \
    "an earlier version made it; now the organisations have the orderers" "start anew: network/up.sh --fresh"
}

# use_settings LINES: the settings of one network, NAME=VALUE a line, from here on.
use_settings() {
  local name value
  while IFS='=' read -r name value; do
    case $name in
      ORGS | ORDERERS | CONSENSUS | NODES | NETWORK_ID | PORTS | SERVICE_UID | SERVICE_GID | PROBE) declare -gr "$name=$value" ;;
    esac
  done <<<"$1"
}

# value_of NAME: its value among lines NAME=VALUE on stdin; nothing where it has none.
value_of() { sed -n "s/^$1=//p"; }

# recorded NAME: one setting as up.sh wrote it down; nothing where there is no network yet.
recorded() { [ ! -f "$STATE/network.env" ] || value_of "$1" <"$STATE/network.env"; }

require_organisation() {
  grep -qxF -- "$1" <<<"$(organisations)" || die "$USAGE" "unknown organisation '$1'" \
    "this network has: $(organisations | paste -sd ' ')" "name one of them"
}

require_name() {
  [[ $1 =~ ^[a-z][a-z0-9-]{0,62}$ ]] || die "$USAGE" "'$1' is not a name" \
    "names are lower-case letters, digits and hyphens, a letter first, 63 at most" "choose another name"
}

# alone_with NAME: keeps other scripts that make the same thing waiting until the subshell that calls it ends. Two builds of
# one tag would give two images, and the tag would move while the first is in use; of two engines neither would start.
# What outlives the subshell must close "$held".
alone_with() {
  mkdir -p "$CACHE/locks"
  exec {held}>"$CACHE/locks/${1//\//-}"
  flock --timeout 3600 "$held" || die "$TIMEOUT" "another script has been making $1 for an hour" \
    "it holds $CACHE/locks/${1//\//-}" "end it, then run the command again"
}

# lock_network: one up.sh or down.sh at a time for each network; the lock falls with the script. up.sh --fresh runs down.sh
# within its own lock.
lock_network() {
  [ -z "${ATTESTREE_LOCKED-}" ] || return 0
  mkdir -p "$(dirname "$STATE")"
  exec {lock}>"$STATE.lock"
  flock --nonblock "$lock" || {
    say "waiting for another up.sh or down.sh of '$PROJECT' to end"
    flock --timeout 3600 "$lock" || die "$TIMEOUT" "another up.sh or down.sh of '$PROJECT' has not ended within an hour" \
      "it holds $STATE.lock" "end it, then run the command again"
  }
  export ATTESTREE_LOCKED=yes
}
