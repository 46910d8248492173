"""`executor launch`: one round of one node, from reading the ledger to wiping the key."""
