"""Reading a script before it runs: what it may ask for, and the function it is compiled into.

QuickJS gives a value to the last expression of a text it evaluates, but not to that of a function,
and only functions are compiled once. So `shape` looks for the place where `return` belongs. It has
no grammar of its own: each guess is put to the compiler, together with a counter-example that must
not compile. A script without such a place is evaluated as text on every call, which is slower.

Names are read with regular expressions. They see too much (words in comments and strings), never
too little; what is known only at run time is asked for then (`javascript_facts`).
"""

import json
import re
from collections.abc import Callable

import msgspec

_KEYWORDS = """
    await break case catch class const continue debugger default delete do else enum export extends false
    finally for function if import in instanceof let new null of return static super switch this throw true
    try typeof var void while with yield async arguments
"""
KEYWORDS = frozenset(_KEYWORDS.split())
# With one of these a script may leave work for after its end. Escapes could spell any of them.
_AWAITING = frozenset(("async", "await", "Promise", "import", "eval", "this", "globalThis"))
# With one of these it may look for names that are not in its text.
_SEARCHING = re.compile(r"(?<![\w$.])(?:eval|globalThis)\b|(?<![\w$.])this\s*(?:\[|\.\s*[gs]et[A-Z])")

_WORD = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_NAME = r"(?<![\w$.])([^\W\d][\w$]*|\$[\w$]*)"
_FREE = re.compile(_NAME + r"|\.\.\.\s*([^\W\d][\w$]*)")
_ASSIGNED = (
    re.compile(_NAME + r"\s*(?:=(?![=>])|(?:[-+*/%&|^]|\*\*|<<|>>>?|&&|\|\||\?\?)=|\+\+|--)"),
    re.compile(r"(?:\+\+|--)\s*" + _NAME),
    re.compile(r"\bfor\s*\(\s*" + _NAME + r"\s+(?:of|in)\b"),
)
_DESTRUCTURED = re.compile(r"[\]}]\s*=(?![=>])")
_UNBOUND = re.compile(_NAME + r"(?!\s*[(.\w$])")
_MEMBER = re.compile(
    r"(?<![\w$.])variables\s*(?:\?\s*)?(?:\.\s*([^\W\d][\w$]*)|\[\s*(['\"`])([^'\"`\\\n]*)\2\s*\])"
)
_LITERAL = r"(['\"`])([^'\"`\\\n]*)"
_ASKED = re.compile(rf"\bget(Variable|Input|Config)\s*\(\s*{_LITERAL}\2\s*\)")
_ASKED_OUTPUT = re.compile(rf"\bgetOutputFrom\s*\(\s*{_LITERAL}\1\s*(?:,\s*{_LITERAL}\3\s*)?\)")

# Where a text is a statement although its beginning could be an expression.
_BLANK = r"(?:\s|//[^\n]*+\n|/\*(?:[^*]|\*(?!/))*+\*/)*+"  # possessive: never tried in a second way
_STATEMENT = re.compile(_BLANK + r"(?:\{|(?:function|class|let|async)(?![\w$]))")
_BOUNDARY = re.compile(r"[;}\n]")
_GUESSES = 12
_GUESSES_IF_LONG = 3
_LONG = 10_000
_PROBE = "$probe"

Objection = Callable[[str], str]


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What the text of a script tells."""

    words: frozenset[str]  # all of them
    names: frozenset[str]  # those that are not the member of something: they may come from the scope
    assigned: tuple[str, ...]  # names it may assign without declaring them
    keys: tuple[str, ...]  # facts it names literally, such as `variable:total`
    may_await: bool
    may_search: bool
    may_throw: bool


def read(source: str, built_in: frozenset[str]) -> Reading:
    """Find the names in a script, and what can be known from them.

    Names of built-in things are never taken for assigned: those are frozen, and to declare one would
    hide it.
    """
    words = frozenset(_WORD.findall(source))
    assigned = {name for pattern in _ASSIGNED for name in pattern.findall(source)}
    if _DESTRUCTURED.search(source):
        assigned.update(_UNBOUND.findall(source))
    keys = [f"variable:{dotted or quoted}" for dotted, _, quoted in _MEMBER.findall(source)]
    keys += [f"{kind.lower()}:{name}" for kind, _, name in _ASKED.findall(source)]
    keys += [f"output:{activity}\0{output}" for _, activity, _, output in _ASKED_OUTPUT.findall(source)]
    return Reading(
        words=words,
        names=frozenset(name or spread for name, spread in _FREE.findall(source)) - KEYWORDS,
        assigned=tuple(sorted(assigned - KEYWORDS - built_in)),
        keys=tuple(dict.fromkeys(keys)),
        may_await="\\u" in source or not words.isdisjoint(_AWAITING),
        may_search=_SEARCHING.search(source) is not None,
        may_throw="throw" in words,
    )


def wrap(body: str, declarations: tuple[str, ...], reading: Reading) -> str:
    """The text of the function that a script becomes, with what its scope declares (`javascript_names`).

    What the script assigns without declaring it is declared here, so that it lands in this call; the
    globals are frozen, and there it would be lost without a word. It reads as undefined until then.
    All that on the first line, so that line numbers stay, and the script in a block of its own, so
    that it may declare any name again.
    """
    names = [declaration.partition("=")[0] for declaration in declarations]
    head = [*(name for name in reading.assigned if name not in names), *declarations]
    declared = f"var {','.join(head)};" if head else ""
    if not reading.may_search:
        return f"(($get,$set,$call)=>{{{declared}{{{body}\n}}}})"
    around = f"var globalThis=$surround({{{','.join(names)}}});"
    return (
        f"(($get,$set,$call,$surround)=>{{{declared}{around}"
        f"return(function(){{{{{body}\n}}}}).call(globalThis)}})"
    )


def shape(source: str, objection: Objection, is_script: Callable[[str], bool]) -> str:
    """The source as the body of a function that returns what the script comes to."""
    whole = _as_returned(source, objection)
    if whole is not None:
        return whole
    guesses = [found.start() for found in _BOUNDARY.finditer(source)]
    for at in reversed(guesses[-(_GUESSES if len(source) < _LONG else _GUESSES_IF_LONG) :]):
        tail = _as_returned(source[at + 1 :], objection)
        if tail is not None and _is_boundary(source, at, objection):
            split = source[: at + 1] + tail
            if not objection(split):
                return split
    return f"return eval({json.dumps(source)})" if is_script(source) else source


def _as_returned(text: str, objection: Objection) -> str | None:
    text = text.rstrip().rstrip(";").rstrip()
    if not text or _STATEMENT.match(text):
        return None
    returned = f"return ({text}\n)"
    return None if objection(returned) else returned


def _is_boundary(source: str, at: int, objection: Objection) -> bool:
    """Whether a statement ends at that character. Its rest is known to be an expression."""
    head, rest = source[: at + 1], source[at + 1 :]
    # A parenthesis that closes nothing is an error, except in a comment.
    if objection(head) or not objection(f"{head}){rest}"):
        return False
    match source[at]:
        case ";":
            return True
        case "}":
            # After a block a declaration may follow on the same line, after an object it may not.
            return not objection(f"{head} var {_PROBE};{rest}")
        case _:
            # Without the line break it is an error, so that is where the semicolon was left out.
            return bool(objection(f"{head.rstrip()} {rest.lstrip()}"))
