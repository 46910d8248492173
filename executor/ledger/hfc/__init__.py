"""fabric-sdk-py (hfc) as a second transport, in an environment and processes of its own."""
