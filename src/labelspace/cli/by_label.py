"""The options of evaluate for figures of each label."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from typer import Option

from labelspace.cli.arguments import OptionGroup, as_words

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.data.read_options import ReadOptions
    from labelspace.experiment.by_label import LabelReport
    from labelspace.experiment.evaluate import Evaluation
    from labelspace.tagger import Tagger
    from labelspace.types import Dataset

ERRORS = 50  # labels with details, by default


class _LabelOptions(NamedTuple):
    by_label: Annotated[
        Path | None,
        Option(metavar="FILE.csv", help="Write the figures of each label, the worst first; --html shows them too."),
    ] = None
    errors: Annotated[
        int | None,
        Option(min=0, metavar="N", help="With --by-label: words and errors of the N worst labels. Default: 50."),
    ] = None

    def check(self) -> None:
        """Raise an error unless the figures of labels can be written as asked for, before any work."""
        from labelspace.errors import DataError, ParameterError

        file, errors = self
        if file is None and errors is not None:
            raise ParameterError(f"--errors is for --by-label, but is {errors} without it; add --by-label labels.csv")
        if file is not None and (file.suffix.lower() != ".csv" or file.is_dir()):
            raise DataError(f"--by-label must be a file that ends with .csv, but is {file}; write labels.csv")

    def write(self, tagger: "Tagger", documents: "Dataset", evaluation: "Evaluation") -> "LabelReport | None":
        """Write and return the figures of each label; None if they are not asked for."""
        from labelspace.experiment.by_label import label_report
        from labelspace.report.by_label.table import write_label_csv

        if self.by_label is None:
            return None
        report = label_report(tagger, documents, evaluation, ERRORS if self.errors is None else self.errors)
        write_label_csv(self.by_label, report)
        return report


Labeling = Annotated[_LabelOptions, Option(parser=OptionGroup.of(_LabelOptions))]


def explain_command(tagger: "Tagger", model: Path, file: Path, reading: "ReadOptions") -> str | None:
    """Return the command that explains a document of a file; None if the model cannot explain, or reads no texts."""
    from labelspace.models.capabilities import Explains

    if tagger.ready_made or not isinstance(tagger.model, Explains):
        return None
    return shlex.join(["labelspace", "explain", str(model), "--of", str(file), *as_words(reading)])
