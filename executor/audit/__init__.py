"""Check afterwards, from the blocks alone, what happened: trusts no peer, no server and no orderer."""
