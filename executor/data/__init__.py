"""A node's private data: read once, checked whole, committed to, and watched for change (docs/data.md)."""

from executor.data.dataset import Dataset, load

__all__ = ["Dataset", "load"]
