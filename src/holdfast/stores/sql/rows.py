"""What a transaction writes, as plain rows by table.

The commits of a group, or requests from outside, are taken apart here, once for all databases: a row is
a tuple in the order of `COLUMNS`. How rows get into tables quickly is each database's own affair, and
so is how it spells an instant; both are said by the modules named after them.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zlib import crc32

from holdfast.commit import CONTINUE, Birth, Columns, Commit, Envelope, Place, Then
from holdfast.instance import SubStatus
from holdfast.store import Admission, Admitted, Committed

Row = tuple[Any, ...]
Moment = Callable[[datetime], Any]

LIFE = timedelta(hours=24)
"""How long an idempotency key lives when nobody says."""

INSTANCE = (
    "tenant",
    "id",
    "shard",
    "revision",
    "turn",
    "format",
    "state",
    "definition_id",
    "version_id",
    "version",
    "status",
    "sub_status",
    "created_at",
    "updated_at",
    "finished_at",
    "correlation_id",
    "name",
    "parent_id",
    "incident_count",
    "paused",
)

COLUMNS: dict[str, tuple[str, ...]] = {
    "dedupe": ("tenant", "key", "request", "instance_id", "expires"),
    "activations": ("tenant", "key", "instance_id"),
    "instances": INSTANCE,
    "inbox": ("shard", "lane", "tenant", "instance_id", "kind", "payload", "reply", "trace"),
    "timers": ("tenant", "instance_id", "timer", "shard", "due", "kind", "payload", "trace"),
    "bookmarks": ("tenant", "instance_id", "id", "key", "shard"),
    "attempts": ("tenant", "instance_id", "execution", "shard", "payload"),
    "journal": ("tenant", "instance_id", "seq", "records", "version", "summary", "body"),
    "outbox": ("shard", "stream", "tenant", "instance_id", "body"),
    "stimuli": (
        "id",
        "tenant",
        "key",
        "shard",
        "instance_id",
        "correlation_id",
        "only",
        "payload",
        "tries",
        "sent_at",
        "expires",
    ),
    "dead_letters": (
        "tenant",
        "id",
        "instance_id",
        "shard",
        "kind",
        "payload",
        "reply",
        "attempts",
        "deaths",
        "error",
        "sent_at",
        "died_at",
        "trace",
    ),
}
"""What we say of a new row; the rest has a default, or is the time at which it is written."""

STAMPED = {"inbox": "sent_at"}
"""Tables with a column for the time at which the row was written."""
DEFAULTING_TO_NOW = {("stimuli", "sent_at")}
"""Columns that get the time at which the row is written when we do not know a better one."""
LATER = {("dedupe", "expires"): LIFE}
"""Columns that get a time so much later than now when nobody says."""

BELONGINGS = {
    "instances": "id",
    "blobs": "owner",
    "bookmarks": "instance_id",
    "timers": "instance_id",
    "attempts": "instance_id",
    "activations": "instance_id",
    "stimuli": "instance_id",
    "journal": "instance_id",
}
"""What goes with an instance: the tables, and the column that names it. Its inbox comes too late."""

_STATUSES = {sub_status: (sub_status.status.value, sub_status.value) for sub_status in SubStatus}


def text(payload: bytes | None) -> str | None:
    """Payloads are JSON, so text in the database: readable, and small where it is compressed."""
    return None if payload is None else payload.decode()


def raw(payload: str | None) -> bytes | None:
    return None if payload is None else payload.encode()


def aware(instant: datetime) -> datetime:
    """The instant, in UTC."""
    if instant.tzinfo is UTC:
        return instant
    if instant.utcoffset() is None:
        raise ValueError(f"{instant.isoformat()} has no time zone, so it is no instant. Give it one.")
    return instant.astimezone(UTC)


class Sent(NamedTuple):
    """Whose message a row of the inbox is: that of the commit or request at position `by`."""

    by: int
    shard: int
    lane: int
    is_continue: bool = False


class InHandRow(NamedTuple):
    """A message in the inbox that must be there as what it was when it was read, for the commit `by`."""

    by: int
    shard: int
    lane: int
    seq: int
    kind: str | None
    fate: str


class Group:
    """The rows of one transaction. `index` is a position in what they were made from."""

    def __init__(self, moment: Moment, commits: Sequence[Commit] = (), *, shards: int = 1) -> None:
        self._moment = moment
        self._shards = shards
        self.inserts: defaultdict[str, list[Row]] = defaultdict(list)
        self.sent: list[Sent] = []
        self.changes: list[tuple[int, int, bool, bool, Row]] = []
        """Index, expected revision, whether it may have ended, whether it goes, and its new row."""
        self.in_hand: list[InHandRow] = []
        self.timers_in_hand: list[tuple[int, str, str, str]] = []
        self.timers_gone: list[Row] = []
        self.bookmarks_gone: list[Row] = []
        self.attempts_gone: list[Row] = []
        self.freed: list[Row] = []
        self.deleted: list[Row] = []
        self.answers: list[Row] = []
        self._revisions: list[int] = []
        for commit in commits:
            self._add(commit)

    def _add(self, commit: Commit) -> None:
        index, tenant, change = len(self._revisions), commit.tenant, commit.change
        revision, shard = 1, commit.births[0].shard if commit.births else 0
        for birth in commit.births:
            self.bear(tenant, birth, commit.turn)
        if change is not None:
            revision, shard = change.expects + 1, change.shard
            row = self._instance(
                tenant, commit.instance_id, shard, revision, commit.turn, change.state, change.columns
            )
            may_have_ended = change.reopens or commit.deletes
            self.changes.append((index, change.expects, may_have_ended, commit.deletes, row))
        self._revisions.append(revision)
        self._take_in_hand(index, commit, shard)
        if commit.deletes:
            self.deleted.append((tenant, commit.instance_id))
        else:
            self._withdraw(commit)
            self._keep(tenant, commit.instance_id, shard, commit)
        self._leave(commit, shard)
        for envelope in commit.messages:
            self._send(index, envelope)

    def admit(self, admission: Admission) -> None:
        """A request whose guards, if it has any, are decided by their rows alone."""
        message, index = admission.message, len(self._revisions)
        self._revisions.append(0)
        if admission.key is not None:
            expires = None if admission.expires is None else self._moment(admission.expires)
            row = (message.tenant, admission.key, admission.request, message.instance_id, expires)
            self.inserts["dedupe"].append(row)
        for guard in admission.activations:
            self.inserts["activations"].append((message.tenant, guard.key, message.instance_id))
        if admission.birth is not None:
            self.bear(message.tenant, admission.birth, "")
        self._send(index, message)

    def in_order(self) -> "Group":
        """Sorted by key, so that two groups wait for each other in one direction only."""
        for table in ("dedupe", "activations", "instances"):
            if table in self.inserts:
                self.inserts[table].sort(key=lambda row: row[:2])
        return self

    def committed(self, seqs: Sequence[int]) -> list[Committed]:
        """The answers, once it is known where the messages lie."""
        places: list[list[Place]] = [[] for _ in self._revisions]
        continued: dict[int, Place] = {
            row.by: Place(row.shard, row.lane, row.seq)
            for row in self.in_hand
            if row.fate == Then.CONTINUE.value
        }
        for sent, seq in zip(self.sent, seqs, strict=True):
            place = Place(sent.shard, sent.lane, seq)
            if sent.is_continue:
                continued[sent.by] = place
            else:
                places[sent.by].append(place)
        return [
            Committed(revision, tuple(places[index]), continued.get(index))
            for index, revision in enumerate(self._revisions)
        ]

    def admitted(self, seqs: Sequence[int]) -> list[Admitted]:
        return [
            Admitted(Place(sent.shard, sent.lane, seq)) for sent, seq in zip(self.sent, seqs, strict=True)
        ]

    def _instance(
        self,
        tenant: str,
        instance_id: str,
        shard: int,
        revision: int,
        turn: str,
        state: bytes | None,
        columns: Columns,
    ) -> Row:
        moment, finished_at = self._moment, columns.finished_at
        status, sub_status = _STATUSES[columns.sub_status]
        return (
            tenant,
            instance_id,
            shard,
            revision,
            turn,
            1,
            None if state is None else state.decode(),
            columns.definition_id,
            columns.version_id,
            columns.version,
            status,
            sub_status,
            moment(columns.created_at),
            moment(columns.updated_at),
            None if finished_at is None else moment(finished_at),
            columns.correlation_id,
            columns.name,
            columns.parent_id,
            columns.incident_count,
            columns.is_paused,
        )

    def bear(self, tenant: str, birth: Birth, turn: str) -> None:
        revision = 0 if birth.state is None else 1
        self.inserts["instances"].append(
            self._instance(tenant, birth.instance_id, birth.shard, revision, turn, birth.state, birth.columns)
        )
        self._keep(tenant, birth.instance_id, birth.shard, birth)

    def _take_in_hand(self, index: int, commit: Commit, shard: int) -> None:
        for message in commit.in_hand:
            place = message.place
            if place is not None:
                row = InHandRow(index, place.shard, place.lane, place.seq, message.kind, message.then.value)
                self.in_hand.append(row)
                continue
            if message.timer is not None:
                timer = (commit.tenant, commit.instance_id, message.timer)
                self.timers_in_hand.append((index, *timer))
                if message.then is not Then.KEEP:
                    self.timers_gone.append(timer)
            if message.then is Then.CONTINUE:
                onward = Envelope(
                    tenant=commit.tenant, instance_id=commit.instance_id, shard=shard, kind=CONTINUE
                )
                self._send(index, onward, is_continue=True)

    def _send(self, index: int, envelope: Envelope, *, is_continue: bool = False) -> None:
        lane = int(envelope.lane)
        self.sent.append(Sent(index, envelope.shard, lane, is_continue))
        self.inserts["inbox"].append(
            (
                envelope.shard,
                lane,
                envelope.tenant,
                envelope.instance_id,
                envelope.kind,
                text(envelope.payload),
                envelope.reply,
                envelope.trace,
            )
        )

    def _withdraw(self, commit: Commit) -> None:
        """What nobody wants any more."""
        owner = (commit.tenant, commit.instance_id)
        self.timers_gone += [(*owner, timer) for timer in commit.timers_gone]
        self.bookmarks_gone += [(*owner, wait) for wait in commit.waits_gone]
        self.attempts_gone += [(*owner, execution) for execution in commit.tasks_gone]
        if commit.frees_activations:
            self.freed.append(owner)

    def _keep(self, tenant: str, instance_id: str, shard: int, kept: Commit | Birth) -> None:
        """What an instance waits for, what is done for it in the background, what happened to it."""
        inserts, moment = self.inserts, self._moment
        for timer in kept.timers:
            due, payload = moment(timer.due), text(timer.payload)
            row = (tenant, instance_id, timer.id, shard, due, timer.kind, payload, timer.trace)
            inserts["timers"].append(row)
        for wait in kept.waits:
            inserts["bookmarks"].append((tenant, instance_id, wait.id, wait.key, shard))
        for task in kept.tasks:
            row = (tenant, instance_id, task.execution, shard, text(task.payload))
            inserts["attempts"].append(row)
        for segment in kept.journal:
            summary = segment.summary.decode()
            about = (segment.sequence, segment.records, segment.version, summary, segment.body)
            inserts["journal"].append((tenant, instance_id, *about))

    def _leave(self, commit: Commit, shard: int) -> None:
        """What the turn leaves for others: outbox, stimuli, dead letters, answers."""
        inserts, moment, tenant = self.inserts, self._moment, commit.tenant
        for out in commit.outbox:
            row = (shard, out.stream, tenant, commit.instance_id, text(out.body))
            inserts["outbox"].append(row)
        for stimulus in commit.put_back:
            inserts["stimuli"].append(
                (
                    stimulus.id,
                    stimulus.tenant,
                    stimulus.key,
                    crc32(stimulus.key.encode()) % self._shards,
                    stimulus.instance_id,
                    stimulus.correlation_id,
                    stimulus.only,
                    text(stimulus.payload),
                    stimulus.tries,
                    None if stimulus.sent_at is None else moment(stimulus.sent_at),
                    moment(stimulus.expires),
                )
            )
        for letter in commit.dead_letters:
            envelope = letter.envelope
            inserts["dead_letters"].append(
                (
                    tenant,
                    letter.id,
                    envelope.instance_id,
                    envelope.shard,
                    envelope.kind,
                    text(envelope.payload),
                    envelope.reply,
                    letter.attempts,
                    letter.deaths,
                    letter.error,
                    None if letter.sent_at is None else moment(letter.sent_at),
                    moment(letter.at),
                    envelope.trace,
                )
            )
        self.answers += [(text(answer.body), tenant, answer.key) for answer in commit.answers]
