"""The type names that definitions use, and what each stands for in Python.

Names are Elsa's aliases, in any case, with arrays (`Int32[]`), nullable (`Int32?`) and generic
(`List<String>`) forms; a full .NET name counts by its class. What converting does is `conversion`.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from uuid import UUID

from holdfast.codec import scalars
from holdfast.codec.conversion import (
    Type,
    anything,
    dictionary,
    distinct,
    document,
    enumeration,
    integer,
    nullable,
    parsed,
    scalar,
    sequence,
)

_DAWN = datetime.min.replace(tzinfo=UTC)
_MAX_NESTING = 8
_MAX_LENGTH = 1000  # names come with data from outside, and we remember them


def _status_names() -> Iterator[tuple[str, int]]:
    """What .NET calls the status codes: the standard phrases in PascalCase, and some of its own."""
    for status in HTTPStatus:
        yield re.sub(r"\W", "", status.phrase.title() if status != HTTPStatus.OK else "OK"), status.value
    yield from {
        "Ambiguous": 300, "Moved": 301, "Redirect": 302, "RedirectMethod": 303, "RedirectKeepVerb": 307,
        "IMUsed": 226, "Unused": 306, "RequestEntityTooLarge": 413, "RequestUriTooLong": 414,
        "RequestedRangeNotSatisfiable": 416, "UnprocessableEntity": 422, "UnprocessableContent": 422,
        "HttpVersionNotSupported": 505,
    }.items()  # fmt: skip


_STATUS_CODES = dict(_status_names())


def _status_code(value: Any) -> int | None:
    if isinstance(value, str) and value in _STATUS_CODES:
        return _STATUS_CODES[value]
    return scalars.whole_number(value)


OBJECT = anything("Object")
STRING = scalar("String", str, scalars.text, is_text=True)
URI = scalar("Uri", str, scalars.text, is_text=True)
BOOLEAN = scalar("Boolean", bool, scalars.boolean, False)
BYTE = integer("Byte", 0, 2**8 - 1)
INT16 = integer("Int16", -(2**15), 2**15 - 1)
INT32 = integer("Int32", -(2**31), 2**31 - 1)
INT64 = integer("Int64", -(2**63), 2**63 - 1)
SINGLE = scalar("Single", float, scalars.floating, 0.0)
DOUBLE = scalar("Double", float, scalars.floating, 0.0)
DECIMAL = scalar("Decimal", Decimal, scalars.decimal, Decimal(0))
GUID = scalar("Guid", UUID, scalars.guid, UUID(int=0))
DATE_TIME = parsed("DateTime", scalars.instant, _DAWN)
DATE_TIME_OFFSET = parsed("DateTimeOffset", scalars.instant, _DAWN)
DATE_ONLY = scalar("DateOnly", date, scalars.day, date.min)
TIME_ONLY = scalar("TimeOnly", time, scalars.clock, time.min)
TIME_SPAN = scalar("TimeSpan", timedelta, scalars.span, timedelta(0))
BYTE_ARRAY = scalar("ByteArray", bytes, scalars.octets)
JSON = document("JSON")
JSON_OBJECT = dictionary("JsonObject", OBJECT)
JSON_ARRAY = sequence("JsonArray", OBJECT)
OBJECT_DICTIONARY = dictionary("ObjectDictionary", OBJECT)
STRING_DICTIONARY = dictionary("StringDictionary", STRING)
HTTP_STATUS_CODE = parsed("HttpStatusCode", _status_code, 0)

_NAMED = (
    OBJECT, STRING, URI, BOOLEAN, BYTE, INT16, INT32, INT64, SINGLE, DOUBLE, DECIMAL, GUID, DATE_TIME,
    DATE_TIME_OFFSET, DATE_ONLY, TIME_ONLY, TIME_SPAN, BYTE_ARRAY, JSON, JSON_OBJECT, JSON_ARRAY,
    OBJECT_DICTIONARY, STRING_DICTIONARY, HTTP_STATUS_CODE,
    integer("SByte", -(2**7), 2**7 - 1),
    integer("UInt16", 0, 2**16 - 1),
    integer("UInt32", 0, 2**32 - 1),
    integer("UInt64", 0, 2**64 - 1),
    dictionary("JObject", OBJECT),
    sequence("JArray", OBJECT),
    dictionary("StringMap", STRING),
    dictionary("ObjectMap", OBJECT),
    enumeration("FlowJoinMode", "WaitAll", "WaitAny", "WaitAllActive"),
    enumeration("ForkJoinMode", "WaitAll", "WaitAny"),
    enumeration("LogPersistenceMode", "Inherit", "Include", "Exclude"),
    enumeration("MergeMode", "None", "Stream", "Merge", "Converge", "Cascade", "Race"),
    enumeration("SwitchMode", "MatchFirst", "MatchAny"),
)  # fmt: skip

# Types of which we know no more than that they exist: their values are whatever JSON says.
_DOCUMENTS = (
    "JsonElement", "JsonNode", "Stream", "HttpRequest", "HttpResponse", "HttpResponseMessage",
    "HttpHeaders", "RouteData", "FormFile", "HttpFile", "Downloadable", "HttpRequestException",
    "HttpEndpointBookmarkPayload", "FlowScope", "Token", "ExceptionState", "FaultException",
    "VariablesDictionary", "FaultStrategy", "ContinueWithIncidentsStrategy",
    "WorkflowInstanceStorageDriver", "WorkflowStorageDriver", "MemoryStorageDriver",
    "AllowAlwaysStrategy", "SingletonStrategy", "CorrelatedSingletonStrategy", "CorrelationStrategy",
    "EventStimulus", "RunTaskStimulus", "DispatchWorkflowStimulus", "ExecuteWorkflowStimulus",
    "BulkDispatchWorkflowsStimulus", "BackgroundActivityStimulus", "ExecuteWorkflowResult",
    "DelayPayload", "TimerTriggerPayload", "TimerBookmarkPayload", "StartAtPayload",
    "CronTriggerPayload", "CronBookmarkPayload", "RetryAttemptRecordList", "AlterationPlanParams",
    "WebhookEvent",
)  # fmt: skip

_TYPES = {kind.name.lower(): kind for kind in (*_NAMED, *map(document, _DOCUMENTS))} | {
    "long": INT64,
    "byte[]": BYTE_ARRAY,
    "expandoobject": JSON,
}
_LISTS = {
    name.lower(): name
    for name in (
        "List",
        "Collection",
        "IList",
        "ICollection",
        "IEnumerable",
        "IReadOnlyList",
        "IReadOnlyCollection",
    )
}
_SETS = {name.lower(): name for name in ("HashSet", "ISet")}
_DICTIONARIES = {name.lower(): name for name in ("Dictionary", "IDictionary", "IReadOnlyDictionary")}

_GENERIC = re.compile(r"(?P<name>[\w.+]+)(?:<(?P<arguments>.+)>|`[0-9]+\[(?P<clr_arguments>.+)\])")


def find_type(alias: str | None) -> Type | None:
    """The type with that name; None when nobody knows it."""
    if not alias or len(alias) > _MAX_LENGTH:
        return None
    return _find_once(alias)


@lru_cache(maxsize=2048)
def _find_once(alias: str) -> Type | None:
    return _find(alias.removeprefix("UnregisteredClrType:"), _MAX_NESTING)


def _find(alias: str, nesting: int) -> Type | None:
    if not nesting:
        return None
    name = next(_split(alias))  # what follows a comma is the assembly
    named = _TYPES.get(_class_name(name))
    if named is not None:
        return named
    if name.endswith("?"):
        inner = _find(name[:-1], nesting - 1)
        return None if inner is None else nullable(inner)
    if name.endswith("[]"):
        inner = _find(name[:-2], nesting - 1)
        return None if inner is None else sequence(f"{inner.name}[]", inner)
    if match := _GENERIC.fullmatch(name):
        if match["arguments"]:
            arguments = list(_split(match["arguments"]))
        else:  # each in brackets of its own, for the sake of its assembly
            arguments = [argument[1:-1] for argument in _split(match["clr_arguments"])]
        found = [_find(argument, nesting - 1) for argument in arguments]
        known = [argument for argument in found if argument is not None]
        return _generic(_class_name(match["name"]), known) if len(known) == len(found) else None
    return None


def _generic(name: str, arguments: list[Type]) -> Type | None:
    match arguments:
        case [element] if name in _LISTS:
            return sequence(f"{_LISTS[name]}<{element.name}>", element)
        case [element] if name in _SETS:
            return sequence(f"{_SETS[name]}<{element.name}>", element, build=distinct)
        case [inner] if name == "nullable":
            return nullable(inner)
        case [key, values] if name in _DICTIONARIES:
            return dictionary(f"{_DICTIONARIES[name]}<{key.name}, {values.name}>", values)
        case _:
            return None


def _class_name(name: str) -> str:
    return re.split(r"[.+]", name)[-1].lower() if "<" not in name and "`" not in name else name.lower()


def _split(text: str) -> Iterator[str]:
    """The parts between commas, leaving commas inside brackets alone."""
    depth, start = 0, 0
    for index, character in enumerate(text):
        if character in "<[":
            depth += 1
        elif character in ">]":
            depth -= 1
        elif character == "," and not depth:
            yield text[start:index].strip()
            start = index + 1
    yield text[start:].strip()
