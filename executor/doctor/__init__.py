"""Diagnosis of this host and its network: what is wrong, and what to do about it."""
