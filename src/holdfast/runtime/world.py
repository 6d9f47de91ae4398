"""What all turns of a node share: where things are found, what bursts are lent, and who listens."""

import msgspec

from holdfast.engine import Environment
from holdfast.runtime.listeners import Listeners
from holdfast.runtime.program import Programs
from holdfast.runtime.shards import Shards
from holdfast.runtime.sizes import Sizes
from holdfast.store import Store
from holdfast.telemetry import Figures


class World(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    store: Store
    programs: Programs
    shards: Shards
    environment: Environment
    sizes: Sizes = Sizes()
    listeners: Listeners = msgspec.field(default_factory=Listeners)
    figures: Figures = msgspec.field(default_factory=Figures)
