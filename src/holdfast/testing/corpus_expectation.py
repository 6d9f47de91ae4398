"""What a case of the corpus may expect: every key of `expect` and `derived`, and of a step's own.

The types are the form. Whatever is not written down here is refused, so that a scenario that says
something we do not understand can never pass. Whether it came true is for `corpus_match`.
"""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

Version = int | Literal["Latest", "Published", "LatestOrPublished"]


class Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A JSON object whose members are all known."""


class Lines(Form, frozen=True, kw_only=True):
    equals: list[str] | UnsetType = UNSET
    unordered: list[str] | UnsetType = UNSET
    contains: list[str] | UnsetType = UNSET
    excludes: list[str] | UnsetType = UNSET
    contains_any: list[list[str]] | UnsetType = UNSET
    count: int | UnsetType = UNSET
    counts: dict[str, int] | UnsetType = UNSET
    first: str | UnsetType = UNSET
    last: str | UnsetType = UNSET
    any_of: list[list[str]] | UnsetType = UNSET


class Waiting(Form, frozen=True, kw_only=True):
    """A bookmark or a trigger."""

    activity_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    payload: dict[str, Any] | UnsetType | None = UNSET


class Complaint(Form, frozen=True, kw_only=True):
    """An incident or a validation error."""

    activity_id: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    message_starts_with: str | UnsetType = UNSET


class JournalCount(Form, frozen=True, kw_only=True):
    activity_id: str
    event_name: str
    count: int


class Keys(Form, frozen=True, kw_only=True):
    has_key: str | UnsetType = UNSET
    lacks_key: str | UnsetType = UNSET


class OutputKeys(Form, frozen=True, kw_only=True):
    has_keys: list[str] | UnsetType = UNSET


class RecordKeys(Form, frozen=True, kw_only=True):
    activity_id: str | UnsetType = UNSET
    activity_name: str | UnsetType = UNSET
    activity_state: Keys | UnsetType = UNSET
    outputs: OutputKeys | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.activity_id is UNSET and self.activity_name is UNSET:
            raise ValueError("an activity record is found by `activityId` or `activityName`; give one")


class InstanceMembers(Form, frozen=True, kw_only=True):
    name: str | UnsetType | None = UNSET
    correlation_id: str | UnsetType | None = UNSET
    version: int | UnsetType = UNSET


class InstanceCount(Form, frozen=True, kw_only=True):
    definition_id: str | UnsetType = UNSET
    correlation_id: str | UnsetType | None = UNSET
    status: str | UnsetType = UNSET
    sub_status: str | UnsetType = UNSET
    outputs: dict[str, Any] | UnsetType = UNSET
    properties: dict[str, Any] | UnsetType = UNSET
    count: int | UnsetType = UNSET


class FaultedCount(Form, frozen=True, kw_only=True):
    definition_ids: list[str]
    count: int


class Triggers(Form, frozen=True, kw_only=True):
    equals: list[Waiting] | UnsetType = UNSET
    min_count: int | UnsetType = UNSET


class DefinitionMembers(Form, frozen=True, kw_only=True):
    definition_id: str
    version: Version = "Latest"
    number: int | UnsetType = UNSET
    activities: list[dict[str, Any]] | UnsetType = UNSET


class Expectation(Form, frozen=True, kw_only=True):
    """What `expect` and `derived` of a case may say, and `expect` of a step that drives an instance."""

    status: str | UnsetType = UNSET
    sub_status: str | UnsetType = UNSET
    lines: Lines | UnsetType = UNSET
    outputs: dict[str, Any] | UnsetType = UNSET
    variables: dict[str, Any] | UnsetType = UNSET
    bookmarks: list[Waiting] | UnsetType = UNSET
    incidents: list[Complaint] | UnsetType = UNSET
    journal: list[JournalCount] | UnsetType = UNSET
    activities: dict[str, str] | UnsetType = UNSET
    not_executed: list[str] | UnsetType = UNSET
    activity_outcomes: dict[str, list[str]] | UnsetType = UNSET
    fault_counts: dict[str, int] | UnsetType = UNSET
    activity_records: list[RecordKeys] | UnsetType = UNSET
    instance: InstanceMembers | UnsetType = UNSET
    instances: list[InstanceCount] | UnsetType = UNSET
    child_instances: list[InstanceCount] | UnsetType = UNSET
    faulted_instances: FaultedCount | UnsetType = UNSET
    triggers: list[Waiting] | Triggers | UnsetType = UNSET
    definitions: list[DefinitionMembers] | UnsetType = UNSET
    equals_json_file: str | UnsetType = UNSET
    json_path: dict[str, Any] | UnsetType = UNSET


class PublishExpectation(Form, frozen=True, kw_only=True):
    succeeded: bool | UnsetType = UNSET
    version: int | UnsetType = UNSET
    validation_error_count: int | UnsetType = UNSET
    validation_errors: list[Complaint] | UnsetType = UNSET


class DocumentExpectation(Form, frozen=True, kw_only=True):
    version: int | UnsetType = UNSET
    is_published: bool | UnsetType = UNSET
    activities: list[dict[str, Any]] | UnsetType = UNSET
    json_path: dict[str, Any] | UnsetType = UNSET
    json_path_absent: list[str] | UnsetType = UNSET


class ConsumersExpectation(Form, frozen=True, kw_only=True):
    equals: list[str] | UnsetType = UNSET
    contains: list[str] | UnsetType = UNSET
    not_found: bool | UnsetType = UNSET


class RoundTripExpectation(Form, frozen=True, kw_only=True):
    no_error: bool | UnsetType = UNSET


class ResponseExpectation(Form, frozen=True, kw_only=True):
    status_code: int | UnsetType = UNSET
    body: str | UnsetType = UNSET
    json: dict[str, Any] | UnsetType = UNSET
