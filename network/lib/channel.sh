# shellcheck shell=bash
# The channel: its first block, and joining orderers and peers to it.

fabric() { # PROGRAM ARGUMENT...
  local program=$1 tools
  shift
  tools=$(tools_dir fabric)
  FABRIC_CFG_PATH=${FABRIC_CFG_PATH:-$tools/config} "$tools/$program" "$@"
}

# as ORG IDENTITY PEER_ARGUMENT...: the peer CLI with an organisation's identity, speaking to its own peer.
as() {
  local org=$1 identity=$2 dir
  shift 2
  dir=$(org_dir "$org")
  FABRIC_LOGGING_SPEC=${FABRIC_LOGGING_SPEC:-error} CORE_PEER_TLS_ENABLED=true CORE_PEER_LOCALMSPID=$(msp_id "$org") \
    CORE_PEER_TLS_ROOTCERT_FILE=$dir/tlsca.pem CORE_PEER_ADDRESS=127.0.0.1:$(peer_port "$org") \
    CORE_PEER_MSPCONFIGPATH=$dir/users/$identity/msp fabric peer "$@"
}

# orderer_flags [TURN]: the first orderer that answers, since after a leader's death another one takes the transaction; at each
# turn the search begins with the next, in case one loses what it takes. One flag or value a line, for mapfile: paths may hold
# spaces.
orderer_flags() {
  local orderer i
  for ((i = 0; i < ORDERERS; i++)); do
    orderer=orderer$(((i + ${1:-0}) % ORDERERS + 1))
    if "$(tools_dir helpers)/healthy" "tls://127.0.0.1:$(orderer_port "$orderer")" 2>/dev/null; then
      flags_of "$orderer"
      return 0
    fi
  done
  die 20 "no orderer answers" "none of $(orderers | paste -sd ' ') accepts connections" "run network/up.sh"
}

flags_of() { # ORDERER
  printf '%s\n' --orderer "127.0.0.1:$(orderer_port "$1")" --connTimeout 30s --tls --cafile "$(org_dir "$(owner_of "$1")")/tlsca.pem"
}

# Every organisation's peer, for what a majority must endorse; one flag or value a line.
endorser_flags() {
  local org
  for org in $(organisations); do
    # Who is away refuses at once; who is slow is not away, and a transaction without its endorsement would be invalid.
    "$(tools_dir helpers)/healthy" -attempt 20s "tls://127.0.0.1:$(peer_port "$org")" 2>/dev/null || continue
    printf '%s\n' --peerAddresses "127.0.0.1:$(peer_port "$org")" --tlsRootCertFiles "$(org_dir "$org")/tlsca.pem"
  done
}

write_configtx() {
  local name
  mkdir -p "$STATE/channel"
  {
    echo "Profiles:"
    echo "  Attestree:"
    echo "    Capabilities: { V3_0: true }"
    policies "    " ANY Readers ANY Writers MAJORITY Admins
    echo "    Orderer:"
    # A share of large estimators fits one transaction; many small ones fill a block by count.
    echo "      BatchSize: { MaxMessageCount: 500, AbsoluteMaxBytes: 90 MB, PreferredMaxBytes: 4 MB }"
    echo "      Capabilities: { V2_0: true }"
    # With bft, configtxgen puts the quorum of the orderers in the place of BlockValidation.
    policies "      " ANY Readers ANY Writers MAJORITY Admins ANY BlockValidation:Writers
    consensus_section
    echo "      Organizations:"
    for name in $(ordering_organisations); do ordering_entry "$name"; done
    echo "    Application:"
    echo "      Capabilities: { V2_5: true }"
    policies "      " ANY Readers ANY Writers MAJORITY Admins MAJORITY LifecycleEndorsement:Endorsement MAJORITY Endorsement
    echo "      Organizations:"
    for name in $(organisations); do organisation_entry "$name"; done
  } >"$STATE/channel/configtx.yaml"
}

quoted() { printf "'%s'" "${1//\'/\'\'}"; } # TEXT, for YAML

# policies INDENT (RULE POLICY[:SUBPOLICY])...
policies() {
  local indent=$1
  echo "${indent}Policies:"
  shift
  while [ $# -gt 0 ]; do
    echo "$indent  ${2%%:*}: { Type: ImplicitMeta, Rule: \"$1 ${2##*:}\" }"
    shift 2
  done
}

# organisation_head ORG ROLE:POLICY...: an organisation with its MSP, and policies that members of a role satisfy.
organisation_head() {
  local msp rule
  msp=$(msp_id "$1")
  echo "        - Name: $msp"
  echo "          ID: $msp"
  echo "          MSPDir: $(quoted "$(org_dir "$1")/msp")"
  echo "          Policies:"
  for rule in "${@:2}"; do
    echo "            ${rule##*:}: { Type: Signature, Rule: \"OR('$msp.${rule%%:*}')\" }"
  done
}

organisation_entry() { # ORG
  local msp
  msp=$(msp_id "$1")
  organisation_head "$1" member:Writers admin:Admins peer:Endorsement
  # Whoever satisfies Readers gets every block, from the peers (qscc, events) and from the orderers. let_roles_read adds the
  # roles to those of the organisations; a certificate that has none reads nothing.
  echo "            Readers: { Type: Signature, Rule: \"OR('$msp.peer', '$msp.admin')\" }"
  echo "          AnchorPeers: [{ Host: peer.$1, Port: 7051 }]"
}

# ordering_entry ORG: the same organisation among those that order. Only its orderers write there: whoever satisfies Writers
# could sign blocks where one signature is enough.
ordering_entry() {
  organisation_head "$1" orderer:Writers orderer:Readers admin:Admins
  echo "          OrdererEndpoints: [$(orderers_of "$1" | sed 's/$/:7050/' | paste -sd ,)]"
}

make_genesis_block() {
  [ -f "$STATE/channel/genesis.block" ] && return 0
  write_configtx
  FABRIC_CFG_PATH=$STATE/channel quietly configtxgen fabric configtxgen -profile Attestree -channelID "$CHANNEL" \
    -outputBlock "$STATE/channel/genesis.block.new" && let_roles_read "$STATE/channel/genesis.block.new" &&
    mv "$STATE/channel/genesis.block.new" "$STATE/channel/genesis.block"
}

# let_roles_read BLOCK: the unit of each role into the policies of the first block.
let_roles_read() {
  local block=$1 org msps=()
  for org in $(organisations); do msps+=("$org=$(msp_id "$org")"); done
  fabric configtxlator proto_decode --type common.Block --input "$block" |
    plain_python "$ROOT/network/lib/readers.py" add --units "$(IFS=,; echo "${ROLES[*]}")" \
      --organisations "$STATE/organisations" --msps "${msps[@]}" |
    fabric configtxlator proto_encode --type common.Block | plain_python "$ROOT/network/lib/readers.py" finish >"$block.roles" &&
    mv "$block.roles" "$block"
}

osnadmin() { # ORDERER COMMAND...
  local orderer=$1 tls
  shift
  tls=$(org_dir "$(owner_of "$orderer")")/users/admin/tls
  fabric osnadmin "$@" -o "127.0.0.1:$(orderer_admin_port "$orderer")" --ca-file "$tls/ca.crt" \
    --client-cert "$tls/server.crt" --client-key "$tls/server.key"
}

join_orderer() { # ORDERER
  grep -q '"name"' <<<"$(osnadmin "$1" channel list --channelID "$CHANNEL" 2>/dev/null)" && return 0
  quietly "join $1" osnadmin "$1" channel join --channelID "$CHANNEL" --config-block "$STATE/channel/genesis.block"
}

# takes_transactions ORDERER: an orderer of Raft's that knows no leader refuses transactions, and hands out no block either.
takes_transactions() {
  local flags
  mapfile -t flags < <(flags_of "$1")
  as "$(owner_of "$1")" admin channel fetch newest /dev/null -c "$CHANNEL" "${flags[@]}"
}

join_peer() { # ORG
  grep -qx "$CHANNEL" <<<"$(as "$1" admin channel list 2>/dev/null)" && return 0
  quietly "join peer.$1" as "$1" admin channel join -b "$STATE/channel/genesis.block"
}
