"""Waiting for time to pass, and starting workflows by the clock."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any

from holdfast.authoring import Activity, ActivityContext, Fault, Field, Input, TriggerContext, activity
from holdfast.codec import format_timespan
from holdfast.cron import Cron as CronExpression


@activity(type="Elsa.Delay", category="Scheduling")
class Delay(Activity):
    """Waits for a while."""

    time_span: Input[Annotated[timedelta, Field("How long to wait.")]] = timedelta(minutes=1)

    def execute(self, context: ActivityContext) -> None:
        due = context.now + self.time_span
        context.log("ResumeAt", due.isoformat())
        context.wait(payload={"resumeAt": due.isoformat()}, private=True, due=due)


@activity(type="Elsa.Timer", category="Scheduling", kind="Trigger")
class Timer(Activity):
    """Starts the workflow again and again after an interval; inside a workflow, waits for one interval."""

    interval: Input[Annotated[timedelta, Field("The time between two starts.")]] = timedelta(minutes=1)

    def triggers(self, context: TriggerContext) -> Iterable[Any]:
        start = context.now + self.interval
        return [{"startAt": start.isoformat(), "interval": format_timespan(self.interval)}]

    def execute(self, context: ActivityContext) -> None:
        if not context.started_here:
            due = context.now + self.interval
            context.wait(payload={"resumeAt": due.isoformat()}, private=True, due=due)


@activity(type="Elsa.Cron", category="Scheduling", kind="Trigger", display_name="Cron")
class Cron(Activity):
    """Starts the workflow by a cron expression; inside a workflow, waits for its next occurrence."""

    cron_expression: Input[Annotated[str | None, Field("Six fields, the first one seconds, in UTC.")]] = None

    def triggers(self, context: TriggerContext) -> Iterable[Any]:
        return [{"cronExpression": self.cron_expression}] if self.cron_expression else []

    def execute(self, context: ActivityContext) -> None:
        if context.started_here:
            return
        due = CronExpression(self.cron_expression or "").next(context.now)
        if due is None:
            raise Fault(f"The cron expression {self.cron_expression!r} never comes true again.")
        context.log("ExecuteAt", due.isoformat())
        context.wait(
            payload={"executeAt": due.isoformat(), "cronExpression": self.cron_expression},
            private=True,
            due=due,
        )


@activity(type="Elsa.StartAt", category="Scheduling", kind="Trigger")
class StartAt(Activity):
    """Starts the workflow at an instant; inside a workflow, waits for it."""

    date_time: Input[Annotated[datetime | None, Field("When.")]] = None

    def triggers(self, context: TriggerContext) -> Iterable[Any]:
        return [] if self.date_time is None else [{"executeAt": self.date_time.isoformat()}]

    def execute(self, context: ActivityContext) -> None:
        if context.started_here or self.date_time is None or self.date_time <= context.now:
            return
        context.log("ExecuteAt", self.date_time.isoformat())
        context.wait(payload={"executeAt": self.date_time.isoformat()}, private=True, due=self.date_time)
