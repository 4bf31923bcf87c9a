"""The command learn."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Option

from labelspace.cli.arguments import Json, Keep, ModelPath, OptionGroup, Reading
from labelspace.cli.console import print_json, print_line
from labelspace.cli.notes import note, noting_interrupt
from labelspace.errors import ParameterError

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from types import FrameType

    from labelspace.data.read_options import ReadOptions
    from labelspace.errors import DataError
    from labelspace.experiment.learning import BatchFigures, Follower, Learned, StreamOptions


class FollowOptions(NamedTuple):
    """The options of a stream."""

    follow: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Learn from a stream in place of DATA: JSON lines or CSV; - for stdin. Each batch is tagged before it "
            "is learned, and P@1, P@3 and P@5 are shown as it goes.",
        ),
    ] = None
    wait: Annotated[bool, Option(help="Wait for the file of --follow to grow, until interrupted.")] = False
    batch: Annotated[
        int | None, Option(metavar="N", min=1, help="Documents of --follow that are learned at once. Default: 100.")
    ] = None
    every: Annotated[
        str | None, Option(metavar="60s", help="Time after which a smaller batch is learned. Default: 60s.")
    ] = None
    save_every: Annotated[
        int | None, Option(metavar="N", min=1, help="Documents of --follow between two versions. Default: 1000.")
    ] = None
    skip_errors: Annotated[bool, Option(help="Report lines of --follow that cannot be read, and go on.")] = False

    def options(self, keep: int | None) -> "StreamOptions":
        """Return the options of the library."""
        from labelspace.experiment.learning import StreamOptions
        from labelspace.experiment.timing import parse_duration

        given: dict[str, Any] = {"batch": self.batch, "save_every": self.save_every, "n_kept": keep}
        given["every"] = None if self.every is None else parse_duration(self.every, "--every")
        set_ones = {name: value for name, value in given.items() if value is not None}
        return StreamOptions(**set_ones, waits=self.wait, skips_errors=self.skip_errors)

    def check_unused(self) -> None:
        """Raise ParameterError if an option is given without --follow."""
        for name, value in self._asdict().items():
            if value:
                flag = f"--{name.replace('_', '-')}"
                raise ParameterError(f"{flag} is for a stream, but there is none; add --follow FILE")


def learn(
    model: ModelPath,
    data: Annotated[
        Path | None, Argument(metavar="[DATA]", help="A folder with train.* (and test.*, dev.*), or a file.")
    ] = None,
    out: Annotated[
        Path | None,
        Option(metavar="NEW", help="Save to this new folder. Default: MODEL, whose version before is kept."),
    ] = None,
    held_out: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Documents to compare the versions by. Default: test.* or dev.* of DATA, or a sample that is stored "
            "with the model.",
        ),
    ] = None,
    *,
    force: Annotated[bool, Option(help="Save the new version even if it is worse.")] = False,
    keep: Keep = None,
    following: Annotated[FollowOptions, Option(parser=OptionGroup.of(FollowOptions))],
    as_json: Json = False,
    reading: Reading,
) -> None:
    """Let a model go on learning from DATA, new labels included; the version before is kept.

    A column `rejected` has labels that a person rejected. The new version is refused if it is worse on held-out
    documents by more than its noise, unless --force is given.
    """
    if following.follow is not None and data is None:
        if force:
            raise ParameterError("--force is for DATA, but --follow refuses no version; leave it out")
        learn_stream(model, following.follow, following.options(keep), out, held_out, reading, as_json)
    elif data is not None and following.follow is None:
        following.check_unused()
        learn_file(model, data, out, held_out, force, keep, reading, as_json)
    else:
        raise ParameterError("learn needs either DATA or --follow FILE; write: labelspace learn MODEL DATA")


def learn_file(
    model: Path,
    data: Path,
    out: Path | None,
    held_out: Path | None,
    force: bool,
    keep: int | None,
    reading: "ReadOptions",
    as_json: bool,
) -> None:
    """Learn from a file, and print what was learned."""
    from labelspace import store
    from labelspace.experiment.learning import learn as learn_from

    n_kept = store.KEPT if keep is None else keep
    learned = learn_from(model, data, out=out, held_out=held_out, options=reading, force=force, n_kept=n_kept)
    if as_json:
        print_json(learned.to_json())
        return
    for line in learned.notes:
        note(line)
    print_learned(learned)


def print_learned(learned: "Learned") -> None:
    """Print what a model learned, and where its new version is."""
    from labelspace.experiment import megabytes
    from labelspace.report.versions import shown_figure

    version, taken = learned.version, learned.taken
    print(
        f"learned from {version.n_new_documents:,} documents, with {version.n_new_labels:,} new labels, "
        f"in {taken.wall:.1f} s ({taken.cpu:.1f} CPU s)"
    )
    print_line(f"  in all: {version.n_documents:,} documents, {version.n_labels:,} labels")
    if version.new_labels:
        more = version.n_new_labels - len(version.new_labels)
        print_line(f"  new labels: {', '.join(version.new_labels)}{f' and {more:,} more' if more else ''}")
    if learned.n_held_out:
        print_line(f"  held out, and not learned from: {learned.n_held_out:,} documents")
    if learned.n_merged_labels:
        print_line(
            f"  counted as the labels that they were merged into: {learned.n_merged_labels:,} labels of documents"
        )
    if learned.n_retired_labels:
        print_line(f"  retired, and left out: {learned.n_retired_labels:,} labels of documents")
    if version.left_out:
        print_line(f"  cannot learn, and went on as they were: {', '.join(version.left_out)}")
    if version.held_out is not None and version.held_out.old is not None:
        figures = f"{shown_figure(version.held_out.old)} -> {shown_figure(version.held_out.new)}"
        print_line(f"  nDCG@5 on {version.held_out.n:,} documents of {version.held_out.source}: {figures}")
    print_line(f"saved: {learned.folder} ({megabytes(learned.folder):.1f} MB), version {version.number}")


def learn_stream(
    model: Path,
    stream: str,
    options: "StreamOptions",
    out: Path | None,
    held_out: Path | None,
    reading: "ReadOptions",
    as_json: bool,
) -> None:
    """Learn from a stream until it ends or is interrupted, and print figures as it goes."""
    from labelspace.experiment.learning import Follower, Report

    follower = Follower(model, stream, out=out, held_out=held_out, reading=reading, options=options)

    def show_batch(figures: "BatchFigures") -> None:
        if as_json:
            print_json(figures.to_json())
        else:
            print_line(batch_line(figures))
        sys.stdout.flush()

    def show_saved(learned: "Learned") -> None:
        if as_json:
            print_json(learned.to_json())
        else:
            for line in learned.notes:
                note(line)
            print_line(f"saved: {learned.folder}, version {learned.version.number}")
        sys.stdout.flush()

    def show_skipped(error: "DataError") -> None:
        note(f"skipped: {error}")

    with ending_cleanly(follower), noting_interrupt("what was learned since the last version is lost"):
        figures = follower.run(Report(show_batch, show_saved, show_skipped))
    if not figures.n:
        note(f"{stream} has no document to learn from")


def batch_line(figures: "BatchFigures") -> str:
    """Return the line of a batch."""
    skipped = f", {figures.n_skipped:,} lines skipped" if figures.n_skipped else ""
    so_far = ", ".join(f"{name} {value:.2f}" for name, value in figures.so_far.items())
    last = ", ".join(f"{name} {value:.2f}" for name, value in figures.last.items())
    measured = f": {so_far}; the last 1,000: {last}" if so_far else ""
    return f"{figures.n:,} documents, {figures.n_labels:,} labels{skipped}{measured}"


@contextmanager
def ending_cleanly(follower: "Follower") -> Iterator[None]:
    """End after the batch at the first SIGINT or SIGTERM; a second one ends at once."""
    before: dict[signal.Signals, Any] = {}

    def stop(number: int, frame: "FrameType | None") -> None:
        follower.stop()
        for each, handler in before.items():
            signal.signal(each, handler)

    for each in (signal.SIGINT, signal.SIGTERM):
        before[each] = signal.signal(each, stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
