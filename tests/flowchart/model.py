"""A second opinion on flowcharts: their rules, once more, as plainly as they can be written.

The engine is compared with this model on random graphs (`graphs`), so the model shares nothing with it
and imports nothing but the standard library. It knows one flowchart, one queue, five kinds of activity and
both algorithms. The rules are those of `reference/elsa-definitions.md`; a number such as 4.2 in a comment
is the section there, and quoted words are that section's own. `test_model` holds the worked examples.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["write", "decision", "fork", "join", "wait"]
State = Literal["Finished", "Suspended", "Faulted"]
Outcomes = frozenset[str | None]

DONE: Outcomes = frozenset({None, "Done"})  # 3.4: no explicit outcome "counts as the set {null, Done}"
NONE: Outcomes = frozenset()
PATIENCE = 1_000  # executions; a graph that needs more of them loops for ever


@dataclass(frozen=True, kw_only=True)
class Activity:
    """What an activity does. The fields below `kind` each belong to one kind, `merge` to all but joins."""

    id: str
    kind: Kind = "write"
    answers: tuple[bool, ...] = ()  # decision: the n-th execution takes the n-th answer,
    final: bool = False  # and this one when they are used up
    branches: tuple[str, ...] = ()  # fork: completes with all of them
    mode: str = "WaitAny"  # join: WaitAny, WaitAll or WaitAllActive
    merge: str = "Stream"  # 4.3: None, Stream, Merge, Converge, Cascade or Race; counters ignore it


@dataclass(frozen=True)
class Connection:
    source: str
    port: str | None
    target: str


@dataclass(frozen=True)
class Graph:
    activities: tuple[Activity, ...]
    connections: tuple[Connection, ...]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """All there is to see of an instance when its queue is empty."""

    state: State
    lines: tuple[str, ...]  # ids of the `write`s, as they ran
    executed: tuple[str, ...]  # ids of all activities, as they started
    blocked: tuple[str, ...]  # ids of the `wait`s, oldest first; twice if it waits twice
    incidents: tuple[tuple[str, str], ...]  # activity id and message, as they happened


class Roads:
    """What follows from the drawing alone: where it starts, and which connections lead forward."""

    def __init__(self, graph: Graph) -> None:
        # 1.8: "Duplicate connections (same ends and ports) collapse."
        self.connections = list(dict.fromkeys(graph.connections))
        # 4.1: "the first without any inbound connection; the first in the list". The earlier start
        # rules need a trigger or Elsa.Start, which the model does not have.
        targets = {c.target for c in self.connections}
        ids = [activity.id for activity in graph.activities]
        self.start = next((i for i in ids if i not in targets), ids[0] if ids else None)
        self.forward = self._forward()

    def outbound(self, activity: str) -> list[Connection]:
        return [c for c in self.connections if c.source == activity]

    def inbound(self, activity: str) -> list[Connection]:
        return [c for c in self.forward if c.target == activity]

    def _forward(self) -> list[Connection]:
        """4.2: "breadth-first from the start over the connections in order; an edge that would close a
        cycle over the edges accepted so far is a backward connection, the others are forward"."""
        accepted: list[Connection] = []
        found = [self.start] if self.start is not None else []
        for source in found:  # grows while we walk
            for connection in self.outbound(source):
                target = connection.target
                if target != source and source not in _reach(target, accepted):
                    accepted.append(connection)
                    if target not in found:
                        found.append(target)
        return accepted

    def is_dangling(self, activity: str) -> bool:
        """4.2: "An activity with no forward inbound connection other than the start"."""
        return activity != self.start and not self.inbound(activity)

    def is_valid(self, backward: Connection) -> bool:
        """4.2: "every forward path from X back to the start passes the target"."""
        if backward.target in (backward.source, self.start):
            return True
        around = [c for c in self.forward if backward.target not in (c.source, c.target)]
        return backward.source not in _reach(self.start, around)

    def ancestors(self, activity: str) -> set[str]:
        """Whatever comes before an activity over forward connections. Never the activity itself."""
        upstream = [Connection(c.target, c.port, c.source) for c in self.forward]
        return _reach(activity, upstream) - {activity}


def _reach(start: str | None, connections: Sequence[Connection]) -> set[str]:
    """Where the connections lead from there, the place itself included."""
    reached = [start] if start is not None else []
    for place in reached:  # grows while we walk
        reached += [c.target for c in connections if c.source == place and c.target not in reached]
    return set(reached)


class DrawingError(Exception):
    """A drawing that cannot be followed any further. 3.4: it "faults the child, not the parent"."""


@dataclass(eq=False)
class Execution:
    """One time an activity ran."""

    activity: Activity
    backward: bool  # "scheduled through a backward connection"
    status: Literal["Running", "Completed", "Canceled", "Faulted"] = "Running"

    @property
    def is_open(self) -> bool:
        return self.status in ("Running", "Faulted")  # 5.7: a faulted one "is not terminal"


@dataclass(eq=False)
class Token:
    """4.3: "{from, to, outcome, consumed, blocked}"; the connection says the first three."""

    connection: Connection
    consumed: bool = False
    blocked: bool = False

    @property
    def is_pending(self) -> bool:
        return not self.consumed and not self.blocked


class Simulation:
    """One instance of one flowchart.

    The last three arguments are mistakes to make on purpose. A test that compares something with this
    model is worth its time only if its graphs would notice each of them.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        token_based: bool = False,
        wait_all_as_any: bool = False,  # joins take WaitAll for WaitAny
        no_skip: bool = False,  # an activity that is not scheduled tells nobody
        count_backward: bool = False,  # an activity reached backward counts as visited again
    ) -> None:
        self.activities = {activity.id: activity for activity in graph.activities}
        self.roads = Roads(graph)
        self.token_based = token_based
        self.wait_all_as_any = wait_all_as_any
        self.no_skip = no_skip
        self.count_backward = count_backward

        self.queue: deque[Execution] = deque()
        self.executions: list[Execution] = []  # those that started, oldest first
        self.executing: Execution | None = None
        self.has_completed = False
        self.lines: list[str] = []
        self.incidents: list[tuple[str, str]] = []

        self.visits: Counter[str | Connection] = Counter()  # 4.2: per activity and per connection
        self.followed: dict[Connection, bool] = {}  # at the connection's last visit
        self.tokens: list[Token] = []

    # The burst: 3.2, 3.3, 3.4.

    def run(self) -> Outcome:
        """Start, and go on until the queue is empty."""
        if self.roads.start is None:
            self.has_completed = True  # 4.1: "None: completes."
        else:
            self._schedule(self.roads.start)
        return self._drain()

    def resume(self, activity: str) -> Outcome:
        """Let the oldest wait of that activity end. Where nothing waits, nothing happens (3.2)."""
        waiting = [e for e in self._waiting() if e.activity.id == activity]
        if waiting and not self.incidents:  # 5.7: an instance that is not Running refuses
            self.queue.append(waiting[0])
        return self._drain()

    def schedule(self, activity: str) -> Outcome:
        """Add work from outside, as an alteration does (3.5). Only so does a dangling activity run."""
        self._schedule(activity)
        return self._drain()

    def _drain(self) -> Outcome:
        """3.2: "one FIFO queue", drained "even when the instance became Faulted in between"."""
        while self.queue:
            execution = self.executing = self.queue.popleft()
            try:
                self._execute(execution)
            except DrawingError as problem:
                execution.status = "Faulted"
                self.incidents.append((execution.activity.id, str(problem)))
            if len(self.executions) > PATIENCE:
                raise RuntimeError("This flowchart does not come to an end.")
        self.executing = None
        return Outcome(
            state=self._state(),
            lines=tuple(self.lines),
            executed=tuple(e.activity.id for e in self.executions),
            blocked=tuple(e.activity.id for e in self._waiting()),
            incidents=tuple(self.incidents),
        )

    def _state(self) -> State:
        """3.2: "all contexts Completed or Canceled -> Finished", the flowchart's own among them."""
        if self.incidents:
            return "Faulted"
        if self.has_completed and not self._open():
            return "Finished"
        return "Suspended"

    def _open(self) -> list[Execution]:
        return [e for e in self.executions if e.is_open]

    def _waiting(self) -> list[Execution]:
        return [e for e in self.executions if e.status == "Running"]

    def _schedule(self, activity: str, *, backward: bool = False) -> None:
        self.queue.append(Execution(self.activities[activity], backward))

    def _execute(self, execution: Execution) -> None:
        activity = execution.activity
        is_resumed = execution in self.executions
        earlier = sum(e.activity == activity for e in self.executions)
        if not is_resumed:
            self.executions.append(execution)
        match activity.kind:
            case "write":
                self.lines.append(activity.id)
                self._complete(execution, DONE)
            case "decision":
                answer = activity.answers[earlier] if earlier < len(activity.answers) else activity.final
                self._complete(execution, frozenset({str(answer)}))
            case "fork":
                self._complete(execution, frozenset(activity.branches))
            case "join":
                # 4.2: "A FlowJoin, when it executes, again cancels open ancestors"; 4.3: "it also
                # happens in token mode".
                self._cancel_ancestors(activity.id)
                self._complete(execution, DONE)
            case "wait":
                if is_resumed:
                    self._complete(execution, DONE)

    def _complete(self, execution: Execution, outcomes: Outcomes) -> None:
        if execution.status != "Running":  # 3.4: "Only from Running; otherwise ignored."
            return
        execution.status = "Completed"
        if self.token_based:
            self._pass_tokens(execution.activity.id, outcomes)
        else:
            self._leave(execution.activity.id, outcomes, backward=execution.backward)
            # 4.2 step 3 asks only "if nothing was scheduled". What was scheduled is in the queue, and
            # then the answer is no anyway.
            self._complete_if_idle()

    def _complete_if_idle(self) -> None:
        """4.1: no child Running, nothing queued, no child Faulted; 4.3 step 4: and no token pending."""
        if not self.queue and not self._open() and not any(token.is_pending for token in self.tokens):
            self.tokens.clear()
            self.has_completed = True

    def _cancel_ancestors(self, activity: str) -> None:
        """4.2: "cancel every open context of T's ancestors in this flowchart", oldest first."""
        ancestors = self.roads.ancestors(activity)
        for execution in self._open():
            if execution.activity.id in ancestors and execution.is_open:  # still: one may cancel the next
                execution.status = "Canceled"
                self._canceled(execution.activity.id)

    def _canceled(self, activity: str) -> None:
        if self.token_based:
            # 4.3: "A canceled child removes its tokens, then idle check": those from it and those to it.
            self.tokens = [
                token
                for token in self.tokens
                if activity not in (token.connection.source, token.connection.target)
            ]
            self._complete_if_idle()
        else:
            # 4.2: "idle check, then its connections are visited as not followed (as in skip)".
            self._complete_if_idle()
            self._leave(activity, NONE)

    # Counter based: 4.2.

    def _leave(self, activity: str, outcomes: Outcomes, *, backward: bool = False) -> None:
        """4.2: "When activity X completes with outcomes O"."""
        if self.roads.is_dangling(activity):
            raise DrawingError(f"Activity {activity} is not reachable")
        # Step 1: "visits(X) += 1, unless X was scheduled through a backward connection".
        if not backward or self.count_backward:
            self.visits[activity] += 1
        # Step 2: "For each outbound connection c of X, in order: visits(c) += 1; followed(c) = source
        # port in O".
        for connection in self.roads.outbound(activity):
            self.visits[connection] += 1
            self.followed[connection] = connection.port in outcomes
            if connection in self.roads.forward:
                self._arrive(connection)
            elif self.followed[connection]:
                self._go_back(connection)

    def _go_back(self, connection: Connection) -> None:
        if not self.roads.is_valid(connection):
            raise DrawingError(
                f"Invalid backward connection: Every path from the source ('{connection.source}') must go "
                f"through the target ('{connection.target}') when tracing back to the start."
            )
        self._schedule(connection.target, backward=True)

    def _arrive(self, connection: Connection) -> None:
        """4.2: "Join rule for target T over its forward inbound connections"."""
        target = connection.target
        if self._is_executing(target):
            # Quirk 6, not copied: what an executing join cancels arrives at that join, and would make
            # it run once more. The visit counts, the join is not asked again.
            return
        inbound = self.roads.inbound(target)
        v = self.visits[target]
        n = {c: self.visits[c] for c in inbound}
        m = max(n.values())
        everybody_came = min(n.values()) > v
        newest = [self.followed[c] for c in inbound if n[c] == m]
        mode = self._join_mode(target)
        if mode == "WaitAny":
            if n[connection] <= v:
                return  # "T already ran for this round"
            if any(queued.activity.id == target for queued in self.queue):
                return  # "T already queued: ignore"
            if any(newest):
                self._schedule(target)
                self._cancel_ancestors(target)
            elif everybody_came:
                self._skip(target)
        elif everybody_came:  # otherwise "lowest n <= v: wait"
            all_followed = all(newest) and len(newest) == len(inbound)
            if all_followed if mode == "WaitAll" else any(newest):
                self._schedule(target)
            else:
                self._skip(target)

    def _is_executing(self, activity: str) -> bool:
        now = self.executing
        return now is not None and now.status == "Running" and now.activity.id == activity

    def _skip(self, activity: str) -> None:
        """4.2: "process T as completed with the empty outcome set", so step 1 counts it, too."""
        if not self.no_skip:
            self._leave(activity, NONE)

    def _join_mode(self, activity: str) -> str:
        """4.2: WaitAllActive is for "every activity that is not a FlowJoin" and those that ask for it."""
        target = self.activities[activity]
        if target.kind != "join":
            return "WaitAllActive"
        if target.mode == "WaitAll" and self.wait_all_as_any:
            return "WaitAny"
        return target.mode

    # Token based: 4.3.

    def _pass_tokens(self, activity: str, outcomes: Outcomes) -> None:
        """4.3: "When X completes", steps 1 to 5."""
        taken = [c for c in self.roads.outbound(activity) if c.port in outcomes]
        self.tokens += [Token(c) for c in taken]
        for token in self.tokens:
            if token.is_pending and token.connection.target == activity:
                token.consumed = True
        for connection in taken:
            self._merge(connection)
        self._complete_if_idle()
        self.tokens = [t for t in self.tokens if not (t.consumed and t.connection.target == activity)]

    def _merge(self, connection: Connection) -> None:
        """4.3 step 3: "by the merge mode of the target"."""
        target = connection.target
        inbound = self.roads.inbound(target)
        pending = {token.connection for token in self.tokens if token.is_pending}
        match self._merge_mode(target):
            case "Merge":
                if len(inbound) <= 1 or pending.issuperset(inbound):
                    self._schedule(target)
            case "Converge":  # "same over all inbound connections, backward ones included"
                everyone = [c for c in self.roads.connections if c.target == target]
                if len(everyone) <= 1 or pending.issuperset(everyone):
                    self._schedule(target)
            case "Cascade":
                self._cascade(connection)
            case "Race":
                self._cancel_ancestors(target)
                self._cascade(connection)
            case _:  # Stream, None, absent: not while "someone upstream is about to run"
                if not {c.source for c in inbound} & {c.target for c in pending}:
                    self._schedule(target)

    def _cascade(self, connection: Connection) -> None:
        here = [token for token in self.tokens if token.connection == connection]
        if any(token.blocked for token in here):
            # Elsa consumes the block alone; the token that came too late stays and keeps the instance
            # waiting for ever. Holdfast spends it too: docs/decisions has the record.
            for token in here:
                token.consumed = True
            return
        self._schedule(connection.target)
        # "a blocked token for every other forward inbound connection": those from other activities.
        # Two ports of one activity do not block each other.
        others = [c for c in self.roads.inbound(connection.target) if c.source != connection.source]
        self.tokens += [Token(c, blocked=True) for c in others]

    def _merge_mode(self, activity: str) -> str:
        target = self.activities[activity]
        if target.kind != "join":
            return target.merge
        return "Race" if self._join_mode(activity) == "WaitAny" else "Merge"


def simulate(
    graph: Graph, *, token_based: bool = False, resumes: Sequence[int] = (), **mistakes: bool
) -> Outcome:
    """Run a flowchart, then let waits end one by one: `resumes` says which of those blocked, modulo."""
    simulation = Simulation(graph, token_based=token_based, **mistakes)
    outcome = simulation.run()
    for pick in resumes:
        if outcome.state == "Suspended" and outcome.blocked:
            outcome = simulation.resume(outcome.blocked[pick % len(outcome.blocked)])
    return outcome
