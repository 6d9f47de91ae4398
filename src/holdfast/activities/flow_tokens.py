"""Following a flowchart by tokens.

A completed activity puts a token on each connection it follows, and consumes the tokens that led to
it. What a token does at its target is the target's merge mode. There is no skipping: an activity that
merges branches of which one is never taken stays blocked, and the instance with it.
"""

from collections.abc import Callable
from typing import Any

from holdfast.activities.flow_plan import Connection, FlowPlan
from holdfast.authoring import Canceled, Completed
from holdfast.engine.context import Context

Token = dict[str, Any]
"""`from`, `port`, `to`; `consumed` and `blocked` where they are true."""

JOINS = {"WaitAll": "Merge", "WaitAllActive": "Merge", "WaitAny": "Race"}


class Tokens:
    def __init__(self, context: Context, plan: FlowPlan, child_done: Callable[..., Any]) -> None:
        self._context = context
        self._plan = plan
        self._child_done = child_done
        self._tokens: list[Token] = context.state.setdefault("Tokens", [])

    def completed(self, completed: Completed) -> None:
        child = completed.child
        taken = [c for c in self._plan.outbound(child) if completed.follows(c.port)]
        for connection in taken:
            self._add(connection)
        for token in self._tokens:
            if token["to"] == child.id and _is_live(token):
                token["consumed"] = True
        for connection in taken:
            self._arrive(connection)
        self._tokens[:] = [t for t in self._tokens if not ("consumed" in t and t["to"] == child.id)]

    def canceled(self, signal: Canceled) -> None:
        gone = signal.child.id
        self._tokens[:] = [t for t in self._tokens if gone not in (t["from"], t["to"])]

    def complete_if_idle(self) -> None:
        if self._context.is_idle() and not any(map(_is_live, self._tokens)):
            self._tokens.clear()
            self._context.complete()

    def _arrive(self, connection: Connection) -> None:
        target = connection.target
        forward = self._plan.forward.get(target, [])
        match self._mode(target):
            case "Merge":
                if len(forward) <= 1 or all(map(self._carries, forward)):
                    self._schedule(target)
            case "Converge":
                every = self._plan.inbound.get(target, [])
                if len(every) <= 1 or all(map(self._carries, every)):
                    self._schedule(target)
            case "Cascade":
                self._cascade(connection, forward)
            case "Race":
                self._context.cancel_children(self._plan.ancestors(target))
                self._cascade(connection, forward)
            case _:
                sources = {c.source.id for c in forward}
                if not any(_is_live(token) and token["to"] in sources for token in self._tokens):
                    self._schedule(target)

    def _cascade(self, connection: Connection, forward: list[Connection]) -> None:
        """The first one goes on; each of the others, when it comes, finds itself blocked.

        Elsa leaves the token of the one that came too late where it is, and the instance waits for
        ever. Here it is spent: whoever is late has nothing more to do.
        """
        here = self._on(connection)
        if any("blocked" in token for token in here):
            for token in here:
                token["consumed"] = True
            return
        self._schedule(connection.target)
        for other in forward:
            if other.source is not connection.source:
                self._add(other, blocked=True)

    def _schedule(self, target: Any) -> None:
        self._context.schedule(target, self._child_done)

    def _add(self, connection: Connection, *, blocked: bool = False) -> None:
        token: Token = {"from": connection.source.id, "port": connection.port, "to": connection.target.id}
        self._tokens.append({**token, "blocked": True} if blocked else token)

    def _on(self, connection: Connection) -> list[Token]:
        ends = (connection.source.id, connection.port, connection.target.id)
        return [t for t in self._tokens if (t["from"], t["port"], t["to"]) == ends]

    def _carries(self, connection: Connection) -> bool:
        return any(map(_is_live, self._on(connection)))

    def _mode(self, target: Any) -> str:
        if target.type_name == "Elsa.FlowJoin":
            return JOINS.get(str(self._context.input_of(target, "mode")), "Race")
        return target.merge_mode or "Stream"


def _is_live(token: Token) -> bool:
    return "consumed" not in token and "blocked" not in token
