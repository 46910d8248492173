"""The test command: what scripts/test and scripts/flaky run once the Python environment is there."""
