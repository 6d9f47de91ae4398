"""SpiffWorkflow, the engine in Python that people know: n tasks in a line.

Compared is what happens between having a specification and having a finished workflow: making the
instance and executing its tasks. Building the specification is left out here, as compiling is with us.
Its task tree, with a time of change in each task, is its journal, and is on; it cannot be off.

It is given every advantage we know of. Tasks are its core ones, not those of BPMN, which do more.
Each is a spec of our own whose hook makes the same call as our activity, without an event around it.
The driver runs a task and goes on with the child, rather than let `run_all` look for what is ready
(a sixth more for ten tasks). Its loggers are told that nobody listens, else it collects facts for them.
"""

import logging
import sys
from typing import Any

from SpiffWorkflow.specs import Simple, WorkflowSpec
from SpiffWorkflow.workflow import Workflow

from holdfast.authoring import Console

PACKAGE = "SpiffWorkflow"


class WriteLine(Simple):
    """A task that writes a line."""

    def __init__(self, spec: WorkflowSpec, name: str, console: Console) -> None:
        super().__init__(spec, name)
        self._console = console

    def _run_hook(self, my_task: Any) -> bool:
        self._console.write_line("x")
        return True


def line(tasks: int, console: Console) -> WorkflowSpec:
    """A specification of so many tasks, one after another."""
    for name in ("spiff", "spiff.workflow", "spiff.task"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It looks ahead by recursion, a call deeper for each task; at 1,000 Python would stop it.
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 4 * tasks))
    spec = WorkflowSpec(name="line", addstart=True)
    last = spec.start
    for number in range(tasks):
        task = WriteLine(spec, f"w{number}", console)
        last.connect(task)
        last = task
    return spec


def run(spec: WorkflowSpec) -> Workflow:
    """Make an instance and execute all of it."""
    workflow = Workflow(spec)
    task = workflow.task_tree
    while task is not None:
        task.run()
        following = task.children
        task = following[0] if following else None
    return workflow
