"""The command line. A command's module is light; what it needs is imported when it is called, so that it starts at once."""

from __future__ import annotations

import io
import sys

import typer

from kvassay.cli.card import card
from kvassay.cli.gate import gate
from kvassay.cli.init import init
from kvassay.cli.inspect import inspect
from kvassay.cli.run import run
from kvassay.cli.stages import STAGE_COMMANDS, stage_command
from kvassay.errors import KvassayError, ManyProblems, one_line

INTERRUPTED = 130

app = typer.Typer(
    help="Find, prove and approve the KV-cache format of the model you serve.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
app.command()(init)
app.command()(inspect)
app.command()(run)
for name, says in STAGE_COMMANDS.items():
    app.command(name, help=says)(stage_command(name))
app.command()(card)
app.command()(gate)


def print_version(asked: bool) -> None:
    """Print the version and end, before a command is looked for."""
    if asked:
        from kvassay.version import TOOL_VERSION

        typer.echo(f"kvassay {TOOL_VERSION}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", help="print the version and end", is_eager=True, callback=print_version),
) -> None:
    """Find, prove and approve the KV-cache format of the model you serve."""


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 no, 2 bad input, 3 cannot decide, 70 internal error, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal of another encoding than UTF-8 still gets an answer.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run one command; what goes wrong becomes one line on stderr and an exit code."""
    try:
        result = app(arguments, standalone_mode=False, prog_name="kvassay")
        if result == INTERRUPTED:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except KvassayError as error:
        problems = error.problems if isinstance(error, ManyProblems) else (str(error),)
        print("error: " + "\n".join(map(shortened, problems)), file=sys.stderr)
        return error.exit_code
    except typer.TyperException as error:
        print(f"error: {shortened(error.format_message())} (kvassay --help lists what there is)", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted; finished work is kept, the same command goes on from here", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (`kvassay inspect … | head`): nothing is wrong here.
        sys.stderr.close()
        return 0
    except OSError as error:
        # What the operating system refuses (no permission, no space, a name too long) is never a fault of ours.
        what_then = "correct it and give the same command again, finished work is kept"
        print(f"{shortened(f'error: {refused(error)}')}; {what_then}", file=sys.stderr)
        return 2
    except Exception:
        import traceback

        traceback.print_exc()
        print("internal error: this is a fault of kvassay, not of your input; finished work is kept", file=sys.stderr)
        return 70


def refused(error: OSError) -> str:
    """Which path, and why the operating system said no."""
    return f"{error.filename or 'the operating system refused'}: {error.strerror or error}"


def shortened(text: str, limit_chars: int = 600) -> str:
    """`text` as one line of at most `limit_chars`, cut in the middle: a hostile name must not fill the screen, nor steer it."""
    line, half = one_line(text), limit_chars // 2
    return line if len(line) <= limit_chars else f"{line[:half]}…{line[-half:]}"
