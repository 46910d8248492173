"""What all parties must agree on, byte for byte: estimators, records, digests, signatures."""
