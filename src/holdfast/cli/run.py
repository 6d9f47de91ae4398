"""`holdfast run`: one workflow, here and now, with everything it does told as it happens."""

from pathlib import Path

import click

from holdfast.cli.group import FAILED, MISUSED, STOPPED, common_options
from holdfast.cli.options import activities_option, with_option
from holdfast.cli.output import Settings, complain, console


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--input", "-i", "inputs", multiple=True, metavar="NAME=VALUE", help="An input. JSON, or plain text."
)
@click.option("--input-json", metavar="OBJECT", help="All inputs as one JSON object.")
@click.option("--variable", "variables", multiple=True, metavar="NAME=VALUE", help="Where a variable begins.")
@click.option(
    "--event", "events", multiple=True, metavar="NAME[=VALUE]", help="Publish an event once it waits."
)
@click.option("--correlation-id", metavar="ID", help="What ties the instance to something outside.")
@click.option("--name", metavar="NAME", help="A name for the instance.")
@with_option
@activities_option
@click.option("--wait", "waits", is_flag=True, help="Sit out timers and delays instead of stopping there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
@click.option("--quiet", "-q", is_flag=True, help="Print only what the workflow itself writes.")
@common_options
@click.pass_obj
def run(
    settings: Settings,
    file: Path,
    inputs: tuple[str, ...],
    input_json: str | None,
    variables: tuple[str, ...],
    events: tuple[str, ...],
    correlation_id: str | None,
    name: str | None,
    companions: tuple[Path, ...],
    modules: tuple[str, ...],
    waits: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Run a workflow and show what happens.

    FILE is a definition as JSON, or a Python file that makes one. It runs in memory until it ends or
    waits; nothing is kept.

    \b
    holdfast run examples/hello.json --input name=Ada
    holdfast run examples/approval.json --event decided=true
    """
    import asyncio

    from holdfast.cli.check import check, print_problems
    from holdfast.cli.files import gather, read_workflow
    from holdfast.cli.report import report, to_json
    from holdfast.cli.session import Given, Session, Terminal
    from holdfast.cli.summary import print_summary, reason_of
    from holdfast.cli.trace import Trace
    from holdfast.cli.values import read_event, read_inputs, read_variables, undeclared

    workflow = read_workflow(file)
    around = gather([workflow], companions, modules)
    problems = check(workflow, around)
    if any(problem.severity == "error" for problem in problems):
        print_problems(console(settings, stderr=True), {workflow.path: problems})
        return MISUSED
    definition = workflow.definition()
    given = Given(
        input=read_inputs(definition, inputs, input_json),
        variables=read_variables(definition, variables),
        correlation_id=correlation_id,
        name=name,
        events=tuple(read_event(text) for text in events),
        waits=waits,
    )
    out = console(settings)
    trace = None if as_json or quiet else Trace(out)
    terminal = Terminal(trace, is_silent=as_json)
    session = Session(around, workflow, trace=trace, terminal=terminal)
    for problem in problems if trace is not None else ():
        complain(settings, f"{problem.path}: {problem.message}", kind="Warning")
    for unknown in undeclared(definition, given.input) if trace is not None else ():
        known = ", ".join(p.name for p in definition.inputs)
        complain(settings, f"the workflow declares no input {unknown!r}, only {known}", kind="Warning")
    stopped = False
    try:
        asyncio.run(session.run(given))
    except KeyboardInterrupt:
        if session.instance is None:  # it had not come to its first wait
            raise
        stopped = True
    instance = session.instance
    assert instance is not None
    if trace is not None:
        print_summary(session, instance, out, has_waited=waits)
    elif as_json:
        click.echo(to_json(report(session, instance)))
    if stopped:
        complain(settings, "Stopped while it was waiting. Nothing was kept.", kind="Note")
        return STOPPED
    if instance.sub_status == "Faulted":
        reason, code = reason_of(instance)
        complain(settings, reason, code=code)
        return FAILED
    return 0
