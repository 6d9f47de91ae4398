"""What every adapter of a port promises, as tests.

Inherit `StoreConformance` in a test file of your own, provide two fixtures, and your store is tested:
`store`, an empty one, and `pass_time`, a function that lets at least that much of the store's time go
by and can be awaited. Nothing here knows which store it is testing.
"""

from holdfast.testing.conformance.attempts import AttemptsConformance
from holdfast.testing.conformance.bell import BellConformance
from holdfast.testing.conformance.definitions import DefinitionsConformance
from holdfast.testing.conformance.examples import PassTime
from holdfast.testing.conformance.inbox import InboxConformance
from holdfast.testing.conformance.intake import IntakeConformance
from holdfast.testing.conformance.letters import LettersConformance
from holdfast.testing.conformance.nodes import NodesConformance
from holdfast.testing.conformance.orphans import OrphansConformance
from holdfast.testing.conformance.placements import PlacementsConformance
from holdfast.testing.conformance.records import RecordsConformance
from holdfast.testing.conformance.schedules import SchedulesConformance
from holdfast.testing.conformance.turns import TurnsConformance
from holdfast.testing.conformance.waits import WaitsConformance


class StoreConformance(
    TurnsConformance,
    InboxConformance,
    IntakeConformance,
    WaitsConformance,
    NodesConformance,
    DefinitionsConformance,
    SchedulesConformance,
    AttemptsConformance,
    RecordsConformance,
    OrphansConformance,
    LettersConformance,
    PlacementsConformance,
    BellConformance,
):
    """What every store promises. Inherit it, provide the fixtures, and you are tested."""


__all__ = ["PassTime", "StoreConformance"]
