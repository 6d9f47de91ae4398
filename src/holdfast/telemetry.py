"""What can be seen from outside: spans through OpenTelemetry, and figures that are always counted.

`tracing` is None unless the application has set up OpenTelemetry before Holdfast begins: whoever would
begin a span asks that one name and goes on. Figures are plain numbers in memory. `Figures.text` writes
them the way Prometheus reads them, and OpenTelemetry's meters, where there are any, read the same
numbers. Nothing here knows what a turn is; which spans there are is in `runtime.spans`.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

SCOPE = "holdfast"

COUNTERS: Mapping[str, tuple[str, str]] = {
    "instances": ("event", "What became of instances: started, resumed, suspended, completed and so on."),
    "turns": ("outcome", "Turns taken, and those that came too late or raised."),
    "dead_letters": ("", "Messages nobody could handle."),
    "leases": ("change", "Leases taken, given back and lost."),
    "takeovers": ("", "Shards taken from a node that died."),
    "expirations": ("", "Lives of this node that ended because it did not renew in time."),
    "relayed": ("stream", "Outbox rows that arrived."),
    "relay_failures": ("stream", "Attempts to publish that failed."),
    "events_dropped": ("", "Lifecycle events that a slow subscriber did not get."),
}
"""By name: the label that tells them apart, if any, and what is counted."""

GAUGES: Mapping[str, tuple[str, str]] = {
    "inbox_messages": ("", "Messages that wait in inboxes."),
    "inbox_lag_seconds": ("", "The age of the oldest message that waits."),
    "shards": ("", "Shards this node works."),
    "turns_under_way": ("", "Turns this node is taking."),
}

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_MANY = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)

HISTOGRAMS: Mapping[str, tuple[str, str, tuple[float, ...]]] = {
    "commit_seconds": ("", "How long a group of turns took to be written.", _FAST),
    "commit_turns": ("", "Turns in one group.", _MANY),
    "timer_lateness_seconds": ("", "From when a timer was due to when its turn began.", _FAST),
    "activity_seconds": ("type", "How long activities took; only while OpenTelemetry is set up.", _FAST),
}


class Histogram:
    """How often a value was how large."""

    __slots__ = ("bounds", "counts", "forward", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0
        self.forward: Callable[[float], None] | None = None

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        if self.forward is not None:
            self.forward(value)


class Figures:
    """Counters, gauges and histograms of one Holdfast, by name and label."""

    def __init__(self) -> None:
        self.counters: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.gauges: dict[tuple[str, str], float] = {}
        self._histograms: dict[tuple[str, str], Histogram] = {}
        _all.add(self)

    def count(self, name: str, label: str = "", by: int = 1) -> None:
        self.counters[name, label] += by

    def histogram(self, name: str, label: str = "") -> Histogram:
        found = self._histograms.get((name, label))
        if found is None:
            found = self._histograms[name, label] = Histogram(HISTOGRAMS[name][2])
            found.forward = _forward(name, label)
        return found

    def forward_all(self) -> None:
        """OpenTelemetry wants to know from now on."""
        for (name, label), histogram in self._histograms.items():
            histogram.forward = _forward(name, label)

    def text(self) -> str:
        """As Prometheus reads it."""
        lines: list[str] = []
        for name, (label, about) in COUNTERS.items():
            found = {k[1]: v for k, v in self.counters.items() if k[0] == name}
            lines += _family(f"{name}_total", "counter", about)
            lines += _samples(f"{name}_total", label, found or ({} if label else {"": 0}))
        for name, (label, about) in GAUGES.items():
            lines += _family(name, "gauge", about)
            lines += _samples(name, label, {k[1]: v for k, v in self.gauges.items() if k[0] == name})
        for name, (label, about, _) in HISTOGRAMS.items():
            lines += _family(name, "histogram", about)
            for (own, value), histogram in sorted(self._histograms.items()):
                if own == name:
                    lines += _buckets(name, _pairs(label, value), histogram)
        return "\n".join(lines) + "\n"


_all: WeakSet[Figures] = WeakSet()


def _family(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {SCOPE}_{name} {about}", f"# TYPE {SCOPE}_{name} {kind}"]


def _samples(name: str, label: str, found: Mapping[str, float]) -> list[str]:
    return [f"{SCOPE}_{name}{_braces(_pairs(label, k))} {found[k]:g}" for k in sorted(found)]


def _pairs(label: str, value: str) -> list[str]:
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return [f'{label}="{escaped}"'] if label else []


def _braces(pairs: list[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _buckets(name: str, pairs: list[str], histogram: Histogram) -> list[str]:
    lines: list[str] = []
    below = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        below += count
        limit = "+Inf" if bound == float("inf") else f"{bound:g}"
        le = f'le="{limit}"'
        lines.append(f"{SCOPE}_{name}_bucket{_braces([*pairs, le])} {below}")
    return [
        *lines,
        f"{SCOPE}_{name}_sum{_braces(pairs)} {histogram.total:g}",
        f"{SCOPE}_{name}_count{_braces(pairs)} {below}",
    ]


# --- OpenTelemetry ------------------------------------------------------------------------------------


class Tracing:
    """Spans, and the W3C context that messages carry from one to the next."""

    def __init__(self) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._api = trace
        self._tracer = trace.get_tracer(SCOPE)
        self._propagator = TraceContextTextMapPropagator()

    def now(self) -> str | None:
        """The `traceparent` of the span this code runs in."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get("traceparent")

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Mapping[str, str | int],
        *,
        kind: str = "INTERNAL",
        parent: str | None = None,
        cause: str | None = None,
    ) -> Generator[Any]:
        """Inside the present span, or inside `parent`; linked to `cause` when that is another trace."""
        context = None if parent is None else self._propagator.extract({"traceparent": parent})
        links = [self._link(cause)] if cause is not None and _trace_id(cause) != _trace_id(parent) else None
        with self._tracer.start_as_current_span(
            name,
            context=context,
            kind=self._api.SpanKind[kind],
            attributes=dict(attributes),
            links=links,
        ) as span:
            yield span

    def leave(self) -> None:
        """This context is in no span any more."""
        from opentelemetry import context

        context.attach(self._api.set_span_in_context(self._api.INVALID_SPAN))

    def _link(self, cause: str) -> Any:
        found = self._propagator.extract({"traceparent": cause})
        return self._api.Link(self._api.get_current_span(found).get_span_context())


def _trace_id(parent: str | None) -> str | None:
    return None if parent is None else parent[3:35]


tracing: Tracing | None = None
"""None: nobody wants spans."""

_NOTHING = nullcontext()
_meters: dict[str, Any] = {}
"""OpenTelemetry's histograms, where somebody reads them."""


def trace_now() -> str | None:
    """The context that a message sent now shall carry."""
    return None if tracing is None else tracing.now()


def span(name: str, *, kind: str = "INTERNAL", **attributes: str | int) -> AbstractContextManager[Any]:
    """A span inside the present one; nothing when nobody wants any."""
    if tracing is None:
        return _NOTHING
    return tracing.span(name, {f"{SCOPE}.{key}": value for key, value in attributes.items()}, kind=kind)


def apart() -> Context:
    """Where work goes on that does not belong to whoever began it: the same context, without its span."""
    context = copy_context()
    if tracing is not None:
        context.run(tracing.leave)
    return context


def turn_on() -> bool:
    """Use OpenTelemetry if it is installed and set up. Decided when a Holdfast begins, not per span."""
    global tracing  # noqa: PLW0603  OpenTelemetry is set up once in a process, too
    try:
        from opentelemetry import metrics, trace
    except ImportError:
        return False
    provider = trace.get_tracer_provider()
    is_idle = isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
    tracing = None if is_idle else Tracing()
    meters = metrics.get_meter_provider()
    if not isinstance(meters, metrics.NoOpMeterProvider) and not type(meters).__name__.startswith("_Proxy"):
        _export()
    return tracing is not None


def is_read() -> bool:
    """Whether OpenTelemetry reads the figures."""
    return bool(_meters)


def turn_off() -> None:
    """No more spans; figures are counted all the same."""
    global tracing  # noqa: PLW0603
    tracing = None


def _export() -> None:
    """Let OpenTelemetry read what is counted anyway; once in a process."""
    if _meters:
        return
    from opentelemetry import metrics

    meter = metrics.get_meter(SCOPE)
    for name, (label, about) in COUNTERS.items():
        meter.create_observable_counter(f"{SCOPE}.{name}", [_reading(name, label, "counters")], "", about)
    for name, (label, about) in GAUGES.items():
        meter.create_observable_gauge(f"{SCOPE}.{name}", [_reading(name, label, "gauges")], "", about)
    for name, (_, about, bounds) in HISTOGRAMS.items():
        _meters[name] = meter.create_histogram(
            f"{SCOPE}.{name}", "", about, explicit_bucket_boundaries_advisory=bounds
        )
    for figures in _all:
        figures.forward_all()


def _reading(name: str, label: str, kind: str) -> "Callable[[CallbackOptions], Iterable[Observation]]":
    def read(options: "CallbackOptions") -> "Iterable[Observation]":
        from opentelemetry.metrics import Observation

        sums: defaultdict[str, float] = defaultdict(float)
        for figures in list(_all):
            for (own, value), number in list(getattr(figures, kind).items()):
                if own == name:
                    sums[value] += number
        return [Observation(number, {label: value} if label else {}) for value, number in sums.items()]

    return read


def _forward(name: str, label: str) -> Callable[[float], None] | None:
    meter = _meters.get(name)
    if meter is None:
        return None
    attributes = {HISTOGRAMS[name][0]: label} if label else {}
    return lambda value: meter.record(value, attributes)
