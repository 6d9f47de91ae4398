"""The activity types a host knows, by name and version."""

from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.authoring.activity import activity_type
from holdfast.authoring.descriptor import ActivityType
from holdfast.errors import Conflict


class DuplicateActivityType(Conflict):
    code = "activity.duplicate"

    def __init__(self, name: str, version: int) -> None:
        super().__init__(
            f"Activity type {name} version {version} is registered already. "
            f"Give one of the two another `type` or `version`."
        )


class ActivityTypes:
    """A registry. Names are matched exactly; without a version the highest one is meant."""

    def __init__(self, activities: Iterable[Any] = ()) -> None:
        self._versions: dict[str, dict[int, ActivityType]] = {}
        self._by_version_id: dict[str, ActivityType] = {}
        self._by_definition_id: dict[str, ActivityType] = {}
        self.revision = 0
        """Grows with every change, so that whoever compiled against it can tell that it moved."""
        for made in activities:
            self.add(made)

    def add(self, made: Any) -> None:
        """Something decorated with `@activity`, or an `ActivityType`."""
        found = activity_type(made)
        versions = self._versions.setdefault(found.name, {})
        known = versions.get(found.descriptor.version)
        if known is not None and known.implementation is not found.implementation:
            raise DuplicateActivityType(found.name, found.descriptor.version)
        versions[found.descriptor.version] = found
        if found.definition is not None:
            self._by_version_id[found.definition.id] = found
            latest = self._by_definition_id.get(found.definition.definition_id)
            if latest is None or latest.descriptor.version <= found.descriptor.version:
                self._by_definition_id[found.definition.definition_id] = found
        self.revision += 1

    def find_workflow(
        self, *, version_id: str | None = None, definition_id: str | None = None
    ) -> ActivityType | None:
        """A workflow usable as activity, by the id of one version, or the latest of a definition."""
        if version_id is not None:
            return self._by_version_id.get(version_id)
        return self._by_definition_id.get(definition_id or "")

    def find(self, name: str, version: int | None = None) -> ActivityType | None:
        """Exactly that version, else the highest one, else None."""
        versions = self._versions.get(name)
        if not versions:
            return None
        return versions.get(version) or versions[max(versions)]  # type: ignore[arg-type]  # None is no key

    def copy(self) -> "ActivityTypes":
        """An independent registry with the same types."""
        other = ActivityTypes()
        other._versions = {name: dict(versions) for name, versions in self._versions.items()}
        other._by_version_id = dict(self._by_version_id)
        other._by_definition_id = dict(self._by_definition_id)
        other.revision = self.revision
        return other

    def replace(self, made: Any) -> None:
        """Like `add`, but takes the place of a type with that name and version. For tests."""
        found = activity_type(made)
        self._versions.setdefault(found.name, {})[found.descriptor.version] = found
        self.revision += 1

    def __iter__(self) -> Iterator[ActivityType]:
        for versions in self._versions.values():
            yield from versions.values()

    def names(self) -> list[str]:
        """All type names, sorted."""
        return sorted(self._versions)
