"""The training and the test documents of an experiment."""

from collections.abc import Callable
from dataclasses import replace

from labelspace.data.source import Source
from labelspace.data.splits import hold_out
from labelspace.data.table import describe_labels
from labelspace.errors import DataError
from labelspace.types import Dataset

TEST_SHARE = 0.2  # cut from a data set that comes without a test file


def labeled(source: Source, inspect: Callable[[Dataset], None] | None = None) -> Dataset:
    """The training documents, which must have labels; ``inspect`` is called with them."""
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
    """The training documents, and those held out for the test where there is no test file, which is not read."""
    documents = labeled(source)
    return (documents, None) if source.has_test else hold_out_test(documents, seed)


def hold_out_test(documents: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    """Training and test documents of a data set without a test file."""
    train_set, test_set = hold_out(documents, TEST_SHARE, seed)
    if train_set.columns is not None:  # the rows held out must not say what lies below what
        space = describe_labels(train_set.labels, train_set.Y, train_set.columns)
        train_set, test_set = replace(train_set, labels=space), replace(test_set, labels=space)
    return train_set, test_set


def tested_on(source: Source) -> str:
    """What the test documents are."""
    return "the test file" if source.has_test else f"a seeded {TEST_SHARE:.0%} of the documents"
