"""The broker: what the learner inside the container and the executor outside say to each other."""
