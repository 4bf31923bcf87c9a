"""The commands, in the order in which ``--help`` lists them."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer
from typer import Option

from labelspace.cli import (
    compare,
    data,
    demo,
    evaluate,
    explain,
    inspect,
    labels,
    learn,
    mcp,
    reproduce,
    serve,
    tune,
    versions,
    vocab,
    warmup,
)
from labelspace.cli.arguments import GroupedCommand
from labelspace.cli.console import CompilationNotice
from labelspace.cli.diff import diff
from labelspace.cli.drift import drift
from labelspace.cli.predict.predict import predict
from labelspace.cli.process import check_limits
from labelspace.cli.review import review
from labelspace.cli.train import train

app = typer.Typer(
    name="labelspace",
    help="Tag documents with the few relevant labels out of thousands to millions, on an ordinary CPU.",
    epilog="In the environment, LABELSPACE_THREADS=N limits the threads, and LABELSPACE_DEBUG=1 shows tracebacks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(
    name="data", help="Show statistics of data sets, check, clean, convert and make them.", no_args_is_help=True
)
app.add_typer(data_app)
labels_app = typer.Typer(
    name="labels", help="List and edit the labels of a model; each edit makes a version.", no_args_is_help=True
)
app.add_typer(labels_app)
vocab_app = typer.Typer(
    name="vocab", help="Import and update vocabularies: labels with URIs and a hierarchy.", no_args_is_help=True
)
app.add_typer(vocab_app)


def show_version(requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        from labelspace.version import __version__

        print(f"labelspace {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Tag documents with the few relevant labels out of thousands to millions, on an ordinary CPU."""
    check_limits()
    if "--json" not in sys.argv:
        from labelspace.kernels.compilation import watching

        context.with_resource(watching(CompilationNotice()))


COMMANDS: dict[typer.Typer, dict[str, Callable[..., None]]] = {
    app: {
        "train": train,
        "evaluate": evaluate.evaluate,
        "diff": diff,
        "predict": predict,
        "explain": explain.explain,
        "review": review,
        "drift": drift,
        "learn": learn.learn,
        "history": versions.history,
        "rollback": versions.rollback,
        "serve": serve.serve,
        "mcp": mcp.mcp,
        "compare": compare.compare,
        "tune": tune.tune,
        "reproduce": reproduce.reproduce,
        "info": inspect.info,
        "map": inspect.draw_map,
        "tree": inspect.show_tree,
        "codes": inspect.show_codes,
        "methods": inspect.methods,
        "demo": demo.demo,
        "warmup": warmup.warmup,
    },
    data_app: {"stats": data.stats, "check": data.check, "convert": data.convert, "synthetic": data.synthetic},
    labels_app: {
        "list": labels.list_labels,
        "add": labels.add,
        "retire": labels.retire,
        "rename": labels.rename,
        "merge": labels.merge,
        "split": labels.split,
        "edit": labels.edit,
    },
    vocab_app: {"import": vocab.import_file, "update": vocab.update},
}
for group, commands in COMMANDS.items():
    for name, command in commands.items():
        group.command(name, cls=GroupedCommand)(command)
