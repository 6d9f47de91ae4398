"""The frame around all commands: help in sections, options they share, and how errors end a run.

Nobody sees a traceback who has not asked for one. What we raise on purpose becomes one line with its
code; anything else one line that says how to see more. The branch of an error decides the exit code.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import click

from holdfast import __version__
from holdfast.cli.output import Settings, complain, forget_stdout, make_encodable
from holdfast.errors import HoldfastError, Invalid, NotFound

F = TypeVar("F", bound=Callable[..., Any])

FAILED = 1
MISUSED = 2
STOPPED = 130


class Commands(click.Group):
    """A group that shows its commands in sections and turns errors into one line."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._sections: dict[str, list[click.Command]] = {}

    def add_section(self, title: str, *commands: click.Command) -> None:
        """Add commands that belong together, under a heading of their own in the help."""
        self._sections[title] = list(commands)
        for command in commands:
            self.add_command(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(name) for name in self.commands)
        for title, commands in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{c.name:<{width}}", c.get_short_help_str(80)) for c in commands])

    def main(
        self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **more: Any
    ) -> NoReturn:
        """Run a command line and leave with its exit code."""
        settings = Settings()
        more |= {"standalone_mode": False, "obj": settings}
        make_encodable(sys.stdout, sys.stderr)
        try:
            code = super().main(args, prog_name or "holdfast", **more)
            sys.stdout.flush()
        except BrokenPipeError:
            forget_stdout()
            code = FAILED
        except click.ClickException as problem:
            problem.show()
            code = problem.exit_code
        except click.Abort:
            complain(settings, "Stopped.", kind="Note")
            code = STOPPED
        except HoldfastError as problem:
            complain(settings, str(problem), code=problem.code)
            code = MISUSED if isinstance(problem, Invalid | NotFound) else FAILED
        except Exception as problem:
            complain(settings, _unexpected(problem, settings))
            code = FAILED
        sys.exit(code or 0)


def _unexpected(problem: Exception, settings: Settings) -> str:
    reason = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
    return f"Something unexpected happened: {reason}" + ("" if settings.debug else " (--debug shows where)")


def common_options(command: F) -> F:
    """What every command understands, before or after its own arguments."""

    def set_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.ensure_object(Settings).debug = True

    def set_color(context: click.Context, _: click.Parameter, value: bool) -> None:
        if value:
            context.ensure_object(Settings).has_color = False

    flag: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True}
    debug = click.option("--debug", help="Show the traceback of an error.", callback=set_debug, **flag)
    no_color = click.option("--no-color", help="Plain text, no colours.", callback=set_color, **flag)
    return no_color(debug(command))


version_option = click.version_option(__version__, "--version", message="holdfast %(version)s")
