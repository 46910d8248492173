# shellcheck shell=bash
# The files of settings that up.sh writes: the network's own, compose's, and one for each peer and orderer.

LEAST_PING_INTERVAL=2s

# write_network_settings IMAGES CHAINCODE_IMAGE: what load_network, the executor and the next up.sh read. IMAGES says
# whether the images are official or built.
write_network_settings() {
  printf '%s\n' "ORGS=$ORGS" "ORDERERS=$ORDERERS" "CONSENSUS=$CONSENSUS" "NODES=$NODES" "IMAGES=$1" \
    "NETWORK_ID=$NETWORK_ID" "PORTS=$PORTS" "SERVICE_UID=$SERVICE_UID" "SERVICE_GID=$SERVICE_GID" "PROBE=$PROBE" "CHAINCODE_IMAGE=$2" >"$STATE/network.env.new"
  mv "$STATE/network.env.new" "$STATE/network.env"
}

# write_compose_environment IMAGE_LINES: everything docker-compose.yml leaves open.
write_compose_environment() {
  local profiles
  profiles=$( (organisations && orderers) | paste -sd ,)
  cat >"$STATE/compose.env.new" <<EOF
PROJECT=$PROJECT
NETWORK_ID=$NETWORK_ID
FABRIC_VERSION=$FABRIC_VERSION
PORTS=$PORTS
STATE='$STATE'
HELPERS='$(tools_dir helpers)'
SERVICE_UID=$SERVICE_UID
SERVICE_GID=$SERVICE_GID
$1
COMPOSE_PROFILES=$profiles
$(owners)
EOF
  mv "$STATE/compose.env.new" "$STATE/compose.env"
}

# owners: whose each orderer is, or would be, of the largest network.
owners() {
  local i
  for ((i = 1; i <= MOST_ORDERERS; i++)); do echo "ORDERER${i}_OWNER=$(owner_of "orderer$i")"; done
}

# own_volumes IMAGE VOLUME[/SUBDIRECTORY]...: creates the volumes and gives them to the services' user, by a program in a
# container of IMAGE with no network and no capability but the one it needs.
own_volumes() {
  local image=$1 name volume known mounts=() paths=()
  shift
  known=$(docker volume ls -q)
  for name in "$@"; do
    volume=${PROJECT}_${name%%/*}
    [[ $'\n'$known$'\n' == *$'\n'"$volume"$'\n'* ]] || docker volume create --label "attestree.network=$PROJECT" \
      --label "attestree.id=$NETWORK_ID" --label "attestree.fabric=$FABRIC_VERSION" \
      --label "com.docker.compose.project=$PROJECT" --label "com.docker.compose.volume=${name%%/*}" "$volume" >/dev/null
    [[ " ${mounts[*]-} " == *" $volume:/volumes/${name%%/*} "* ]] || mounts+=(-v "$volume:/volumes/${name%%/*}")
    paths+=("/volumes/$name")
  done
  quietly "give the volumes to user $SERVICE_UID" docker run --rm --user 0 --network none --cap-drop ALL --cap-add CHOWN \
    --cap-add DAC_OVERRIDE --label "attestree.network=$PROJECT" -v "$(tools_dir helpers)/own:/own:ro" "${mounts[@]}" \
    --entrypoint /own "$image" "$SERVICE_UID" "$SERVICE_GID" "${paths[@]}"
}

# A simulation that waits for a chaincode service to register holds the state against commits, so the wait is short: a
# service that vanished without a word would otherwise stop the peer for five minutes. With bft a peer hears from every
# orderer how far the chain is, and takes its blocks from another where its own falls behind by five seconds and not thirty.
# A peer's Gateway asks other peers and orderers every ten seconds whether they are there; no setting changes that. By default
# they take more than once a minute for an attack, and cut the connection while it carries a transaction.
write_peer_environment() { # ORG
  local org=$1 target
  target=$(org_dir "$org")/peer/service.env
  cat >"$target" <<EOF
FABRIC_LOGGING_SPEC=warning
CORE_PEER_ID=peer.$org
CORE_PEER_LOCALMSPID=$(msp_id "$org")
CORE_PEER_MSPCONFIGPATH=/etc/attestree/msp
CORE_PEER_ADDRESS=peer.$org:7051
CORE_PEER_LISTENADDRESS=0.0.0.0:7051
CORE_PEER_CHAINCODELISTENADDRESS=127.0.0.1:7052
CORE_PEER_CHAINCODEADDRESS=127.0.0.1:7052
CORE_PEER_FILESYSTEMPATH=/var/hyperledger/production
CORE_PEER_TLS_ENABLED=true
CORE_PEER_TLS_CERT_FILE=/etc/attestree/tls/server.crt
CORE_PEER_TLS_KEY_FILE=/etc/attestree/tls/server.key
CORE_PEER_TLS_ROOTCERT_FILE=/etc/attestree/tls/ca.crt
CORE_PEER_KEEPALIVE_MININTERVAL=$LEAST_PING_INTERVAL
CORE_PEER_GOSSIP_BOOTSTRAP=peer.$org:7051
CORE_PEER_GOSSIP_ENDPOINT=peer.$org:7051
CORE_PEER_GOSSIP_EXTERNALENDPOINT=peer.$org:7051
CORE_PEER_GOSSIP_USELEADERELECTION=false
CORE_PEER_GOSSIP_ORGLEADER=true
CORE_PEER_GOSSIP_RECONNECTINTERVAL=2s
CORE_PEER_GOSSIP_STATE_ENABLED=false
CORE_PEER_GOSSIP_PVTDATA_SKIPPULLINGINVALIDTRANSACTIONSDURINGCOMMIT=true
CORE_PEER_GOSSIP_PVTDATA_PULLRETRYTHRESHOLD=3s
CORE_PEER_DELIVERYCLIENT_BLOCKCENSORSHIPTIMEOUTKEY=5s
CORE_OPERATIONS_LISTENADDRESS=127.0.0.1:9443
CORE_METRICS_PROVIDER=disabled
CORE_VM_ENDPOINT=
CORE_LEDGER_STATE_STATEDATABASE=goleveldb
CORE_LEDGER_HISTORY_ENABLEHISTORYDATABASE=true
CORE_CHAINCODE_EXECUTETIMEOUT=60s
CORE_CHAINCODE_STARTUPTIMEOUT=20s
EOF
  give "$target"
}

write_orderer_environment() { # ORDERER
  local target
  target=$(orderer_dir "$1")/service.env
  cat >"$target" <<EOF
FABRIC_LOGGING_SPEC=warning:orderer.consensus.etcdraft=info:orderer.consensus.smartbft=info
ORDERER_GENERAL_LISTENADDRESS=0.0.0.0
ORDERER_GENERAL_LISTENPORT=7050
ORDERER_GENERAL_LOCALMSPID=$(msp_id "$(owner_of "$1")")
ORDERER_GENERAL_LOCALMSPDIR=/etc/attestree/msp
ORDERER_GENERAL_BOOTSTRAPMETHOD=none
ORDERER_GENERAL_KEEPALIVE_SERVERMININTERVAL=$LEAST_PING_INTERVAL
ORDERER_GENERAL_TLS_ENABLED=true
ORDERER_GENERAL_TLS_CERTIFICATE=/etc/attestree/tls/server.crt
ORDERER_GENERAL_TLS_PRIVATEKEY=/etc/attestree/tls/server.key
ORDERER_GENERAL_TLS_ROOTCAS=[/etc/attestree/tls/ca.crt]
ORDERER_GENERAL_CLUSTER_CLIENTCERTIFICATE=/etc/attestree/tls/server.crt
ORDERER_GENERAL_CLUSTER_CLIENTPRIVATEKEY=/etc/attestree/tls/server.key
ORDERER_GENERAL_CLUSTER_ROOTCAS=[/etc/attestree/tls/ca.crt]
ORDERER_CHANNELPARTICIPATION_ENABLED=true
ORDERER_ADMIN_LISTENADDRESS=0.0.0.0:7053
ORDERER_ADMIN_TLS_ENABLED=true
ORDERER_ADMIN_TLS_CERTIFICATE=/etc/attestree/tls/server.crt
ORDERER_ADMIN_TLS_PRIVATEKEY=/etc/attestree/tls/server.key
ORDERER_ADMIN_TLS_ROOTCAS=[/etc/attestree/tls/ca.crt]
ORDERER_ADMIN_TLS_CLIENTAUTHREQUIRED=true
ORDERER_ADMIN_TLS_CLIENTROOTCAS=[/etc/attestree/tls/ca.crt]
ORDERER_FILELEDGER_LOCATION=/var/hyperledger/production/orderer
ORDERER_CONSENSUS_WALDIR=/var/hyperledger/production/consensus/wal
ORDERER_CONSENSUS_SNAPDIR=/var/hyperledger/production/consensus/snapshot
ORDERER_OPERATIONS_LISTENADDRESS=127.0.0.1:9443
ORDERER_METRICS_PROVIDER=disabled
EOF
  give "$target"
}
