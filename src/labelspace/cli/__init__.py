"""The command line: parses options, calls the library and prints.

The commands are registered in the order in which ``--help`` lists them.
"""

import io
import signal
import sys
from typing import Annotated

import typer

from labelspace.cli import compare, data, demo, evaluate, inspect, predict, train
from labelspace.cli.exit_codes import INTERRUPTED, UsageError, fail, usage_line

app = typer.Typer(
    name="labelspace",
    help="Tag documents with the few relevant labels out of thousands to millions, on an ordinary CPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(name="data", help="Show statistics of data sets, and convert them.", no_args_is_help=True)
app.add_typer(data_app)


def show_version(requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        from labelspace.version import __version__

        print(f"labelspace {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Tag documents with the few relevant labels out of thousands to millions, on an ordinary CPU."""


app.command()(train.train)
app.command()(evaluate.evaluate)
app.command()(predict.predict)
app.command()(compare.compare)
app.command("map")(inspect.draw_map)
app.command("tree")(inspect.show_tree)
app.command("codes")(inspect.show_codes)
app.command()(inspect.methods)
app.command()(demo.demo)
data_app.command()(data.stats)
data_app.command()(data.convert)


def main() -> None:
    """Run the command line: exit code 0 on success, 2 on bad input with a one-line message."""
    from labelspace.errors import LabelspaceError

    for stream in (sys.stdout, sys.stderr):  # names are Unicode, whatever the locale
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    if hasattr(signal, "SIGPIPE"):  # end quietly where the output pipe is closed, as with `| head`
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        code = app(standalone_mode=False) or 0
        if code == INTERRUPTED:
            fail("interrupted; no model was saved", INTERRUPTED)
        sys.exit(code)
    except LabelspaceError as error:
        fail(str(error), 2)
    except UsageError as error:
        if not error.format_message():  # no command was given, and the help was printed
            sys.exit(0)
        fail(usage_line(error), 2)
    except OSError as error:
        name, reason = error.filename or "one", error.strerror or error
        fail(f"files must be readable and folders writable, but {name} is not ({reason}); check it", 2)
    except MemoryError:
        fail(
            "the data must fit into memory, but it ran out; use fewer features (--set features.max_features=100000), "
            "or a smaller model",
            1,
        )
