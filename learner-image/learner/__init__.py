"""One task of one node, inside a container without network: FIT, SHARE, GET, signed with the task's key."""
