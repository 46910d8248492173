"""A typed proxy per chaincode, through any transport."""
