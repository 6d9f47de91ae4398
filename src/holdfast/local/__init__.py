"""Holdfast in one process and in memory: no database, nothing that survives the process.

`LocalHost` keeps definitions and instances, and carries out whatever passes between them. The command
line runs workflows on it, and `holdfast.testing` puts a clock that tests move and mocks on top.
"""

from holdfast.definitions.versions import DefinitionNotFound, NotPublished
from holdfast.local.catalogue import Catalogue
from holdfast.local.host import LocalHost
from holdfast.local.hosted import HostedInstance
from holdfast.local.records import ActivityRecord

__all__ = [
    "ActivityRecord",
    "Catalogue",
    "DefinitionNotFound",
    "HostedInstance",
    "LocalHost",
    "NotPublished",
]
