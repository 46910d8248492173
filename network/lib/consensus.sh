# shellcheck shell=bash
# How the orderers agree on blocks. Raft: one leader makes them and signs alone, a majority of orderers keeps them; an orderer
# that lies is believed. BFT (SmartBFT): a block counts with the signatures of a quorum, and less than a third may lie.

default_orderers() { if [ "$1" = bft ]; then echo 4; else echo 3; fi; } # CONSENSUS

# require_orderers CONSENSUS NUMBER: no number that costs more than a smaller one and tolerates no more.
require_orderers() {
  case "$1 $2" in
    "raft 1" | "raft 3" | "raft 5" | "bft 4" | "bft 7") ;;
    raft*) die "$USAGE" "--orderers $2" "more than half of Raft's orderers must be up: an even number tolerates no more than one less" \
      "use 1, 3 or 5" ;;
    *) die "$USAGE" "--orderers $2" "to tolerate f that lie takes 3f + 1 orderers" "use 4 or 7 with --consensus bft" ;;
  esac
}

# warn_of_shares: with fewer organisations than it takes, one of them has more orderers than may lie.
warn_of_shares() {
  local tolerated=$(((ORDERERS - 1) / 3)) most=$(((ORDERERS + ORGS - 1) / ORGS))
  [ "$CONSENSUS" = raft ] || [ "$most" -le "$tolerated" ] ||
    say "note: of $ORDERERS orderers $tolerated may lie, and org1 has $most: it could stop the channel alone; four" \
      "organisations are the least for bft"
}

consensus_section() { if [ "$CONSENSUS" = bft ]; then bft_section; else raft_section; fi; }

raft_section() {
  local name certificate
  echo "      OrdererType: etcdraft"
  echo "      BatchTimeout: 200ms"
  echo "      EtcdRaft:"
  echo "        Options: { TickInterval: 500ms, ElectionTick: 10, HeartbeatTick: 1, MaxInflightBlocks: 5," \
    "SnapshotIntervalSize: 64 MB }"
  echo "        Consenters:"
  for name in $(orderers); do
    certificate=$(quoted "$(orderer_dir "$name")/tls/server.crt")
    echo "          - { Host: $name, Port: 7050, ClientTLSCert: $certificate, ServerTLSCert: $certificate }"
  done
}

# A leader that says nothing for ten seconds, or leaves out for ten what others have been given, is replaced.
bft_section() {
  local name dir certificate
  echo "      OrdererType: BFT"
  echo "      BatchTimeout: 200ms"
  echo "      SmartBFT: { RequestBatchMaxCount: 500, RequestBatchMaxBytes: 94371840, RequestBatchMaxInterval: 50ms," \
    "IncomingMessageBufferSize: 200, RequestPoolSize: 10000, RequestForwardTimeout: 2s, RequestComplainTimeout: 10s," \
    "RequestAutoRemoveTimeout: 3m, ViewChangeResendInterval: 2s, ViewChangeTimeout: 10s, LeaderHeartbeatTimeout: 10s," \
    "LeaderHeartbeatCount: 10, CollectTimeout: 1s }"
  echo "      ConsenterMapping:"
  for name in $(orderers); do
    dir=$(orderer_dir "$name")
    certificate=$(quoted "$dir/tls/server.crt")
    echo "        - { ID: ${name#orderer}, Host: $name, Port: 7050, MSPID: $(msp_id "$(owner_of "$name")")," \
      "Identity: $(quoted "$dir/msp/signcerts/cert.pem"), ClientTLSCert: $certificate, ServerTLSCert: $certificate }"
  done
}
