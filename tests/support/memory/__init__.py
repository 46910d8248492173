"""A channel in memory: real contracts behind the shim's real context, and nodes that play on it."""
