"""What stands on the command line, gathered: workflows, those beside them, and their activities."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from holdfast.assembly import load_plugins
from holdfast.authoring import ActivityTypes
from holdfast.clock import SystemClock, TimeOrderedIds
from holdfast.errors import Invalid
from holdfast.local import Catalogue
from holdfast.plugin import Plugins
from holdfast.sources.files import (
    FileUnusable,
    WorkflowFile,
    activities_in,
    expand,
    import_activities,
    import_machines,
    read_companions,
    read_workflow,
)

__all__ = [
    "FileUnusable",
    "Surroundings",
    "WorkflowFile",
    "activities_in",
    "expand",
    "gather",
    "import_activities",
    "import_machines",
    "read_companions",
    "read_workflow",
]


class Surroundings(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything some workflows were given to work with."""

    plugins: Plugins
    companions: list[WorkflowFile]
    types: ActivityTypes
    """The host's, and those of workflows that are usable as activities."""


def gather(
    workflows: Sequence[WorkflowFile], companions: Iterable[Path], modules: Iterable[str]
) -> Surroundings:
    """What `--with` and `--activities` name, and what the workflows' own files bring along."""
    beside = read_companions(companions, besides=[w.path for w in workflows])
    own = [made for workflow in (*workflows, *beside) for made in workflow.activities]
    plugins = load_plugins([*own, *import_activities(modules)])
    catalogue = Catalogue(plugins.activities, plugins.expressions, TimeOrderedIds(SystemClock()))
    for workflow in (*beside, *workflows):
        try:
            catalogue.provide(workflow.definition().source)
        except Invalid:  # somebody else says so, and the others can do without
            continue
    return Surroundings(plugins=plugins, companions=beside, types=catalogue.types)
