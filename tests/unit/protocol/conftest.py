"""Hypothesis without deadlines: a busy machine is slow, not wrong."""

from hypothesis import settings

settings.register_profile("protocol", deadline=None, max_examples=60)
settings.load_profile("protocol")
