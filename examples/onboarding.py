"""A customer signs up, an agency checks who they are, and somebody looks when it takes too long.

The agency answers by a callback, in its own time. It is reminded after a day; after a week the
application lapses. Its errors are tried again, and at last pause the application for a person.
"""

import asyncio
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

import msgspec

from holdfast import Again, Cancel, Holdfast, Machine, Options, Run, Skip

REMINDERS = 3


class Status(StrEnum):
    SIGNED_UP = "signed-up"
    CHECKING = "checking"
    ACCEPTED = "accepted"
    WELCOMED = "welcomed"
    REFUSED = "refused"
    LAPSED = "lapsed"


class Customer(msgspec.Struct):
    name: str
    email: str
    check_id: str = ""
    reminders: int = 0
    remarks: list[str] = []


class Verdict(msgspec.Struct):
    """What the agency says."""

    check_id: str
    passed: bool
    remark: str = ""


onboarding = Machine(
    "onboarding",
    object=Customer,
    status=Status,
    defaults=Options(pause_after=6, backoff=timedelta(seconds=5)),
)


@onboarding.step(Status.SIGNED_UP)
async def ask_the_agency(run: Run[Customer, Status]) -> Literal[Status.CHECKING] | Cancel:
    if "@" not in run.object.email:
        return Cancel("there is no way to write to them")
    run.object.check_id = f"check-{run.key}"  # the same, should this be repeated: they see one request
    return Status.CHECKING


@onboarding.callback(Status.CHECKING)
async def hear_the_agency(
    run: Run[Customer, Status], verdict: Verdict
) -> Literal[Status.ACCEPTED, Status.REFUSED] | Skip:
    run.object.remarks.append(verdict.remark)
    if verdict.check_id != run.object.check_id:
        return Skip()
    return Status.ACCEPTED if verdict.passed else Status.REFUSED


@onboarding.timeout(Status.CHECKING, after=timedelta(days=1))
async def remind_the_agency(run: Run[Customer, Status]) -> Again | Skip:
    run.object.reminders += 1
    return Again() if run.object.reminders < REMINDERS else Skip()


def a_week_later(run: Run[Customer, Status], now: datetime) -> datetime:
    return now + timedelta(days=7)


@onboarding.timeout(Status.CHECKING, due=a_week_later)
async def lapse(run: Run[Customer, Status]) -> Literal[Status.LAPSED]:
    return Status.LAPSED


@onboarding.step(Status.ACCEPTED)
def welcome(run: Run[Customer, Status]) -> Literal[Status.WELCOMED]:
    print(f"Welcome, {run.object.name}.")
    return Status.WELCOMED


@onboarding.scrub
def forget(customer: Customer) -> Customer:
    """What stays of somebody who asked to be forgotten."""
    return Customer(name="", email="", check_id=customer.check_id)


async def main() -> None:
    async with Holdfast("sqlite:///.holdfast/onboarding.db", machines=[onboarding]) as holdfast:
        runs = holdfast.machine(onboarding)
        run_id = await runs.trigger("ada", Customer("Ada", "ada@example.org"))
        checking = await runs.reached(run_id, Status.CHECKING)
        await runs.callback("ada", Status.CHECKING, Verdict(checking.object.check_id, passed=True))
        await runs.finished(run_id)
        await runs.delete(run_id, "asked to be forgotten")


if __name__ == "__main__":
    asyncio.run(main())
