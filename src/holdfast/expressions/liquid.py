"""Liquid templates: text with `{{ values }}` and `{% tags %}`, for whoever writes mails and messages.

python-liquid parses and renders; this module says what a template sees (its scope, and nothing of
the host), how long and how large a rendering may get, and in which words it fails. The filters are
in `liquid_filters`, the way values are written in `liquid_text`.
"""

import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TextIO

from liquid import BoundTemplate, Environment, RenderContext, Token, TokenStream
from liquid import Expression as LiquidExpression
from liquid.ast import Node
from liquid.builtin.expressions import FilteredExpression
from liquid.builtin.expressions.primitive import FloatLiteral, RangeLiteral
from liquid.builtin.output import Output, OutputNode
from liquid.builtin.tags.echo_tag import EchoNode, EchoTag
from liquid.exceptions import (
    LiquidError,
    LiquidSyntaxError,
    LocalNamespaceLimitError,
    LoopIterationLimitError,
    OutputStreamLimitError,
    ResourceLimitError,
    UnknownFilterError,
)
from liquid.output import LimitedStringIO
from liquid.tag import Tag

from holdfast.errors import HoldfastError
from holdfast.expression import Expression, ExpressionFailed, ExpressionInvalid, Scope
from holdfast.expressions.liquid_filters import install_filters
from holdfast.expressions.liquid_numbers import exact
from holdfast.expressions.liquid_text import CHARACTERS, ITEMS, Members, text

SOURCE_CHARACTERS = 100_000
MARKUP_CHARACTERS = 5_000


class Liquid:
    """The language. `seconds` is how long one rendering may keep the processor busy."""

    name = "Liquid"
    display_name = "Liquid"
    editor = "liquid"

    def __init__(self, *, seconds: float = 0.25) -> None:
        self._seconds = seconds
        self._environment = _Environment()

    def compile(self, source: str) -> Expression:
        """Parse the template. The text of ExpressionInvalid is fit to be shown in place of the output."""
        if not source.strip():
            return _nothing
        if not _OPENING.search(source):
            return _Words(source)
        refuse_bad_markup(source)
        try:
            template = self._environment.from_string(source)
            prepare(template.nodes, RenderContext(template))
        except LiquidError as error:
            if isinstance(error.__cause__, RecursionError):
                raise ExpressionInvalid("The template is nested too deeply.") from error
            raise ExpressionInvalid(describe(error)) from error
        except RecursionError as error:
            raise ExpressionInvalid("The template is nested too deeply.") from error
        return _Template(template, self._seconds)


def _nothing(scope: Scope) -> None:
    """A blank template is no text rather than an empty one."""


class _Words:
    """A template without markup: most of them are."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __call__(self, scope: Scope) -> str:
        return self._words


class _Template:
    def __init__(self, template: BoundTemplate, seconds: float) -> None:
        self._template = template
        self._seconds = seconds

    def __call__(self, scope: Scope) -> str:
        # All that tags remember (assigns, counters, cycles) is in the context and ends with it.
        context = _Rendering(self._template, globals=_Globals(scope))
        context.allow(self._seconds)
        output = context.get_buffer()
        try:
            self._template.render_with_context(context, output)
        except LiquidError as error:
            raise ExpressionFailed(describe(error)) from error
        except RecursionError as error:
            raise ExpressionFailed("The template is nested too deeply.") from error
        except _FAILURES as error:
            raise ExpressionFailed(f"The template failed: {str(error) or type(error).__name__}.") from error
        return output.getvalue()


_FAILURES = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError),
    HoldfastError,  # what the scope refuses
)


_GLOBALS: dict[str, Callable[[Scope], object]] = {
    "Variables": lambda scope: Members(scope.variable_names, scope.get_variable),
    "Input": lambda scope: Members(scope.inputs, scope.get_input),
    "Configuration": lambda scope: Members(lambda: scope.configuration, scope.configuration.get),
    "CorrelationId": lambda scope: scope.correlation_id,
    "WorkflowDefinitionId": lambda scope: scope.definition_id,
    "WorkflowDefinitionVersionId": lambda scope: scope.version_id,
    "WorkflowDefinitionVersion": lambda scope: scope.version,
    "WorkflowInstanceId": lambda scope: scope.instance_id,
    # python-liquid would answer these two with the machine's clock.
    "now": lambda scope: datetime.fromtimestamp(scope.utc_now_ms() / 1000, UTC),
    "today": lambda scope: datetime.fromtimestamp(scope.utc_now_ms() / 1000, UTC),
}


class _Globals(Mapping[str, object]):
    """The names a template starts with, asked of the scope one by one."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> object:
        return _GLOBALS[name](self._scope)

    def __iter__(self) -> Iterator[str]:
        return iter(_GLOBALS)

    def __len__(self) -> int:
        return len(_GLOBALS)


class _Rendering(RenderContext):
    """One rendering: looks at the clock wherever time can pass, and makes floats exact decimals."""

    __slots__ = ("_deadline", "_seconds", "_started")

    def allow(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._started = time.thread_time()

    def refuse_if_late(self) -> None:
        # The clock on the wall is cheap to ask but counts while other work has the processor, and a
        # busy machine is not the template's fault: only its own time counts against it.
        if time.monotonic() > self._deadline and time.thread_time() - self._started > self._seconds:
            raise ResourceLimitError(f"rendering took longer than {self._seconds * 1000:.0f} ms", token=None)

    def get(self, path: list[object], *, token: Token | None, **options: Any) -> object:
        self.refuse_if_late()
        value = super().get(path, token=token, **options)
        return exact(value) if isinstance(value, float) else value

    def get_buffer(self, buf: TextIO | None = None) -> LimitedStringIO:
        # The buffers of python-liquid itself turn every carriage return into a line feed.
        used = buf.size if isinstance(buf, LimitedStringIO) else 0
        return LimitedStringIO(limit=CHARACTERS - used, newline="")

    @contextmanager
    def loop(self, namespace: Mapping[str, object], forloop: Any) -> Generator[RenderContext]:
        forloop.it = self._watch(forloop.it)
        with super().loop(namespace, forloop) as context:
            yield context

    def _watch(self, items: Iterable[object]) -> Iterator[object]:
        for item in items:
            self.refuse_if_late()
            yield item


def _refuse_if_late(context: RenderContext) -> None:
    if isinstance(context, _Rendering):
        context.refuse_if_late()


class _Range(RangeLiteral):
    """`(1..9)`, but never long: a range is walked in one go by `contains`, `reversed` and `offset`."""

    __slots__ = ()

    def evaluate(self, context: RenderContext) -> range:
        numbers = super().evaluate(context)
        if numbers.stop - numbers.start > ITEMS:
            raise ResourceLimitError(f"a range has more than {ITEMS:,} numbers", token=None)
        return numbers


def prepare(nodes: Iterable[Node], context: RenderContext) -> None:
    """Finish what the parser made: short ranges, decimals for floats, no unknown filters.

    python-liquid has no place to plug these in, so the finished tree is changed, once.
    """
    for node in nodes:
        for expression in node.expressions():
            _prepare_expression(expression, context.env)
        prepare(node.children(context, include_partials=False), context)


def _prepare_expression(expression: LiquidExpression, environment: Environment) -> None:
    if type(expression) is RangeLiteral:
        expression.__class__ = _Range
    elif isinstance(expression, FloatLiteral):
        literal: Any = expression
        literal.value = Decimal(expression.token.value)
    elif isinstance(expression, FilteredExpression):
        for used in expression.filters or ():
            if used.name not in environment.filters:
                raise UnknownFilterError(f"there is no filter '{used.name}'", token=used.token)
    for child in expression.children():
        _prepare_expression(child, environment)


class _OutputNode(OutputNode):
    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        return buffer.write(text(self.expression.evaluate(context)))


class _EchoNode(EchoNode):
    __slots__ = ()
    render_to_output = _OutputNode.render_to_output


class _Output(Output):
    node_class = _OutputNode


class _Echo(EchoTag):
    node_class = _EchoNode


class _Include(Tag):
    """There are no other templates to take in, so the tags that do are refused, in words."""

    block = False
    name = "include"

    def parse(self, stream: TokenStream) -> Node:
        raise LiquidSyntaxError(
            f"{{% {self.name} %}} is not available: a template stands alone", token=stream.current
        )


class _Render(_Include):
    name = "render"


class _Environment(Environment):
    loop_iteration_limit = ITEMS
    local_namespace_limit = 4 * CHARACTERS
    output_stream_limit = CHARACTERS
    context_depth_limit = 20

    def setup_tags_and_filters(self, *, extra: bool = False) -> None:
        super().setup_tags_and_filters(extra=extra)
        for tag in (_Output, _Echo, _Include, _Render):
            self.add_tag(tag)
        install_filters(self, _refuse_if_late)


def refuse_bad_markup(source: str) -> None:
    """Refuse what python-liquid's lexer takes time squared to read: markup never closed, rows of blanks."""
    if len(source) > SOURCE_CHARACTERS:
        raise ExpressionInvalid(f"The template has more than {SOURCE_CHARACTERS:,} characters.")
    at = 0
    while opening := _OPENING.search(source, at):
        closing = "}}" if opening.group() == "{{" else "%}"
        end = source.find(closing, opening.end())
        line = source.count("\n", 0, opening.start()) + 1
        if end < 0:
            raise ExpressionInvalid(f"line {line}: '{opening.group()}' is never closed with '{closing}'")
        if end - opening.start() > MARKUP_CHARACTERS:
            raise ExpressionInvalid(f"line {line}: one tag has more than {MARKUP_CHARACTERS:,} characters")
        if _BLANKS.search(source, opening.end(), end):
            raise ExpressionInvalid(f"line {line}: one tag has more than 100 blanks in a row")
        at = end + 2
        if verbatim := _VERBATIM.fullmatch(source, opening.start(), at):
            ending = re.compile(rf"\{{%-?\s*end{verbatim['name']}\s*-?%\}}").search(source, at)
            if not ending:
                raise ExpressionInvalid(f"line {line}: '{verbatim['name']}' is never closed")
            at = ending.end()


_BLANKS = re.compile(r"\s{101}")
_OPENING = re.compile(r"\{\{|\{%")
_VERBATIM = re.compile(r"\{%-?\s*(?P<name>raw|doc)\s*-?%\}")


def describe(error: LiquidError) -> str:
    """`line 3: what is wrong`, without the picture python-liquid draws of it."""
    place = error.context() if error.token and error.token.start_index >= 0 else None
    message = _WORDS.get(type(error)) or str(error.message)
    return f"line {place[0]}: {message}" if place else message


_WORDS: dict[type[LiquidError], str] = {
    LocalNamespaceLimitError: f"the template assigns more than {4 * CHARACTERS:,} characters",
    LoopIterationLimitError: f"a loop goes round more than {ITEMS:,} times",
    OutputStreamLimitError: f"the output has more than {CHARACTERS:,} characters",
}
