"""Proof that travels with a model's files, in formats that auditors' tools know (docs/audit.md)."""
