"""Trees: what an estimator is, the one byte string of each, and what one SHARE carries."""
