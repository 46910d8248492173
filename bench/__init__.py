"""Benchmarks: each module is run as scripts/bench NAME."""
