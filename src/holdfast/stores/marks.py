"""The mark of an edition: equal for as long as nothing about a definition changes.

It is a digest of what an edition shows, without the documents, which their hashes stand for. Whoever
publishes compares it under a lock with what is there then; so it need not be the same in two stores.
"""

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from holdfast.store import Schedule, VersionHeader


def mark_of(headers: Iterable[VersionHeader], schedules: Iterable[Schedule]) -> str:
    """The mark of an edition with these versions and schedules, in whatever order they come."""
    versions = [
        (h.version, h.version_id, h.content_hash, h.is_latest, h.is_published, h.is_usable) for h in headers
    ]
    cursors = [
        (s.activity_id, s.version_id, s.cursor.next_at, s.cursor.last_at, s.cursor.waiting) for s in schedules
    ]
    shown = [sorted(versions), sorted(cursors, key=lambda cursor: cursor[0])]
    return sha256(msgspec.json.encode(shown)).hexdigest()
