"""Following a flowchart by counting visits.

Each connection is visited once per round, followed or not. An activity is scheduled when all its
forward inbound connections have one visit more than the activity itself and at least one was
followed; if none was, the activity is skipped, and its own connections are visited as not followed.
That is how the dead branch of a decision reaches the join behind it. Joins with a mode of their own
wait for all, or go with the first. Backward connections start a new round without being counted.
"""

from collections.abc import Callable, Iterator
from typing import Any

from holdfast.activities.flow_plan import Connection, FlowPlan
from holdfast.authoring import Canceled, Completed, Fault
from holdfast.engine.context import Context

JOIN = "Elsa.FlowJoin"

Follows = Callable[[str | None], bool]
"""Whether a connection from that port is followed."""


class Counting:
    def __init__(self, context: Context, plan: FlowPlan, child_done: Callable[..., Any]) -> None:
        self._context = context
        self._plan = plan
        self._child_done = child_done
        state = context.state
        self._visits: dict[str, int] = state.setdefault("Visits", {})
        self._connections: dict[str, list[int]] = state.setdefault("Connections", {})
        """Visits, and 1 if it was followed at the last one."""

    def completed(self, completed: Completed) -> None:
        self._visit(completed.child, completed.follows, counts=not completed.backward)

    def canceled(self, signal: Canceled) -> None:
        """Its connections are visited as not followed; then there may be nothing left to do."""
        if self._plan.is_reachable(signal.child):
            self._visit(signal.child, _nothing, counts=True)

    def complete_if_idle(self) -> None:
        if self._context.is_idle():
            self._context.complete()

    def _visit(self, child: Any, follows: Follows, *, counts: bool) -> None:
        """Visit everything behind an activity that ended, and schedule what is next.

        Skipping goes as deep as the chart is long, so what is still to visit is kept in a list of our own
        and not on Python's stack.
        """
        first = follows
        waiting: list[Iterator[Connection]] = []
        connections = self._leave(child, counts)
        while True:
            for connection in connections:
                followed = follows(connection.port)
                counter = self._connections.get(connection.key)
                if counter is None:
                    self._connections[connection.key] = [1, int(followed)]
                else:
                    counter[0] += 1
                    counter[1] = int(followed)
                if connection.is_backward:
                    if followed:
                        self._go_back(connection)
                    continue
                decision = self._decide(connection)
                if decision == "schedule":
                    self._schedule(connection.target)
                elif decision == "skip":
                    waiting.append(connections)
                    connections, follows = self._leave(connection.target, True), _nothing
                    break
            else:
                if not waiting:
                    return
                connections = waiting.pop()
                if not waiting:
                    follows = first

    def _schedule(self, target: Any) -> None:
        self._context.schedule(target, self._child_done)
        if target.type_name == JOIN and self._mode(target) == "WaitAny":
            self._context.cancel_children(self._plan.ancestors(target))

    def _leave(self, child: Any, counts: bool) -> Iterator[Connection]:
        if not self._plan.is_reachable(child):
            raise Fault(
                f"Activity {child.id} is not reachable from the start of the flowchart, so what follows it "
                f"is unknown. Connect it."
            )
        if counts:
            self._visits[child.id] = self._visits.get(child.id, 0) + 1
        return iter(self._plan.outbound(child))

    def _go_back(self, connection: Connection) -> None:
        if not self._plan.is_valid_backward(connection):
            raise Fault(
                f"Invalid backward connection: Every path from the source ('{connection.source.id}') must go "
                f"through the target ('{connection.target.id}') when tracing back to the start."
            )
        self._context.schedule(connection.target, self._child_done, backward=True)

    def _decide(self, connection: Connection) -> str:
        """`schedule`, `skip` or `wait`, after one of the inbound connections was visited."""
        target = connection.target
        inbound = self._plan.forward[target]
        visits = self._visits.get(target.id, 0)
        counts = self._connections
        # A join that executes cancels the branches still open, and hears of it while it has not been
        # counted yet: deciding about it again would run it twice.
        if target.type_name == JOIN and self._context.is_running(target):
            return "wait"
        if len(inbound) == 1 and target.type_name != JOIN:
            count, followed = counts[connection.key]
            return "wait" if count <= visits else "schedule" if followed else "skip"
        states = [counts.get(c.key, (0, 0)) for c in inbound]
        lowest = min(count for count, _ in states)
        highest = max(count for count, _ in states)
        mode = self._mode(target)
        if mode == "WaitAny":
            return self._decide_any(connection, visits, states, lowest, highest)
        if lowest <= visits:
            return "wait"
        if mode == "WaitAll":
            goes_on = all(count == highest and followed for count, followed in states)
        else:
            goes_on = any(count == highest and followed for count, followed in states)
        return "schedule" if goes_on else "skip"

    def _decide_any(
        self, connection: Connection, visits: int, states: list[Any], lowest: int, highest: int
    ) -> str:
        target = connection.target
        if self._connections[connection.key][0] <= visits:
            return "wait"  # it ran for this round already
        if self._context.has_pending(target):
            return "wait"
        if highest > visits and any(count == highest and followed for count, followed in states):
            return "schedule"
        return "skip" if lowest > visits else "wait"

    def _mode(self, target: Any) -> str:
        if target.type_name != JOIN:
            return "WaitAllActive"
        return str(self._context.input_of(target, "mode"))


def _nothing(port: str | None) -> bool:
    return False
