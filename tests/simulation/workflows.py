"""The workflows that simulated clusters run, made of activities that remember in the state what they did.

What a step did is in the instance's properties and nowhere else, so what is counted there is what was
committed. Documents are compiled once; whatever a seed decides comes in through the stage.
"""

import asyncio
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from holdfast.assembly import load_plugins
from holdfast.authoring import Activity, ActivityContext, Input, Output, TriggerContext, activity
from holdfast.bookmark import Stimulus
from holdfast.message import Send
from holdfast.testing.simulation import Simulation
from holdfast.testing.simulation_nodes import Catalogue
from tests.documents import document, literal, sequence

TENANTS = ("acme", "globex")
STEPS = "Steps"
_TENANT: ContextVar[str] = ContextVar("tenant", default="")


class Stage:
    """What a seed has in store for those who act."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.slowness = 0.0
        self.killers: dict[tuple[str, str], int] = {}
        """By tenant and instance: how many processes it still kills."""
        self.poison: dict[tuple[str, str], int] = {}
        """By tenant and instance: how many of its bursts still raise."""
        self.done: dict[str, int] = {}
        """How often each execution reached the outside, by its idempotency key."""

    def count(self, context: ActivityContext) -> None:
        key = f"{_TENANT.get()}/{context.idempotency_key}"
        self.done[key] = self.done.get(key, 0) + 1

    async def reach(self, context: ActivityContext) -> None:
        tenant = _TENANT.get()
        self.count(context)
        if self.simulation.chance(self.slowness):
            await self.simulation.pause()
        left = self.killers.get((tenant, context.instance_id), 0)
        if left:
            self.killers[tenant, context.instance_id] = left - 1
            self.simulation.note("is killed by", context.instance_id)
            await self.simulation.die()

    async def around_burst(self, burst: Any, proceed: Any) -> None:
        name = (burst.tenant, burst.instance_id)
        if self.poison.get(name, 0):
            self.poison[name] -= 1
            raise RuntimeError("this burst raises")
        _TENANT.set(burst.tenant)
        await proceed()


def remember(context: ActivityContext, said: Any) -> None:
    context.properties[STEPS] = [*context.properties.get(STEPS, []), [context.activity_id, said]]


@activity(type="Story.Step", category="Story")
class Step(Activity):
    """Does something, perhaps slowly, and remembers it."""

    async def execute(self, context: ActivityContext) -> None:
        await context.use(Stage).reach(context)
        remember(context, context.input.get("Token"))


@activity(type="Story.Hear", category="Story", kind="Trigger")
class Hear(Activity):
    """Waits for a word on a subject, and remembers what was said."""

    subject: Input[str | None] = None

    def triggers(self, context: TriggerContext) -> Iterable[Any]:
        return [{"subject": self.subject}]

    def execute(self, context: ActivityContext) -> None:
        if context.started_here:
            self.heard(context)
        else:
            context.wait(self.heard, payload={"subject": self.subject})

    def heard(self, context: ActivityContext) -> None:
        context.use(Stage).count(context)
        remember(context, context.input.get("Said"))


@activity(type="Story.Work", category="Story", kind="Job")
class Work(Activity):
    """Takes its time outside the turn."""

    result: Output[str]

    async def execute(self, context: ActivityContext) -> None:
        stage = context.use(Stage)
        await asyncio.sleep(stage.simulation.random.choice([0.0, 0.2, 5.0]))
        context.set_output("Result", "done")


def word(subject: str, said: str, **address: Any) -> Stimulus:
    """What `Hear` waits for."""
    return Stimulus(name="Story.Hear", payload={"subject": subject}, input={"Said": said}, **address)


def step(name: str) -> dict[str, Any]:
    return {"id": name, "type": "Story.Step"}


def hear(subject: str, **members: Any) -> dict[str, Any]:
    return {"id": subject, "type": "Story.Hear", "subject": literal(subject), **members}


def work(name: str) -> dict[str, Any]:
    return {"id": name, "type": "Story.Work"}


def delay(name: str, seconds: float) -> dict[str, Any]:
    return {"id": name, "type": "Elsa.Delay", "timeSpan": literal(f"00:00:{seconds:06.3f}")}


def parallel(*branches: dict[str, Any]) -> dict[str, Any]:
    return {"id": "parallel", "type": "Elsa.Parallel", "activities": list(branches)}


def again(times: int, body: dict[str, Any]) -> dict[str, Any]:
    return {"id": "for", "type": "Elsa.For", "start": literal(1), "end": literal(times), "body": body}


def correlate(name: str, value: str) -> dict[str, Any]:
    return {"id": name, "type": "Elsa.Correlate", "correlationId": literal(value)}


def child(name: str, definition_id: str, *, kind: str = "Dispatch", waits: bool = True) -> dict[str, Any]:
    return {
        "id": name,
        "type": f"Elsa.{kind}Workflow",
        "workflowDefinitionId": literal(definition_id),
        "waitForCompletion": literal(waits),
        "correlationId": literal("family"),
    }


def every(seconds: float, overlap: str) -> dict[str, Any]:
    settings = {"missed": "all", "missedLimit": 1000, "overlap": overlap, "waitingLimit": 2}
    return {
        "id": "timer",
        "type": "Elsa.Timer",
        "interval": literal(f"00:00:{seconds:06.3f}"),
        "customProperties": {"canStartWorkflow": True, "holdfast": settings},
    }


def cron(expression: str) -> dict[str, Any]:
    return {
        "id": "cron",
        "type": "Elsa.Cron",
        "cronExpression": literal(expression),
        "customProperties": {"canStartWorkflow": True, "holdfast": {"missed": "all", "overlap": "skip"}},
    }


def workflow(name: str, *activities: dict[str, Any], **options: Any) -> dict[str, Any]:
    return document(sequence(*activities), definitionId=name, id=f"{name}-1", name=name, options=options)


STARTS = {"customProperties": {"canStartWorkflow": True}}
EACH = {"commitStrategyName": "ActivityExecuted"}

DOCUMENTS = [
    workflow("order", step("first"), delay("rest", 1), step("second"), hear("go"), step("third"), **EACH),
    workflow("quick", step("only")),
    workflow("short", delay("blink", 0.3), step("after")),
    workflow("listener", again(6, sequence(hear("ping"), delay("breath", 0.1))), **EACH),
    workflow(
        "mixed",
        parallel(
            sequence(
                delay("nap", 0.5),
                step("one"),
                delay("doze", 0.5),
                step("two"),
                delay("rest", 1),
                step("three"),
            ),
            again(3, hear("tick")),
        ),
        **EACH,
    ),
    workflow(
        "moving",
        correlate("old", "old-address"),
        parallel(hear("letter"), sequence(hear("move"), correlate("new", "new-address"))),
        step("settled"),
    ),
    workflow("entered", hear("knock", **STARTS), step("inside")),
    workflow("child", step("born"), delay("grow", 0.5), step("grown")),
    workflow("parent", step("before"), child("sends", "child"), step("heard"), **EACH),
    workflow("host", step("before"), child("does", "child", kind="Execute"), step("heard")),
    workflow("waiting", hear("never")),
    workflow(
        "fertile",
        again(4, sequence(delay("pause", 0.2), child("bears", "waiting", waits=False), step("nurses"))),
        hear("never"),
    ),
    workflow("laborious", step("before"), work("work"), step("heard"), **EACH),
    workflow(
        "single",
        step("before"),
        delay("stay", 0.4),
        step("heard"),
        activationStrategyType="SingletonStrategy",
    ),
    workflow(
        "paired",
        step("before"),
        delay("stay", 0.4),
        step("heard"),
        activationStrategyType="CorrelatedSingletonStrategy",
    ),
    workflow("guardian", child("asks", "single"), step("heard")),
    workflow(
        "knocked",
        hear("bell", **STARTS),
        delay("stay", 0.4),
        step("inside"),
        activationStrategyType="SingletonStrategy",
    ),
    workflow("ringer", {"id": "rings", "type": "Story.Ring"}),
    workflow("steady", every(1, "allow"), step("ran")),
    workflow("punctual", cron("*/2 * * * * *"), delay("long", 0.5), step("ran")),
    workflow("skipping", every(1, "skip"), delay("long", 1.5), step("ran")),
    workflow("queueing", every(2, "queue"), delay("long", 2.5), step("ran")),
    workflow("replacing", every(2, "cancelPrevious"), delay("long", 2.5), step("ran")),
]
GUARDED = {"single": False, "paired": True, "knocked": False}
"""Definitions with an activation strategy: whether it is one instance per correlation."""
SCHEDULED = {"steady": 1, "punctual": 2, "skipping": 1, "queueing": 2, "replacing": 2}
"""Definitions that start by themselves, and after how many seconds."""


@activity(type="Story.Ring", category="Story")
class Ring(Activity):
    """Says a word from inside a workflow."""

    def execute(self, context: ActivityContext) -> None:
        context.ask(Send(stimulus=word("bell", str(context.input.get("Token")))))


def make_catalogue() -> Catalogue:
    plugins = load_plugins([Step, Hear, Work, Ring], installed=False)
    return Catalogue(plugins, DOCUMENTS, tenants=TENANTS)
