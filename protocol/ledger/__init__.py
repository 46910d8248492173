"""The ledger: its keys, its records, and what its chaincodes answer."""
