"""`holdfast completion`: the script that lets a shell complete our commands."""

import os
from pathlib import PurePath

import click

from holdfast.cli.group import common_options

_INSTALL = {
    "bash": "holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast",
    "zsh": "holdfast completion zsh > ~/.zfunc/_holdfast   (with ~/.zfunc in your fpath before compinit)",
    "fish": "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_INSTALL)), required=False)
@common_options
@click.pass_context
def completion(context: click.Context, shell: str | None) -> None:
    """Print the completion script for your shell.

    How to install it stands at its end. Without SHELL, the one you are using is taken.
    """
    from click.shell_completion import get_completion_class

    if shell is None:
        shell = PurePath(os.environ.get("SHELL", "")).name
        if shell not in _INSTALL:
            raise click.UsageError(f"Which shell? Say one of: {', '.join(_INSTALL)}.")
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, "holdfast", "_HOLDFAST_COMPLETE").source()
    click.echo(f"{script.rstrip()}\n\n# To install it, run once and open a new shell:\n#   {_INSTALL[shell]}")
