"""The learning algorithm of the paper on protocol estimators: FIT, SHARE, GET, and a simulator."""
