"""Python expressions: one expression of a safe subset, for authors who like Python.

Elsa runs whole Python scripts, in the host, with all that Python can do; that is never safe in a
server, so a script here is one expression. This module parses it once, refuses what is outside the
subset and says what to write instead. Evaluating is `python_evaluator`, the names it starts from are
in `python_names`, its functions and methods in `python_library`.
"""

import ast
import textwrap
import warnings
from typing import Any, NoReturn

from holdfast.errors import HoldfastError
from holdfast.expression import Expression, ExpressionFailed, ExpressionInvalid, Scope
from holdfast.expressions.python_budget import CHARACTERS, STEPS, Budget
from holdfast.expressions.python_evaluator import Evaluator
from holdfast.expressions.python_names import ROOTS
from holdfast.expressions.python_values import some_names
from holdfast.expressions.size import NUMBER_BITS

SOURCE_CHARACTERS = 20_000
DEPTH = 150


class Python:
    """The language. `steps` and `characters` are what one evaluation may spend."""

    name = "Python"
    display_name = "Python"
    editor = "python"

    def __init__(self, *, steps: int = STEPS, characters: int = CHARACTERS) -> None:
        self._steps = steps
        self._characters = characters

    def compile(self, source: str) -> Expression:
        """Parse and check the expression. Blank text, or only comments, is the expression `None`."""
        expression = only_expression(parse(source))
        refuse_unavailable(expression)
        return _Compiled(expression, self._steps, self._characters)


class _Compiled:
    def __init__(self, expression: ast.expr, steps: int, characters: int) -> None:
        self._expression = expression
        self._steps = steps
        self._characters = characters

    def __call__(self, scope: Scope) -> Any:
        evaluator = Evaluator(scope, Budget(self._steps, self._characters))
        try:
            return evaluator.evaluate(self._expression)
        except ExpressionFailed:
            raise
        except RecursionError as error:
            raise ExpressionFailed("The expression, or a value in it, is nested too deeply.") from error
        except _FAILURES as error:
            reason = textwrap.shorten(str(error), 300) or type(error).__name__
            raise ExpressionFailed(f"The expression failed: {reason}.") from error


_FAILURES = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError),
    HoldfastError,  # what the scope refuses, such as outcomes where nobody listens
)


def parse(source: str) -> list[ast.stmt]:
    """The statements, or ExpressionInvalid. Line numbers are those of the source."""
    if len(source) > SOURCE_CHARACTERS:
        raise ExpressionInvalid(f"The expression has more than {SOURCE_CHARACTERS:,} characters.")
    # Editors hand over indented text, and comments before it at any indent. Line numbers stay right.
    lines = source.replace("\r\n", "\n").split("\n")
    start = next((at for at, line in enumerate(lines) if not _is_idle(line)), len(lines))
    code = "\n" * start + textwrap.dedent("\n".join(lines[start:])).lstrip(" \t")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an unknown escape such as "\d" is the author's affair
            return ast.parse(code).body
    except SyntaxError as error:
        # Python's own words for this one tell how to switch the limit off.
        reason = "the number is too large" if "int_max_str_digits" in error.msg else error.msg
        raise ExpressionInvalid(f"line {error.lineno or 1}: {reason}.") from error
    except (RecursionError, MemoryError) as error:
        raise ExpressionInvalid("The expression is nested too deeply.") from error
    except ValueError as error:
        raise ExpressionInvalid(f"The expression cannot be read: {error}.") from error


def _is_idle(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def only_expression(statements: list[ast.stmt]) -> ast.expr:
    for statement in statements:
        _refuse_statement(statement)
    if len(statements) > 1:
        _refuse(
            statements[1], "only one expression is allowed; do several things in one list: [first, second]"
        )
    only = statements[0] if statements else None
    value = only.value if isinstance(only, (ast.Expr, ast.Return)) else None
    return value or ast.Constant(value=None)


def _refuse_statement(statement: ast.stmt) -> None:
    match statement:
        case ast.Expr() | ast.Return():
            return
        case (
            ast.Assign(targets=[ast.Attribute(value=ast.Name(id="variables"), attr=name)])
            | ast.AugAssign(target=ast.Attribute(value=ast.Name(id="variables"), attr=name))
        ):
            _refuse(statement, f'a variable is set with variables.Set("{name}", ...)')
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
            _refuse(
                statement,
                'nothing can be assigned; a workflow variable is set with variables.Set("Name", ...)',
            )
        case ast.Import() | ast.ImportFrom():
            _refuse(statement, "nothing can be imported")
        case ast.If():
            _refuse(statement, "if is not available as a statement; write: this if condition else that")
        case ast.For() | ast.While() | ast.AsyncFor():
            _refuse(statement, "loops are not available; write: [something for item in items]")
        case _:
            kind = type(statement).__name__
            _refuse(statement, f"only one expression is allowed, and this is another statement ({kind})")


_AVAILABLE = (
    *(ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Dict, ast.DictComp),
    *(ast.FormattedValue, ast.GeneratorExp, ast.IfExp, ast.JoinedStr, ast.List, ast.ListComp, ast.Name),
    *(ast.Set, ast.SetComp, ast.Slice, ast.Starred, ast.Subscript, ast.Tuple, ast.UnaryOp),
    *(ast.comprehension, ast.keyword, ast.expr_context, ast.boolop, ast.unaryop, ast.cmpop),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitOr, ast.BitXor, ast.BitAnd),
)
_CONSTANTS = (type(None), bool, int, float, str, bytes)


def refuse_unavailable(expression: ast.expr) -> None:
    """Refuse whatever the evaluator has no safe way to do. It walks a line, not the call stack."""
    names = {*ROOTS, *_bound_names(expression)}
    waiting: list[tuple[ast.AST, int, ast.AST]] = [(expression, 0, expression)]
    while waiting:
        node, depth, parent = waiting.pop()
        place = node if hasattr(node, "lineno") else parent
        if depth > DEPTH:
            _refuse(place, f"the expression is nested more than {DEPTH} deep")
        if not isinstance(node, _AVAILABLE):
            _refuse(place, f"{_SPELLED.get(type(node), type(node).__name__)} is not available")
        if isinstance(node, ast.Starred) and not isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
            _refuse(place, "* is available inside lists only")
        _refuse_parts(node, place, names)
        waiting.extend((child, depth + 1, node) for child in _parts(node))


def _bound_names(expression: ast.expr) -> set[str]:
    """Names that comprehensions bind, wherever they do; the evaluator knows where each one counts."""
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name) and _is_stored(node)}


def _is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _parts(node: ast.AST) -> list[ast.AST]:
    """The node's children, without the name of the function in a call: which there are, the scope says."""
    children = list(ast.iter_child_nodes(node))
    is_named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return children[1:] if is_named else children


def _refuse_parts(node: ast.AST, place: ast.AST, names: set[str]) -> None:
    match node:
        case ast.Constant(value=value):
            if not isinstance(value, _CONSTANTS):
                _refuse(place, f"{value!r} is not available")
            if isinstance(value, int) and value.bit_length() > NUMBER_BITS:
                _refuse(place, "the number is too large")
        case ast.Name(id=name):
            if name not in names:
                hint = f"for a variable write variables.{name}, to call a function {name}(...)"
                _refuse(place, f"there is no name '{name}'; {hint}. Names: {some_names(ROOTS)}")
        case ast.Attribute(attr=name):
            if name.startswith("__"):
                _refuse(place, f"'{name}' is not available: names with two underscores are Python's own")
        case ast.Call(func=function, args=arguments, keywords=keywords):
            if not isinstance(function, (ast.Name, ast.Attribute)):
                _refuse(place, "only functions and methods can be called, by their name")
            if any(isinstance(argument, ast.Starred) for argument in arguments) or any(
                keyword.arg is None for keyword in keywords
            ):
                _refuse(place, "* and ** are not available in calls")
        case ast.comprehension(is_async=is_async, target=target):
            if is_async:
                _refuse(place, "async is not available")
            if any(not isinstance(part, _TARGETS) for part in ast.walk(target)):
                _refuse(place, "only plain names can follow for")
        case _:
            pass


_TARGETS = (ast.Name, ast.Tuple, ast.List, ast.expr_context)
_SPELLED: dict[type[ast.AST], str] = {
    ast.Await: "await",
    ast.Lambda: "lambda",
    ast.LShift: "<<",
    ast.MatMult: "@",
    ast.NamedExpr: ":=",
    ast.RShift: ">>",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
}


def _refuse(place: ast.AST, reason: str) -> NoReturn:
    raise ExpressionInvalid(f"line {getattr(place, 'lineno', 1)}: {reason}.")
