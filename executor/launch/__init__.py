"""`executor launch`: one task of one node, from reading the ledger to wiping the key."""
