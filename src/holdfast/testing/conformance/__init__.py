"""What every adapter of a port promises, as tests.

Inherit `StoreConformance` in a test file of your own, provide two fixtures, and your store is tested:
`store`, an empty one, and `pass_time`, a function that lets at least that much of the store's time go
by and can be awaited. Nothing here knows which store it is testing.
"""

from holdfast.testing.conformance.examples import PassTime
from holdfast.testing.conformance.inbox import InboxConformance
from holdfast.testing.conformance.intake import IntakeConformance
from holdfast.testing.conformance.nodes import NodesConformance
from holdfast.testing.conformance.turns import TurnsConformance
from holdfast.testing.conformance.waits import WaitsConformance


class StoreConformance(
    TurnsConformance, InboxConformance, IntakeConformance, WaitsConformance, NodesConformance
):
    """What every store promises. Inherit it, provide the fixtures, and you are tested."""


__all__ = ["PassTime", "StoreConformance"]
