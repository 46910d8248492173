"""The project's own records, replayed from the write sets and judged again by the code of `protocol`."""
