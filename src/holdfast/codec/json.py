"""JSON text and plain values.

`decode` takes what a strict parser takes and says where it stopped; `encode` writes compact JSON, the
same for the same value. Both are msgspec, with the checks it leaves out: depth, NaN, and values it
would turn into text without a word. What happens to those is `plain`.
"""

import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from holdfast.codec.plain import MAX_DEPTH, MAX_DIGITS, is_plain, make_bare, make_plain
from holdfast.errors import Invalid

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_POSITION = re.compile(r"JSON is malformed: (?P<reason>.*) \(byte (?P<byte>[0-9]+)\)")
_SURROGATES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)")

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()
_bare_encoder = msgspec.json.Encoder(decimal_format="number")


class JsonInvalid(Invalid):
    """The text is not JSON, or JSON beyond our limits."""

    code = "json.invalid"


def decode(text: bytes | str) -> Any:
    """Read JSON. Integers are exact, other numbers are floats; of duplicate members the last counts."""
    try:
        raw = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise JsonInvalid(
            f"The text holds half a character at {error.start}. Send well-formed text."
        ) from None
    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    try:
        value = _decoder.decode(raw)
    except RecursionError:
        raise _too_deep() from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _explain(error, raw) from None
    # Few documents have that many brackets, and counting bytes is much quicker than walking values.
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise _too_deep()
    return value


def encode(value: Any) -> bytes:
    """Write JSON. Raises NotEncodable with the path to what JSON cannot carry."""
    try:
        if is_plain(value):
            return _encoder.encode(value)
    except ValueError:  # half a character, or too many digits: making it plain tells where
        pass
    return _encoder.encode(make_plain(value))


def encode_text(value: Any) -> str:
    """As `encode`, where text is wanted."""
    return encode(value).decode()


def encode_bare(value: Any) -> bytes:
    """As `encode`, for readers that know nothing of our islands.

    A decimal is a number, an instant, a duration and bytes are text, a set is a list.
    """
    try:
        if is_plain(value):
            return _bare_encoder.encode(value)
    except ValueError:
        pass
    return _bare_encoder.encode(make_bare(value))


def _is_deeper(value: Any, levels: int) -> bool:
    if type(value) is dict:
        children: Iterable[Any] = cast("dict[str, Any]", value).values()
    elif type(value) is list:
        children = cast("list[Any]", value)
    else:
        return False
    if not levels:
        return True
    for child in children:
        if (type(child) is dict or type(child) is list) and _is_deeper(child, levels - 1):
            return True
    return False


def _too_deep() -> JsonInvalid:
    return JsonInvalid(f"The JSON is nested deeper than {MAX_DEPTH} levels. Flatten it.")


def _explain(error: Exception, raw: bytes) -> JsonInvalid:
    if isinstance(error, UnicodeDecodeError):
        return _at(_first_bad_byte(raw), raw, "a byte that is not UTF-8")
    if match := _POSITION.fullmatch(str(error)):
        return _at(int(match["byte"]), raw, match["reason"])
    if isinstance(error, msgspec.ValidationError):  # a number: all else is malformed
        return JsonInvalid(
            f"{error}. Integers have at most {MAX_DIGITS} digits, other numbers at most 1.8e308. "
            f"Send a larger one as text."
        )
    for match in _SURROGATES.finditer(raw):
        if match["half"]:  # msgspec takes it for the end of the text
            return _at(match.start(), raw, "half of a surrogate pair")
    return _at(len(raw), raw, "the text ends before the JSON does")


def _at(position: int, raw: bytes, reason: str) -> JsonInvalid:
    line = raw.count(b"\n", 0, position) + 1
    start = raw.rfind(b"\n", 0, position) + 1
    column = len(raw[start:position].decode(errors="replace")) + 1
    return JsonInvalid(f"This is not JSON: {reason} at line {line}, column {column}. Correct it there.")


def _first_bad_byte(raw: bytes) -> int:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0
