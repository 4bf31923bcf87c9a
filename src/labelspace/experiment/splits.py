"""The training and the test documents of an experiment."""

from collections.abc import Callable
from dataclasses import replace

from labelspace.data.source import Source
from labelspace.data.splits import hold_out
from labelspace.data.table import describe_labels
from labelspace.errors import DataError
from labelspace.types import Dataset

TEST_SHARE = 0.2  # of a data set without a test file; a larger share tests better and trains worse


def labeled(source: Source, inspect: Callable[[Dataset], None] | None = None) -> Dataset:
    """Read the training documents, and raise DataError if none has a label; ``inspect`` is called with them."""
    documents = source.train()
    if documents.Y.nnz == 0:
        raise DataError(
            f"training needs labels, but no document of {source.train_path} has any; name the column of the labels: "
            "--labels tags, or the columns of a table: --inputs title --outputs brand"
        )
    if inspect is not None:
        inspect(documents)
    return documents


def training_documents(source: Source, seed: int) -> tuple[Dataset, Dataset | None]:
    """Read the training documents, and hold out test documents if there is no test file; a test file is not read."""
    documents = labeled(source)
    return (documents, None) if source.has_test else hold_out_test(documents, seed)


def hold_out_test(documents: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    """Split the documents of a data set without a test file into training and test documents."""
    train_set, test_set = hold_out(documents, TEST_SHARE, seed)
    if train_set.columns is not None:  # the hierarchy of levels must not come from rows that are held out
        space = describe_labels(train_set.labels, train_set.Y, train_set.columns)
        train_set, test_set = replace(train_set, labels=space), replace(test_set, labels=space)
    return train_set, test_set


def tested_on(source: Source) -> str:
    """Return the origin of the test documents, in words."""
    return "the test file" if source.has_test else f"a seeded {TEST_SHARE:.0%} of the documents"
