"""The command line. Commands are imported only when they are called, so that `kvassay inspect` starts at once."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import typer
from click import Command, Context
from typer.core import TyperGroup

from kvassay.errors import KvassayError

COMMANDS: dict[str, str] = {
    "init": "write a commented plan for a model",
    "run": "the whole way, from plan to run card",
    "inspect": "what a model's cache holds and costs",
    "prepare": "make the weights each engine needs",
    "corpora": "three disjoint splits of text",
    "score": "loss of every layer's K and V in every format",
    "solve": "budget to candidate maps; no model needed",
    "measure": "joint loss of whole maps on the choice split",
    "freeze": "the choice, from measured points",
    "export": "files and launch command of every arm",
    "probe": "are the arms engaged, and as predicted",
    "evaluate": "held-out tasks, all arms, paired",
    "roadtest": "load, exhaustion, fallback, restart",
    "card": "one record, one decision; --check gives it as exit code",
    "gate": "does a server still match what was approved",
}
STAGE_COMMANDS = ("prepare", "corpora", "score", "solve", "measure", "freeze", "export", "probe", "evaluate", "roadtest")


class LazyCommands(TyperGroup):
    """Finds a command's module by its name when it is asked for."""

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in STAGE_COMMANDS:
            function = importlib.import_module("kvassay.cli.stages").stage_command(cmd_name)
        else:
            function = getattr(importlib.import_module(f"kvassay.cli.{cmd_name}"), cmd_name)
        single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        single.command(cmd_name, help=(function.__doc__ or COMMANDS[cmd_name]))(function)
        return typer.main.get_command(single)

    def format_commands(self, ctx: Context, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(cls=LazyCommands, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


@app.callback()
def root() -> None:
    """Find, prove and approve the KV-cache format of the model you serve."""


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 no, 2 bad input, 3 cannot decide, 70 internal error, 130 interrupted."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run one command; a KvassayError becomes one line on stderr and its exit code."""
    import click

    try:
        result = app(arguments, standalone_mode=False, prog_name="kvassay")
        return result if isinstance(result, int) else 0
    except KvassayError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (KeyboardInterrupt, click.Abort):
        print("interrupted; finished work is kept, the same command goes on from here", file=sys.stderr)
        return 130
