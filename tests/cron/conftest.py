"""Hypothesis without a stopwatch: on a busy machine a deadline measures the neighbours."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
