"""The command line. It reads options, calls the library and prints; everything else lives elsewhere."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

if TYPE_CHECKING:  # heavy imports happen inside the commands, so that --help stays quick
    from rich.console import Console

    from labelspace.report.progress import StepProgress
    from labelspace.tagger import Tagger, Tags

app = typer.Typer(
    name="labelspace",
    help="Tag documents with the few right labels out of thousands to millions, on an ordinary CPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(name="data", help="Look at and convert data sets.", no_args_is_help=True)
app.add_typer(data_app)

STOPPED = 130  # the exit code after Ctrl-C
DEMO_TEXTS = (
    "type 2 diabetes with chronic kidney disease",
    "burn of the right hand, second degree",
    "allergic to peanuts",
)
DEMO_MEMBERS = "members=neighbours:pieces,label_tree,lexical"  # medical words share pieces more often than forms

DataPath = Annotated[
    Path, typer.Argument(metavar="DATA", help="A folder with train.* (and test.*, dev.*), or one file.")
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder written by `labelspace train`.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything drawn at random.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A parameter of the method, or of the features: features.KEY=VALUE."
    ),
]
Places = Annotated[int, typer.Option("--k", min=1, help="Labels a document.")]
Ks = Annotated[str, typer.Option("--k", metavar="1,3,5", help="Places at which to measure.")]


def show_version(asked: bool) -> None:
    """Print the version and end."""
    if asked:
        from labelspace.version import __version__

        print(f"labelspace {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Tag documents with the few right labels out of thousands to millions, on an ordinary CPU."""


@app.command()
def train(
    data: DataPath,
    method: Annotated[str | None, typer.Option("--method", help="See `labelspace methods`.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="MODEL", help="Default: runs/DATA-METHOD.")] = None,
    features: Annotated[str, typer.Option("--features", help="tfidf or hashing; for texts only.")] = "tfidf",
    settings: Set = None,
    seed: Seed = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where a training that is cut off goes on when it is run again (glas)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model on DATA and save it."""
    from labelspace import experiment, store
    from labelspace.data.source import open_source
    from labelspace.options import make_recipe

    recipe = make_recipe(method, settings, features, seed)
    out = out or Path("runs") / f"{source_name(data)}-{recipe.method}"
    store.check_writable(out)  # before the work, not after it
    with progress(quiet=as_json) as report, experiment.timed() as taken:
        tagger = experiment.train(open_source(data), recipe, report, checkpoint)
    tagger.save(out)
    size = experiment.megabytes(out)
    summary: dict[str, Any] = {
        "model": str(out),
        "method": recipe.method,
        "n": tagger.labels_.n_documents,
        "n_labels": len(tagger.labels_),
        "n_features": tagger.model.n_features_,
        "train_seconds": round(taken.wall, 3),
        "train_cpu_seconds": round(taken.cpu, 3),
        "model_mb": size,
        "report": tagger.model.report(),
    }
    if as_json:
        print_json(summary)
        return
    say(
        f"{recipe.method} trained on {summary['n']:,} documents and {summary['n_labels']:,} labels "
        f"in {taken.wall:.1f} s ({taken.cpu:.1f} CPU s)"
    )
    for key, value in summary["report"].items():
        if isinstance(value, (int, float)):
            say(f"  {key.replace('_', ' ')}: {value:g}")
    say(f"saved: {out} ({size:.1f} MB)")


@app.command()
def evaluate(
    model: ModelPath,
    data: DataPath,
    k: Ks = "1,3,5",
    propensity_from: Annotated[
        Literal["train", "test"], typer.Option(help="train, as everyone does, or test, as GLaS's authors do.")
    ] = "train",
    propensity_preset: Annotated[
        str, typer.Option(help="A and B of the propensities: default, wikipedia or amazon.")
    ] = "default",
    as_json: Json = False,
) -> None:
    """Measure a model on the test documents of DATA (or on all of a file)."""
    from labelspace import experiment
    from labelspace.data.source import read_dataset, split_file
    from labelspace.errors import DataError
    from labelspace.options import parse_ks
    from labelspace.report.tables import figures_report
    from labelspace.tagger import Tagger

    ks = parse_ks(k)
    tagger = Tagger.load(model)
    file = split_file(data, "test") if data.is_dir() else data
    if file is None:
        raise DataError(f"{data} must hold a test file, but has none; add test.* or name one file to evaluate on")
    documents = read_dataset(file, tagger.labels_)
    figures = experiment.evaluate(tagger, documents, ks, propensity_from, propensity_preset)
    figures["model_mb"] = experiment.megabytes(model)
    if as_json:
        print_json(figures)
        return
    console().print(figures_report(figures))


@app.command()
def predict(
    model: ModelPath,
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts to tag.")] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="FILE", help="JSON lines, CSV, Parquet or plain lines (- for stdin); prints JSON lines."
        ),
    ] = None,
    k: Places = 5,
    least: Annotated[
        float | None,
        typer.Option("--min-probability", metavar="P", help="Leave labels out that are right less often than this."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tag texts from the command line, or a file of any size as JSON lines that keep the ids."""
    from labelspace.errors import DataError
    from labelspace.report.tables import tags_table
    from labelspace.tagger import Tagger

    if bool(texts) == bool(file):
        raise DataError("predict takes texts or --input FILE, one of the two; write: labelspace predict MODEL 'a text'")
    tagger = Tagger.load(model)
    k = min(k, len(tagger.labels_))  # places beyond the labels would only be filled to be left out again
    if file is not None:
        predict_stream(tagger, file, k, least)
        return
    top = tagger.confident(texts or [], k, least)
    if as_json:
        pairs = zip(texts or [], tagger.named(top), strict=True)
        print_json({"results": [{"text": text, "labels": as_objects(tags)} for text, tags in pairs]})
        return
    why = {} if least is None else {"none": f"no label is right with a probability of {least:g} or more"}
    for text, labels, scores in zip(texts or [], top.labels.tolist(), top.scores.tolist(), strict=True):
        console().print(tags_table(text, labels, scores, tagger.labels_, **why))


@app.command()
def compare(
    data: DataPath,
    methods: Annotated[
        str, typer.Option("--methods", metavar="a,b,c", help="Comma-separated; see `labelspace methods`.")
    ],
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Default: runs/DATA-compare.")] = None,
    k: Ks = "1,3,5",
    features: Annotated[str, typer.Option("--features", help="tfidf or hashing; for texts only.")] = "tfidf",
    settings: Set = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Run several methods under one protocol: one table, one page with plots, each model saved."""
    from labelspace import experiment
    from labelspace.data.source import open_source
    from labelspace.errors import ParameterError
    from labelspace.options import compared_recipes, parse_ks
    from labelspace.report.page import comparison_page
    from labelspace.report.tables import compare_table

    names = list(dict.fromkeys(name.strip() for name in methods.split(",") if name.strip()))
    if not names:
        raise ParameterError(
            "--methods must name at least one method, but is empty; write --methods neighbours,popular"
        )
    recipes = compared_recipes(names, settings, features, seed)
    out = out or Path("runs") / f"{source_name(data)}-compare"
    with progress(quiet=as_json) as report:
        results = experiment.compare(open_source(data), recipes, out, parse_ks(k), seed, report)
    (out / "report.html").write_text(comparison_page(results), encoding="utf-8")
    failed = [row for row in results["rows"] if "error" in row]
    if as_json:
        print_json(results)
    else:
        console().print(compare_table(results))
        for row in failed:
            say(f"{row['method']} failed: {row['error']}")
        say(f"written to {out}: results.json, results.csv, report.html (plots), models/")
    if len(failed) == len(results["rows"]):
        raise typer.Exit(2)


@app.command("map")
def draw_map(
    model: ModelPath,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page to write.")] = Path("map.html"),
    as_json: Json = False,
) -> None:
    """Draw the labels of a hyperbolic model on the Poincaré disk: one page that opens offline."""
    from labelspace.data.files import writing_text
    from labelspace.report.map import map_page, map_summary
    from labelspace.tagger import load
    from labelspace.types import LabelSpace

    loaded = load(model)
    points = getattr(loaded, "model", loaded).label_points()  # a tagger holds a model
    labels = loaded.labels_ or LabelSpace.numbered(len(points))
    page = map_page(points, labels, f"Labels of {model.resolve().name}")
    with writing_text(out) as file:
        file.write(page)
    summary = {"map": str(out), **map_summary(points, labels)}
    if as_json:
        print_json(summary)
        return
    told = "none" if summary["spearman"] is None else f"{summary['spearman']:+.3f}"
    say(f"{out}: {summary['n_labels']:,} labels, Spearman's correlation of norm and frequency: {told}")


@app.command()
def methods(as_json: Json = False) -> None:
    """List the methods: name, paper, when to choose it."""
    from labelspace.models import registry
    from labelspace.report.tables import methods_table

    known = registry.methods()
    if as_json:
        rows = [
            {"name": n, "title": c.title, "choose_when": c.choose_when, "defaults": c.defaults()}
            for n, c in known.items()
        ]
        print_json({"default": registry.DEFAULT, "methods": rows})
        return
    console().print(methods_table(known, registry.DEFAULT))


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="MODEL")] = Path("runs/demo"),
    seed: Seed = 0,
) -> None:
    """Build the ICD-10-CM task, train, evaluate, and tag three diagnoses."""
    from labelspace import experiment, store
    from labelspace.data.icd10 import icd10
    from labelspace.options import make_recipe
    from labelspace.report.tables import figures_report, tags_table

    store.check_writable(out)
    say("1. data: ICD-10-CM, every diagnosis code with its descriptions")
    train_set, test_set = icd10(seed)
    say(f"   {len(train_set):,} training and {len(test_set):,} test documents, {len(train_set.labels):,} labels")
    recipe = make_recipe(None, [DEMO_MEMBERS], "tfidf", seed)
    say(f"2. training: {recipe.method} of neighbours on pieces of words, a label tree on words, and label names")
    with progress() as report, experiment.timed() as taken:
        tagger = recipe.tagger().fit_dataset(train_set, progress=report)
    tagger.save(out)
    say(f"   {taken.wall:.1f} s ({taken.cpu:.1f} CPU s); saved to {out} ({experiment.megabytes(out):.1f} MB)")
    say("3. evaluation on wordings the model has not seen")
    figures = {**experiment.evaluate(tagger, test_set), "model_mb": experiment.megabytes(out)}
    console().print(figures_report(figures))
    say("4. three diagnoses in plain words")
    top = tagger.predict_topk(DEMO_TEXTS, 8)
    for text, labels, scores in zip(DEMO_TEXTS, top.labels.tolist(), top.scores.tolist(), strict=True):
        console().print(tags_table(text, labels, scores, tagger.labels_))
    by_path = os.sep in sys.argv[0] and not sys.argv[0].endswith("__main__.py")
    command = os.path.relpath(sys.argv[0]) if by_path else "labelspace"
    say("Next, try:")
    say(f'  {command} predict {out} "fracture of the left thumb"')
    say(f"  {command} methods")
    say(f"  {command} train YOUR_DATA.jsonl --out runs/mine        (a line: {EXAMPLE_LINE})")


EXAMPLE_LINE = '{"text": "...", "labels": ["a", "b"]}'


@data_app.command()
def stats(data: DataPath, as_json: Json = False) -> None:
    """Count documents, labels, features."""
    from labelspace.data.source import open_source
    from labelspace.report.tables import dataset_stats, stats_table

    source = open_source(data)
    train_set = source.train()
    parts = {"train": train_set, "dev": source.dev(train_set.labels), "test": source.test(train_set.labels)}
    counted = {"parts": {name: dataset_stats(part) for name, part in parts.items() if part is not None}}
    if as_json:
        print_json({"data": str(data), **counted})
        return
    console().print(stats_table(str(data), counted))


@data_app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A data file, or a folder with train.* and others.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="A data file, whose ending names the format, or a folder.")
    ],
    to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="For folders: txt, jsonl, csv.gz, ...")
    ] = None,
) -> None:
    """Convert data: .txt (Extreme Classification Repository), .jsonl, .csv, .parquet, each also .gz.

    Texts written as .txt become tf-idf features, since that format has no place for texts. labels.jsonl and
    hierarchy.tsv, where there are any, are written beside.
    """
    from labelspace import conversion

    for path, written in conversion.convert(source, target, to).items():
        say(f"{path}: {len(written):,} documents, {len(written.labels):,} labels")


def predict_stream(tagger: Tagger, file: str, k: int, least: float | None) -> None:
    """One JSON line a document, in order, a batch in memory at a time."""
    from labelspace.data.source import iter_records
    from labelspace.experiment import predict_records

    records = iter_records(file, ready_made=not tagger.takes_texts)
    for record, tags in predict_records(tagger, records, k, file, least):
        sys.stdout.write(json.dumps({"id": record.id, "labels": as_objects(tags)}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def as_objects(tags: Tags) -> list[dict[str, Any]]:
    """Tags of one document for JSON."""
    return [{"label": name, "score": round(score, 6)} for name, score in tags]


def source_name(data: Path) -> str:
    """A data path as a word for file names."""
    return data.resolve().name.split(".")[0] or "data"


@contextmanager
def progress(quiet: bool = False) -> Iterator[StepProgress]:
    """Progress on stderr."""
    from labelspace.report.progress import StepProgress

    with StepProgress(quiet) as report:
        yield report


def console() -> Console:
    """The console for tables; wide enough for them where stdout is no terminal."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=160)


def print_json(value: object) -> None:
    """One JSON object on stdout."""
    print(json.dumps(value, ensure_ascii=False))


def say(line: str) -> None:
    """One line for people on stdout."""
    print(line)


def main() -> None:
    """Run the command line: 0 on success, 2 on bad input with one line that says rule, value and remedy."""
    from labelspace.errors import LabelspaceError

    for stream in (sys.stdout, sys.stderr):  # names are Unicode, whatever the locale says
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")
    if hasattr(signal, "SIGPIPE"):  # the reader of our output may go away, as with `| head`: end quietly, as others do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        code = app(standalone_mode=False) or 0
        if code == STOPPED:
            fail("stopped before it was done; no model was saved", STOPPED)
        sys.exit(code)
    except LabelspaceError as error:
        fail(str(error), 2)
    except UsageError as error:
        if not error.format_message():  # no command was given, and the help is on the screen
            sys.exit(0)
        fail(usage_line(error), 2)
    except OSError as error:
        reason = error.strerror or str(error)
        fail(
            f"files must be readable and folders writable, but {error.filename or 'one'} is not ({reason}); mend that",
            2,
        )
    except MemoryError:
        fail("there must be memory enough, but it ran out; use fewer features (--set features.max_features=100000)", 1)


UsageError: Any = typer.BadParameter.__mro__[1]
"""What the option parser raises; typer brings its own copy of click, so it is reached through typer's public class."""


def usage_line(error: Any) -> str:  # noqa: ANN401 - the option parser's own type
    """An option parser's complaint as one line with a remedy."""
    command = error.ctx.command_path if error.ctx is not None else "labelspace"
    return f"{error.format_message().rstrip('.')}; see: {command} --help"


def fail(message: str, code: int) -> NoReturn:
    """End with one line on stderr."""
    print("error: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)
