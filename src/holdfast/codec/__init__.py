"""The one way values become JSON and back.

`json` is text and plain values; `payload` adds the marks by which Elsa keeps what JSON cannot say (a
decimal, an instant, a set); `types` are the type names of definitions, `annotations` finds the same
types from Python's side, `conversion` is what a type does; `timespan` is how .NET writes a duration.
"""

from holdfast.codec.annotations import type_of
from holdfast.codec.conversion import ConversionFailed, Type
from holdfast.codec.json import JsonInvalid, decode, encode, encode_bare, encode_text
from holdfast.codec.payload import decode_payload, encode_payload, read_payload, write_payload
from holdfast.codec.plain import MAX_DEPTH, NotEncodable
from holdfast.codec.shapes import is_list, is_object, lower_keys, without_structs
from holdfast.codec.timespan import TimeSpanInvalid, format_timespan, parse_timespan
from holdfast.codec.types import (
    BOOLEAN,
    BYTE_ARRAY,
    DATE_TIME,
    DATE_TIME_OFFSET,
    DECIMAL,
    DOUBLE,
    GUID,
    INT32,
    INT64,
    JSON,
    OBJECT,
    OBJECT_DICTIONARY,
    STRING,
    STRING_DICTIONARY,
    TIME_SPAN,
    find_type,
)

__all__ = [
    "BOOLEAN",
    "BYTE_ARRAY",
    "DATE_TIME",
    "DATE_TIME_OFFSET",
    "DECIMAL",
    "DOUBLE",
    "GUID",
    "INT32",
    "INT64",
    "JSON",
    "MAX_DEPTH",
    "OBJECT",
    "OBJECT_DICTIONARY",
    "STRING",
    "STRING_DICTIONARY",
    "TIME_SPAN",
    "ConversionFailed",
    "JsonInvalid",
    "NotEncodable",
    "TimeSpanInvalid",
    "Type",
    "decode",
    "decode_payload",
    "encode",
    "encode_bare",
    "encode_payload",
    "encode_text",
    "find_type",
    "format_timespan",
    "is_list",
    "is_object",
    "lower_keys",
    "parse_timespan",
    "read_payload",
    "type_of",
    "without_structs",
    "write_payload",
]
