"""The command line: secure executor, images, processes, models, diagnosis, experiments."""
