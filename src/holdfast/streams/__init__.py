"""Brokers that messages go through: the adapters of the port in `holdfast.stream`."""

from holdfast.streams.opening import open_stream

__all__ = ["open_stream"]
