"""`executor experiment` and `executor simulate`: the command line of the experiments package."""
