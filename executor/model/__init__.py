"""`executor model`: read a published model, take it away, score rows with it, decide who may read it."""
