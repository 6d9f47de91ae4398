"""Evaluates the tree of one Python expression: simpleeval with a budget and without reflection.

simpleeval alone keeps code inside but not its cost: one line can fill the memory. Here every node
is a step of the budget and every operation pays for what it touches. Nothing callable is ever a
value, and attributes are looked up in lists of ours. Which trees get here is decided in `python`.
"""

import ast
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from simpleeval import EvalWithCompoundTypes

from holdfast.expression import ExpressionFailed, Scope
from holdfast.expressions.python_budget import Budget
from holdfast.expressions.python_library import ATTRIBUTES, FUNCTIONS, METHODS, formatted
from holdfast.expressions.python_names import ROOTS, View
from holdfast.expressions.python_operators import OPERATORS, UNARY
from holdfast.expressions.python_values import (
    is_dict,
    is_sequence,
    iterate,
    plain,
    represent,
    some_names,
    text,
)
from holdfast.expressions.size import kind_of


class Evaluator(EvalWithCompoundTypes):
    """One evaluation. It is made anew each time, so nothing of one is left for the next."""

    operators = UNARY

    def __init__(self, scope: Scope, budget: Budget) -> None:
        # Not super().__init__(): it binds some thirty handlers, which costs more than most expressions.
        # Ours are in a table of the class, and it checks results we never let arise.
        self._scope = scope
        self._budget = budget
        self._locals: dict[str, Any] = {}

    def evaluate(self, node: ast.expr) -> Any:
        return plain(self._eval(node), self._budget)

    def _eval(self, node: ast.AST) -> Any:
        budget = self._budget
        budget.steps -= 1
        if budget.steps < 0:
            budget.step()  # says so
        return self._handlers[type(node)](self, node)

    def _eval_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _eval_name(self, node: ast.Name) -> Any:
        name = node.id
        if name in self._locals:
            return self._locals[name]
        if name in ROOTS:
            return ROOTS[name](self._scope, self._budget)
        raise ExpressionFailed(f"There is no name '{name}' here. Names: {some_names(ROOTS)}.")

    def _eval_attribute(self, node: ast.Attribute) -> Any:
        owner = self._eval(node.value)
        name = node.attr
        if isinstance(owner, View):
            return owner.member(name)
        kind = kind_of(owner)
        if kind is dict:
            return _member(owner, name)
        if name in ATTRIBUTES.get(kind, {}):
            return ATTRIBUTES[kind][name](owner)
        if name in METHODS.get(kind, {}):
            raise ExpressionFailed(f"{name} is a method: call it, as in {name}().")
        raise ExpressionFailed(f"'{name}' cannot be read from a value of the type {kind.__name__}.")

    def _eval_subscript(self, node: ast.Subscript) -> Any:
        container = self._eval(node.value)
        key = self._eval(node.slice)
        if isinstance(container, View):
            return container.item(key)
        if is_dict(container):
            self._budget.read(key)
            return _member(container, key)
        if not is_sequence(container):
            raise ExpressionFailed(f"A value of the type {kind_of(container).__name__} has no items to pick.")
        if isinstance(key, slice):
            self._budget.spend_items(len(container))
        elif isinstance(key, int) and not -len(container) <= key < len(container):
            raise ExpressionFailed(
                f"There is no item {key} in a {kind_of(container).__name__} of {len(container)}."
            )
        return container[key]

    def _eval_binop(self, node: ast.BinOp) -> Any:
        return OPERATORS[type(node.op)](self._budget, self._eval(node.left), self._eval(node.right))

    def _eval_compare(self, node: ast.Compare) -> Any:
        left = self._eval(node.left)
        result: Any = True
        for operation, comparator in zip(node.ops, node.comparators, strict=True):
            right = self._eval(comparator)
            result = OPERATORS[type(operation)](self._budget, left, right)
            if not result:
                break
            left = right
        return result

    def _eval_call(self, node: ast.Call) -> Any:
        function = node.func
        if isinstance(function, ast.Attribute):
            return self._call_method(self._eval(function.value), function.attr, node)
        assert isinstance(function, ast.Name)
        name = function.id
        if name in FUNCTIONS and name not in self._locals:
            return FUNCTIONS[name](self._budget, *self._arguments(node), **self._named(node))
        if name in self._scope.functions:
            return self._call_host(name, node)
        known = some_names({*FUNCTIONS, *self._scope.functions})
        raise ExpressionFailed(f"There is no function '{name}'. Functions: {known}.")

    def _call_method(self, owner: Any, name: str, node: ast.Call) -> Any:
        if isinstance(owner, View):
            method = owner.methods.get(name)
            if method is None:
                raise ExpressionFailed(
                    f"{owner.name} has no method '{name}', only: {some_names(owner.methods)}."
                )
            return method(owner, *self._arguments(node), **self._named(node))
        kind = kind_of(owner)
        method = METHODS.get(kind, {}).get(name)
        if method is None:
            known = some_names(METHODS.get(kind, ()))
            raise ExpressionFailed(f"The type {kind.__name__} has no method '{name}' here, only: {known}.")
        return method(self._budget, owner, *self._arguments(node), **self._named(node))

    def _call_host(self, name: str, node: ast.Call) -> Any:
        arguments = [plain(value, self._budget) for value in self._arguments(node)]
        named = {key: plain(value, self._budget) for key, value in self._named(node).items()}
        try:
            result = self._scope.functions[name](*arguments, **named)
        except Exception as error:  # the host's function may raise anything, and it is this call that failed
            raise ExpressionFailed(f"{name}() failed: {str(error) or type(error).__name__}") from error
        return plain(result, self._budget)

    def _arguments(self, node: ast.Call) -> list[Any]:
        return [self._eval(argument) for argument in node.args]

    def _named(self, node: ast.Call) -> dict[str, Any]:
        return {keyword.arg or "": self._eval(keyword.value) for keyword in node.keywords}

    def _eval_joinedstr(self, node: ast.JoinedStr) -> str:
        parts = [text(self._eval(part), self._budget) for part in node.values]
        self._budget.read(parts)
        return "".join(parts)

    def _eval_formattedvalue(self, node: ast.FormattedValue) -> str:
        value = self._eval(node.value)
        if node.conversion in (ord("r"), ord("a")):
            self._budget.read(value)
            value = represent(value)
        elif node.conversion == ord("s"):
            value = text(value, self._budget)
        form = self._eval(node.format_spec) if node.format_spec else ""
        return formatted(value, form) if form else text(value, self._budget)

    def _eval_dict(self, node: ast.Dict) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        self._budget.spend_items(2 * len(node.values))
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                result.update(self._members(self._eval(value)))
            else:
                result[self._key(key)] = self._eval(value)
        return result

    def _members(self, value: Any) -> dict[Any, Any]:
        if not is_dict(value):
            raise ExpressionFailed(
                f"** in a dict takes another dict, not the type {kind_of(value).__name__}."
            )
        self._budget.read(value)
        return value

    def _key(self, node: ast.expr) -> Any:
        key = self._eval(node)
        self._budget.read(key)  # hashing a tuple goes through all that is in it
        return key

    def _eval_list(self, node: ast.List | ast.Tuple | ast.Set) -> list[Any]:
        result: list[Any] = []
        self._budget.spend_items(len(node.elts))
        for element in node.elts:
            if isinstance(element, ast.Starred):
                result.extend(iterate(self._eval(element.value), self._budget))
            else:
                result.append(self._eval(element))
        return result

    def _eval_tuple(self, node: ast.Tuple) -> tuple[Any, ...]:
        return tuple(self._eval_list(node))

    def _eval_set(self, node: ast.Set) -> set[Any]:
        items = self._eval_list(node)
        self._budget.read(items)
        return set(items)

    def _eval_comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp) -> Any:
        outer, self._locals = self._locals, dict(self._locals)
        rounds = self._rounds(node.generators)
        try:
            if isinstance(node, ast.DictComp):
                return {self._key(node.key): self._eval(node.value) for _ in rounds}
            if isinstance(node, ast.SetComp):
                return {self._key(node.elt) for _ in rounds}
            return [self._eval(node.elt) for _ in rounds]
        finally:
            self._locals = outer

    def _rounds(self, generators: list[ast.comprehension], at: int = 0) -> Iterator[None]:
        """Once for each item that is to be taken, with the comprehension's names bound to it."""
        generator = generators[at]
        for item in iterate(self._eval(generator.iter), self._budget):
            self._budget.step()
            self._budget.spend_items(2)
            self._bind(generator.target, item)
            if all(self._eval(condition) for condition in generator.ifs):
                if at + 1 < len(generators):
                    yield from self._rounds(generators, at + 1)
                else:
                    yield

    def _bind(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._locals[target.id] = value
            return
        assert isinstance(target, (ast.Tuple, ast.List))
        values = iterate(value, self._budget)
        if len(values) != len(target.elts):
            raise ExpressionFailed(
                f"{len(values)} values cannot be taken apart into {len(target.elts)} names."
            )
        for part, item in zip(target.elts, values, strict=True):
            self._bind(part, item)

    _handlers: ClassVar[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {
        ast.Attribute: _eval_attribute,
        ast.BinOp: _eval_binop,
        ast.BoolOp: EvalWithCompoundTypes._eval_boolop,
        ast.Call: _eval_call,
        ast.Compare: _eval_compare,
        ast.Constant: _eval_constant,
        ast.Dict: _eval_dict,
        ast.DictComp: _eval_comprehension,
        ast.FormattedValue: _eval_formattedvalue,
        ast.GeneratorExp: _eval_comprehension,
        ast.IfExp: EvalWithCompoundTypes._eval_ifexp,
        ast.JoinedStr: _eval_joinedstr,
        ast.List: _eval_list,
        ast.ListComp: _eval_comprehension,
        ast.Name: _eval_name,
        ast.Set: _eval_set,
        ast.SetComp: _eval_comprehension,
        ast.Slice: EvalWithCompoundTypes._eval_slice,
        ast.Subscript: _eval_subscript,
        ast.Tuple: _eval_tuple,
        ast.UnaryOp: EvalWithCompoundTypes._eval_unaryop,
    }


def _member(container: dict[Any, Any], key: Any) -> Any:
    if key not in container:
        raise ExpressionFailed(f"There is no member {represent(key)[:50]}. Members: {some_names(container)}.")
    return container[key]
