"""The sandbox: the container of one task, described before it exists and compared once it does."""
