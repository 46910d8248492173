"""The client of the ledger: one small interface, a transport behind it, a typed proxy per chaincode."""
