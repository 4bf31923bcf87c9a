import numpy as np
import pytest

from labelspace.data.icd10 import icd10


@pytest.fixture(scope="module")
def parts():
    return icd10(seed=0)


@pytest.mark.slow
def test_the_task_is_as_described(parts):
    train, test = parts
    labels = train.labels
    assert 98_000 < len(labels) < 99_000
    assert len(train) > 100_000
    roots = [name for name, level in zip(labels.names, labels.hierarchy.levels, strict=True) if level == 0]
    assert roots == [str(chapter) for chapter in range(1, 23)], "the chapters, and nothing else, have no parent"
    terms = len(train) - len(labels) + len(test)
    assert len(test) == round(0.2 * terms)


@pytest.mark.slow
def test_labels_are_the_code_and_its_ancestors(parts):
    train, _ = parts
    row = train.texts.index("Non-ST elevation (NSTEMI) myocardial infarction")
    assert {train.labels.names[i] for i in train.Y[row].indices} == {"I21.4", "I21", "I20-I25", "9"}
    assert train.labels.synonyms[train.labels.index["I21.4"]] == [train.texts[row]]


@pytest.mark.slow
def test_every_description_stays_in_train_and_the_seed_decides(parts):
    train, test = parts
    own = train.labels.hierarchy.levels
    deepest = [row.indices[own[row.indices].argmax()] for row in test.Y[:50]]
    descriptions = {i: text for i, text in enumerate(train.texts[: len(train.labels)])}
    assert all(descriptions[label] == train.labels.synonyms[label][0] for label in deepest)
    again, other = icd10(seed=0)[1], icd10(seed=1)[1]
    assert again.texts == test.texts
    assert other.texts != test.texts
    assert np.array_equal(again.Y.indices, test.Y.indices)
