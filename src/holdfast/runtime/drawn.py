"""A definition made of activities, as the runtime drives it: the Program of a compiled graph."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from holdfast.codec import read_payload
from holdfast.definitions.graph import Graph
from holdfast.engine import Environment, Outcome, decode_state, encode_state, run_burst
from holdfast.engine.background import do_in_background
from holdfast.engine.burst import BACKGROUND
from holdfast.instance import State
from holdfast.message import DoInBackground, Message, Resume
from holdfast.runtime.program import Checkpoint, Stoppable
from holdfast.store import Activation

_LONGEST_KEY = 200


class Drawn:
    """One version of a definition. It holds nothing of an instance, so all of them share it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def definition_id(self) -> str:
        return self.graph.definition.definition_id

    @property
    def version_id(self) -> str:
        return self.graph.definition.id

    @property
    def version(self) -> int:
        return self.graph.definition.version

    @property
    def background(self) -> str:
        return BACKGROUND

    def activity(self, node: int) -> tuple[str, str]:
        found = self.graph.nodes[node]
        return found.id, found.type_name

    def decode(self, state: bytes) -> State:
        return decode_state(state)

    def encode(self, state: State) -> bytes:
        return encode_state(state)

    def variables(self, state: State) -> dict[str, Any]:
        if not state.frames:
            return {}
        root = state.frames[0]
        names = {v.id: v.name for v in self.graph.definition.variables} | dict(root.dynamic)
        return {names.get(i, i): read_payload(value) for i, value in root.variables.items()}

    async def burst(
        self,
        message: Message,
        *,
        environment: Environment,
        state: State | None,
        instance_id: str,
        tenant: str,
        checkpoint: Checkpoint,
        on_begin: Callable[[Stoppable], None],
    ) -> Outcome:
        return await run_burst(
            self.graph,
            message,
            environment=environment,
            state=state,
            instance_id=instance_id,
            tenant=tenant,
            checkpoint=checkpoint,
            on_begin=on_begin,
        )

    async def attempt(self, state: State, task: DoInBackground, environment: Environment) -> Resume:
        return await do_in_background(self.graph, state, task, environment)

    def guards(self, correlation_id: str | None) -> tuple[Activation, ...]:
        """What its activation strategy asks for. An unknown strategy allows, as none does.

        A start without a correlation id stands in the way of other such starts only: an activation
        cannot look for open instances that have none, so there the key alone decides.
        """
        definition_id = self.definition_id
        looks, about = correlation_id is not None, correlation_id or ""
        match self.graph.definition.options.activation_strategy:
            case "SingletonStrategy":
                return (Activation(key=_key(f"singleton:{definition_id}"), definition_id=definition_id),)
            case "CorrelatedSingletonStrategy":
                key = _key(f"correlated:{quote(definition_id, safe='')}:{about}")
                return (
                    Activation(
                        key=key, looks=looks, definition_id=definition_id, correlation_id=correlation_id
                    ),
                )
            case "CorrelationStrategy":
                key = _key(f"correlation:{about}")
                return (Activation(key=key, looks=looks, correlation_id=correlation_id),)
            case _:
                return ()


def _key(text: str) -> str:
    return text if len(text) <= _LONGEST_KEY else sha256(text.encode()).hexdigest()
