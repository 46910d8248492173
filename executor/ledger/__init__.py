"""The ledger as the executor uses it: Fabric's client, a typed proxy per chaincode, a way to wait."""
