"""The command line: secure executor, simulator, experiments and diagnosis."""
