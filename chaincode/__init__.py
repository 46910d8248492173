"""The chaincodes of Attestree, and the shim that runs them as a service."""
