"""A report on every working day at seven in Zurich, page by page; interrupted, it goes on where it was."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Literal
from zoneinfo import ZoneInfo

from holdfast import Again, Holdfast, Machine, Retry, Run

PAGES = 3
ZURICH = ZoneInfo("Europe/Zurich")


class Status(IntEnum):
    COLLECTING = 1
    COLLECTED = 2
    SENT = 3


@dataclass
class Report:
    title: str = "Sales"
    pages: list[str] = field(default_factory=list[str])


reports = Machine("reports", object=Report, status=Status)


@reports.step(Status.COLLECTING)
async def collect(run: Run[Report, Status]) -> Literal[Status.COLLECTED] | Again:
    """One page at a time: each is kept before the next is asked for, and others have their turn between."""
    run.object.pages.append(f"page {len(run.object.pages) + 1}")
    return Again() if len(run.object.pages) < PAGES else Status.COLLECTED


@reports.step(Status.COLLECTED, pause_after=3)
async def send(run: Run[Report, Status]) -> Literal[Status.SENT]:
    if run.attempt == 1 and run.object.title == "unlucky":
        raise Retry("the mail server is busy", after=timedelta(minutes=5))
    print(f"{run.object.title}: {len(run.object.pages)} pages")
    return Status.SENT


@reports.condition
def on_working_days(when: datetime) -> bool:
    return when.astimezone(ZURICH).weekday() < 5


async def main() -> None:
    async with Holdfast("sqlite:///.holdfast/reports.db", machines=[reports]) as holdfast:
        runs = holdfast.machine(reports)
        await runs.schedule("sales", Report(), cron="0 7 * * *", zone="Europe/Zurich", when=on_working_days)
        for schedule in await runs.schedules():
            print(f"{schedule.foreign_id} is due at {schedule.next_at:%H:%M} UTC")


if __name__ == "__main__":
    asyncio.run(main())
