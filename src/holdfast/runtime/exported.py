"""An instance as a document that leaves the database: to be looked at, archived, or taken in elsewhere.

JSON with a format of its own around the state, whose format is the engine's. The same document is a line
of an archive, there with the journal.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.codec import encode
from holdfast.commit import Columns, Segment
from holdfast.errors import Invalid

FORMAT = 1
KIND = "holdfast.instance"


NOTHING = msgspec.Raw(b"null")


class ExportUnreadable(Invalid):
    code = "export.unreadable"


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A segment of the journal."""

    sequence: int
    records: int
    version: int
    summary: msgspec.Raw
    body: msgspec.Raw


class Exported(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is known of an instance."""

    format: int
    kind: str
    tenant: str = ""
    id: str
    revision: int
    columns: Columns
    state: msgspec.Raw = NOTHING
    """`null` when it had not begun."""
    journal: tuple[Page, ...] = ()


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Exported)


class _Heading(msgspec.Struct):
    format: int = 0
    kind: str = ""


def export(
    *,
    tenant: str,
    instance_id: str,
    revision: int,
    columns: Columns,
    state: bytes | None,
    journal: tuple[Segment, ...] = (),
) -> bytes:
    """The document, on one line."""
    return _encoder.encode(
        Exported(
            format=FORMAT,
            kind=KIND,
            tenant=tenant,
            id=instance_id,
            revision=revision,
            columns=columns,
            state=NOTHING if state is None else _on_one_line(state),
            journal=tuple(
                Page(
                    sequence=one.sequence,
                    records=one.records,
                    version=one.version,
                    summary=_on_one_line(one.summary),
                    body=_on_one_line(one.body),
                )
                for one in journal
            ),
        )
    )


def _on_one_line(text: bytes) -> msgspec.Raw:
    return msgspec.Raw(text if b"\n" not in text else msgspec.json.format(text, indent=0))


def read_export(document: bytes | str | Mapping[str, Any]) -> Exported:
    """Raises ExportUnreadable."""
    text = encode(document) if isinstance(document, Mapping) else document
    try:
        heading = msgspec.json.decode(text, type=_Heading)
        if heading.kind != KIND:
            raise ExportUnreadable(
                f"This is no exported instance: its kind is {heading.kind!r}, not {KIND!r}."
            )
        if heading.format > FORMAT:
            raise ExportUnreadable(
                f"This export has format {heading.format}; this version of Holdfast reads up to {FORMAT}. "
                f"Take it in with the version that wrote it, or a newer one."
            )
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ExportUnreadable(f"This is no exported instance: {problem}") from problem
