"""The commands, in the order in which ``--help`` lists them."""

import sys
from typing import Annotated

import typer

from labelspace.cli import (
    compare,
    data,
    demo,
    evaluate,
    explain,
    inspect,
    predict,
    reproduce,
    serve,
    train,
    tune,
    vocab,
    warmup,
)
from labelspace.cli.compiling import CompilationNotice
from labelspace.cli.process_limits import check_limits
from labelspace.cli.strange_models import of_model

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
vocab_app = typer.Typer(
    name="vocab", help="Import vocabularies: labels with URIs and a hierarchy.", no_args_is_help=True
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
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Tag documents with the few relevant labels out of thousands to millions, on an ordinary CPU."""
    check_limits()
    if "--json" not in sys.argv:
        from labelspace.kernels.compilation import watching

        context.with_resource(watching(CompilationNotice()))


app.command()(train.train)
app.command()(of_model(evaluate.evaluate))
app.command()(of_model(predict.predict))
app.command()(of_model(explain.explain))
app.command()(serve.serve)
app.command()(compare.compare)
app.command()(tune.tune)
app.command()(reproduce.reproduce)
app.command("map")(of_model(inspect.draw_map))
app.command("tree")(of_model(inspect.show_tree))
app.command("codes")(of_model(inspect.show_codes))
app.command()(inspect.methods)
app.command()(demo.demo)
app.command()(warmup.warmup)
data_app.command()(data.stats)
data_app.command()(data.check)
data_app.command()(data.convert)
data_app.command()(data.synthetic)
vocab_app.command("import")(vocab.import_file)
