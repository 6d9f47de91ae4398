"""What tests of workflows need: an in-memory host, a clock you move, mocked activities, a bench for machines.

    host = Host()
    await host.load("order.json")
    order = await host.run("order", input={"amount": 12})
    await host.advance(timedelta(days=3))
    assert order.status == "Finished"

`corpus` runs folders of conformance scenarios against such a host.
"""

from holdfast.local import ActivityRecord, HostedInstance, NotPublished
from holdfast.testing.clock import ManualClock, NumberedIds
from holdfast.testing.host import Host
from holdfast.testing.lines import Lines
from holdfast.testing.machines import MachineBench
from holdfast.testing.mocks import Outcomes

__all__ = [
    "ActivityRecord",
    "Host",
    "HostedInstance",
    "Lines",
    "MachineBench",
    "ManualClock",
    "NotPublished",
    "NumberedIds",
    "Outcomes",
]
