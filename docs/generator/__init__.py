"""The pages and pictures of docs/ that are made from the sources: what scripts/docs runs."""
