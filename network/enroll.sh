#!/usr/bin/env bash
# Registers and enrols one more identity with its organisation's CA: network/enroll.sh ORG NAME ROLE, with ROLE
# data-scientist, node or auditor.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for part in common tools identities; do
  # shellcheck source=/dev/null
  . "$here/lib/$part.sh"
done
remember_tools fabric-ca

usage() {
  cat <<EOF
usage: network/enroll.sh ORG NAME ROLE

  ORG    an organisation of the network, for example org2
  NAME   the identity's name, for example node21
  ROLE   data-scientist, node or auditor; it stands in the certificate, as does the name of a node
EOF
}

case ${1-} in -h | --help) usage && exit 0 ;; esac
if [ $# -ne 3 ]; then
  usage >&2
  die "$USAGE" "$# arguments" "enroll.sh takes three" "see the usage above"
fi
org=$1 name=$2 role=$3
load_network
require_organisation "$org"
require_name "$name"
[[ $role =~ ^(data-scientist|node|auditor)$ ]] || die "$USAGE" "unknown role '$role'" \
  "roles are data-scientist, node and auditor" "name one of them"
[[ ! $name =~ ^(admin|peer|chaincode|chaincode-client|registrar|registry|orderer[0-9]+)$ ]] ||
  die "$USAGE" "the name '$name' is taken" "the network itself uses it" "choose another name"
target=$(org_dir "$org")/users/$name
[ ! -d "$target/msp" ] || die "$WRONG_STATE" "$name of $org exists" "$target/msp is there" "choose another name, or use it"
# A node's name says whose it is, so no two organisations may have a node of one name.
for other in $(organisations); do
  [ "$role" != node ] || [ ! -d "$(org_dir "$other")/users/$name" ] ||
    die "$WRONG_STATE" "the node $name exists in $other" "node names are unique in a network" "choose another name"
done
issue_user "$org" "$name" "$role" ||
  die "$FAILED" "$name was not enrolled" "the CA said the above" "is the network up? network/up.sh"
say "enrolled $name of $org as $role"
echo "$target/msp"
