# shellcheck shell=bash
# Identities, all issued by the organisations' own Fabric CAs. Each organisation has two authorities on one server: one
# for identities, one for TLS, so that a TLS certificate can never sign a transaction.

# The roles of people and nodes; a certificate carries its role as an attribute, for the chaincodes, and as an
# organisational unit, for the channel's policies.
readonly ROLES=(data-scientist node auditor)
# Who runs the registry. Nobody has to trust it: images are judged by their digests.
readonly REGISTRY_OWNER=org1

org_dir() { echo "$STATE/organisations/$1"; }
orderer_dir() { echo "$(org_dir "$(owner_of "$1")")/$1"; }

# give DIRECTORY: what a service reads belongs to the user it runs as; everything else stays the caller's.
give() { [ "$(id -u)" != 0 ] || chown -R "$SERVICE_UID:$SERVICE_GID" "$1"; }

secret() { head -c 24 /dev/urandom | base64 | tr -d '/+=\n'; }

# secret_of ORG NAME: derived, so that a run that was interrupted after registering can enrol with the same secret.
secret_of() { printf '%s %s' "$(cat "$(org_dir "$1")/ca/registrar.secret")" "$2" | sha256sum | cut -c1-40; }

write_ca_config() { # ORG
  local org=$1 dir
  dir=$(org_dir "$org")/ca
  [ -f "$dir/tlsca.yaml" ] && return 0
  mkdir -p "$dir"
  [ -f "$dir/registrar.secret" ] || (umask 077 && secret >"$dir/registrar.secret")
  (
    umask 077
    authority_config "$org" "ca-$org" >"$dir/ca.yaml"
    cat >>"$dir/ca.yaml" <<EOF
port: 7054
tls: { enabled: true }
operations: { listenAddress: "127.0.0.1:9443" }
metrics: { provider: disabled }
cafiles: [tlsca/fabric-ca-server-config.yaml]
EOF
    authority_config "$org" "tlsca-$org" >"$dir/tlsca.yaml"
  )
  give "$dir/ca.yaml" && give "$dir/tlsca.yaml"
}

authority_config() { # ORG NAME
  cat <<EOF
version: $FABRIC_CA_VERSION
ca: { name: $2 }
crl: { expiry: 8760h }
db: { type: sqlite3, datasource: register.db }
affiliations: { $(printf '%s: [], ' "${ROLES[@]}") }
registry:
  maxenrollments: -1
  identities:
    - name: registrar
      pass: $(cat "$(org_dir "$1")/ca/registrar.secret")
      type: client
      attrs:
        hf.Registrar.Roles: "*"
        hf.Registrar.DelegateRoles: "*"
        hf.Registrar.Attributes: "*"
        hf.Revoker: true
        hf.GenCRL: true
signing:
  default: { usage: [digital signature], expiry: 8760h }
  profiles:
    tls: { usage: [signing, key encipherment, server auth, client auth, key agreement], expiry: 8760h }
csr:
  cn: $2.attestree
  names: [{ O: $1 }]
  hosts: [ca.$1, localhost, 127.0.0.1]
  ca: { expiry: 87600h, pathlength: 0 }
  keyrequest: { algo: ecdsa, size: 256 }
EOF
}

# ca_client ORG AUTHORITY HOME COMMAND...
ca_client() {
  local org=$1 authority=$2 home=$3
  shift 3
  FABRIC_CA_CLIENT_HOME=$home "$(tools_dir fabric-ca)/fabric-ca-client" "$@" --caname "$authority-$org" \
    --tls.certfiles "$(org_dir "$org")/ca.pem" --loglevel warning
}

# trust_ca ORG: the roots, taken out of the CA's own container, and the registrar that makes the other identities.
trust_ca() {
  local org=$1 dir container authority home
  dir=$(org_dir "$org")
  if [ ! -f "$dir/tlsca.pem" ]; then
    container=$(docker ps -q --filter "label=com.docker.compose.project=$PROJECT" --filter "label=com.docker.compose.service=ca.$org")
    docker cp "$container:/var/fabric-ca/ca-cert.pem" "$dir/ca.pem" >/dev/null
    docker cp "$container:/var/fabric-ca/tlsca/ca-cert.pem" "$dir/tlsca.pem.new" >/dev/null
    mv "$dir/tlsca.pem.new" "$dir/tlsca.pem"
  fi
  for authority in ca tlsca; do
    home=$dir/ca/registrar-$authority
    [ -f "$home/msp/signcerts/cert.pem" ] || (umask 077 &&
      FABRIC_CA_CLIENT_URL="https://registrar:$(cat "$dir/ca/registrar.secret")@127.0.0.1:$(ca_port "$org")" \
      quietly "enrol the registrar of $org" ca_client "$org" "$authority" "$home" enroll)
  done
}

# issue ORG AUTHORITY NAME TYPE TARGET ATTRIBUTES [ENROL ARGUMENT...]: registers NAME if need be and enrols it into TARGET.
issue() {
  local org=$1 authority=$2 name=$3 type=$4 target=$5 attributes=$6 dir log unit=()
  shift 6
  if [[ $type = client && $attributes =~ ^role=([^:]+): ]]; then unit=(--id.affiliation "${BASH_REMATCH[1]}"); fi
  dir=$(org_dir "$org")
  log=$(mktemp)
  if ! FABRIC_CA_CLIENT_ID_SECRET=$(secret_of "$org" "$name") ca_client "$org" "$authority" "$dir/ca/registrar-$authority" \
    register --url "https://127.0.0.1:$(ca_port "$org")" --id.name "$name" --id.type "$type" --id.attrs "$attributes" \
    ${unit[@]+"${unit[@]}"} >"$log" 2>&1 &&
    ! grep -q 'already registered' "$log"; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  (umask 077 && FABRIC_CA_CLIENT_URL="https://$name:$(secret_of "$org" "$name")@127.0.0.1:$(ca_port "$org")" \
    quietly "enrol $name of $org" ca_client "$org" "$authority" "$target" enroll "$@")
}

# issue_identity ORG NAME TYPE TARGET [ATTRIBUTES]: an MSP directory at TARGET/msp, complete or absent.
issue_identity() {
  local org=$1 name=$2 type=$3 target=$4 attributes=${5:-} work dir
  [ -d "$target/msp" ] && return 0
  dir=$(org_dir "$org")
  work=$(mktemp -d "$dir/.issuing.XXXXXX")
  issue "$org" ca "$name" "$type" "$work" "$attributes" || return 1
  mkdir -p "$work/new/cacerts" "$work/new/tlscacerts" "$work/new/signcerts" "$work/new/keystore" "$target"
  cp "$dir/ca.pem" "$work/new/cacerts/ca.pem"
  cp "$dir/tlsca.pem" "$work/new/tlscacerts/tlsca.pem"
  mv "$work/msp/signcerts/cert.pem" "$work/new/signcerts/cert.pem"
  mv "$work"/msp/keystore/*_sk "$work/new/keystore/key.pem"
  organisational_units >"$work/new/config.yaml"
  chmod 0600 "$work/new/keystore/key.pem"
  mv -T "$work/new" "$target/msp"
  rm -rf "$work"
}

# issue_tls ORG NAME TARGET HOSTS: server.crt, server.key and ca.crt at TARGET/tls, complete or absent.
issue_tls() {
  local org=$1 name=$2 target=$3 hosts=$4 work
  [ -d "$target/tls" ] && return 0
  work=$(mktemp -d "$(org_dir "$org")/.issuing.XXXXXX")
  issue "$org" tlsca "$name" client "$work" "" --enrollment.profile tls --csr.hosts "$hosts" || return 1
  mkdir -p "$work/new" "$target"
  mv "$work/msp/signcerts/cert.pem" "$work/new/server.crt"
  mv "$work"/msp/keystore/*_sk "$work/new/server.key"
  cp "$(org_dir "$org")/tlsca.pem" "$work/new/ca.crt"
  chmod 0600 "$work/new/server.key"
  mv -T "$work/new" "$target/tls"
  rm -rf "$work"
}

organisational_units() {
  local unit
  echo "NodeOUs:"
  echo "  Enable: true"
  for unit in client peer admin orderer; do
    echo "  ${unit^}OUIdentifier: { Certificate: cacerts/ca.pem, OrganizationalUnitIdentifier: $unit }"
  done
}

# The organisation's MSP as others see it: roots and units, no key.
write_public_msp() { # ORG
  local dir target
  dir=$(org_dir "$1")
  target=$dir/msp
  [ -d "$target" ] && return 0
  mkdir -p "$target.new/cacerts" "$target.new/tlscacerts"
  cp "$dir/ca.pem" "$target.new/cacerts/ca.pem"
  cp "$dir/tlsca.pem" "$target.new/tlscacerts/tlsca.pem"
  organisational_units >"$target.new/config.yaml"
  mv -T "$target.new" "$target"
}

# issue_user ORG NAME ROLE: a person or a learning node, with its role in the certificate.
issue_user() {
  local org=$1 name=$2 role=$3 attributes type=client
  attributes="role=$role:ecert"
  [ "$role" != node ] || attributes+=",node=$name:ecert"
  [ "$role" != admin ] || type='admin'
  issue_identity "$org" "$name" "$type" "$(org_dir "$org")/users/$name" "$attributes"
}

issue_organisation() { # ORG: everything one organisation needs, in order
  local org=$1 dir node
  dir=$(org_dir "$org")
  trust_ca "$org" && write_public_msp "$org" && issue_user "$org" admin admin || return 1
  issue_orderers "$org" || return 1
  if [ "$org" = "$REGISTRY_OWNER" ]; then
    issue_tls "$org" registry "$dir/registry" "registry,localhost,127.0.0.1" || return 1
    give "$dir/registry"
  fi
  issue_identity "$org" peer peer "$dir/peer" && issue_tls "$org" peer "$dir/peer" "peer.$org,localhost,127.0.0.1" &&
    issue_tls "$org" chaincode "$dir/chaincode" "chaincode.$org,localhost,127.0.0.1" &&
    issue_tls "$org" chaincode-client "$dir/chaincode-client" "peer.$org" &&
    issue_user "$org" data-scientist data-scientist && issue_user "$org" auditor auditor || return 1
  give "$dir/peer" && give "$dir/chaincode"
  for node in $(nodes_of "$org"); do
    issue_user "$org" "$node" node || return 1
  done
}

# issue_orderers ORG: its orderers, and for its administrator the TLS certificate with which they are told to join a channel.
issue_orderers() {
  local org=$1 orderer target
  for orderer in $(orderers_of "$org"); do
    target=$(orderer_dir "$orderer")
    issue_identity "$org" "$orderer" orderer "$target" &&
      issue_tls "$org" "$orderer" "$target" "$orderer,localhost,127.0.0.1" &&
      issue_tls "$org" admin "$(org_dir "$org")/users/admin" "admin" || return 1
    give "$target"
  done
}
