"""No engine at all: a coroutine per activity, and the two journal records an engine would write.

This is the floor. It calls the same console, asks the same clock and makes the same records with the
same content, but it knows no graph, no queue, no frames, and nothing it does could be carried on.
"""

from holdfast.authoring import Console
from holdfast.clock import Clock
from holdfast.instance import Record


async def run(activities: int, console: Console, clock: Clock) -> list[Record]:
    records: list[Record] = []
    sequence = 0
    for number in range(1, activities + 1):
        records.append(Record(sequence + 1, "Started", number, number, 0, clock.now()))
        await _write_line(console, "x")
        sequence += 2
        records.append(Record(sequence, "Completed", number, number, 0, clock.now(), None, {"text": "x"}))
    return records


async def _write_line(console: Console, text: str) -> None:
    console.write_line(text)
