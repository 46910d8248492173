"""What a Fabric peer checks before it commits a block, done again by somebody who trusts no peer."""
