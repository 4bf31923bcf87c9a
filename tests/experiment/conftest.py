import pytest

from labelspace.data.source import write_dataset
from labelspace.types import Dataset


@pytest.fixture
def folder(data, tmp_path):
    """A data folder of texts with a test file."""
    for name, part in zip(("train", "test"), data, strict=True):
        write_dataset(Dataset(part.Y, part.labels, texts=part.texts), tmp_path / f"{name}.jsonl")
    return tmp_path
