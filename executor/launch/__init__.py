"""`executor launch`: the tasks of a node, each from reading the ledger to wiping the key."""
