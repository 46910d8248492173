"""A node's private data: read once, checked whole, committed to, and watched for change (docs/data.md)."""

from executor.data.dataset import Dataset, load, parsed
from executor.data.source import read_file

__all__ = ["Dataset", "load", "parsed", "read_file"]
