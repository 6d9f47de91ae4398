"""Holdfast: durable workflows. What is in `__all__` is public and follows semantic versioning."""

__version__ = "0.1.0"
