"""Images: build the learner's, publish any, and check that the one at hand is the one on the ledger."""
