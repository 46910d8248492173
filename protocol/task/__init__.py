"""The task: what one node commits to in one iteration, what goes in, and what it signs in the end."""
