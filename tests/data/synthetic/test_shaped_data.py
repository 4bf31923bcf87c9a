import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.source import read_dataset
from labelspace.data.synthetic import SHAPES, shaped, shaped_blocks, write_shaped
from labelspace.data.synthetic.shaped_data import BLOCK
from labelspace.errors import DataError, ParameterError
from labelspace.models.registry import create

FRACTIONS = {
    "Wiki10-31K": 0.05,
    "AmazonCat-13K": 0.01,
    "Delicious-200K": 0.01,
    "WikiLSHTC-325K": 0.005,
    "Wikipedia-500K": 0.002,
    "Amazon-670K": 0.02,
    "Amazon-3M": 0.002,
}


@pytest.fixture(scope="module")
def amazon():
    return shaped("Amazon-670K", fraction=0.02)


def same(one, two):
    return all(
        np.array_equal(getattr(one, part), getattr(two, part)) for part in ("shape", "data", "indices", "indptr")
    )


def precision(model, train, test):
    first = model.fit(train.X, train.Y).predict_topk(test.X, 1).labels[:, 0]
    return test.Y[np.arange(len(test)), first].mean()


@pytest.mark.parametrize("name", SHAPES)
def test_statistics_are_those_of_the_shape(name):
    shape = SHAPES[name].scaled(FRACTIONS[name])
    train, test = shaped(name, FRACTIONS[name], seed=3)
    assert (len(train), len(test)) == (shape.train_documents, shape.test_documents)
    for part in (train, test):
        assert part.X.shape[1] == shape.features
        assert part.Y.nnz / len(part) == pytest.approx(shape.labels_per_document, rel=0.06)
        assert part.X.nnz / len(part) == pytest.approx(shape.nonzeros_per_document, rel=0.06)
        assert np.diff(part.Y.indptr).min() >= 1
        assert set(part.Y.data) == {1.0}


def test_features_are_unit_rows_of_which_few_are_frequent(amazon):
    X = amazon[0].X
    assert X.dtype == np.float32
    assert X.has_canonical_format
    assert np.sqrt(X.multiply(X).sum(axis=1).A1) == pytest.approx(1, abs=1e-5)
    frequent = np.sort(np.bincount(X.indices, minlength=X.shape[1]))[::-1] / X.shape[0]
    assert 0.1 < frequent[0] < 0.5
    assert np.median(frequent) < 0.02
    columns = X.tocsc()
    counts = np.diff(columns.indptr)
    means = columns.sum(axis=0).A1 / np.maximum(counts, 1)
    assert means[counts > 500].mean() < 0.7 * means[(counts > 9) & (counts < 50)].mean(), "like idf"


def test_labels_of_a_document_occur_together_elsewhere_too(amazon):
    Y = amazon[0].Y
    pairs = sp.triu(Y.T @ Y, k=1).tocoo()
    counts = Y.sum(axis=0).A1
    by_chance = counts[pairs.row] * counts[pairs.col] / Y.shape[0]
    often = np.minimum(counts[pairs.row], counts[pairs.col]) > 4
    assert np.median((pairs.data / by_chance)[often]) > 20


def test_blocks_of_any_size_are_the_whole(amazon):
    train, test = amazon
    for split, whole in (("train", train), ("test", test)):
        blocks = list(shaped_blocks("Amazon-670K", 0.02, block=1234, split=split))
        assert {X.shape[0] for X, _ in blocks[:-1]} == {1234}
        assert same(sp.vstack([X for X, _ in blocks], format="csr"), whole.X)
        assert same(sp.vstack([Y for _, Y in blocks], format="csr"), whole.Y)


def test_a_seed_gives_the_same_data_and_another_seed_others(amazon):
    again, other = shaped("Amazon-670K", 0.02)[1], shaped("Amazon-670K", 0.02, seed=1)[1]
    assert same(again.X, amazon[1].X)
    assert same(again.Y, amazon[1].Y)
    assert not same(other.X, amazon[1].X)
    assert not same(other.Y, amazon[1].Y)


def test_labels_can_be_learned_but_not_perfectly(amazon):
    tree = precision(create("label_tree", tune=False), *amazon)
    assert 0.2 < tree < 0.6
    assert precision(create("neighbors"), *amazon) > 0.15
    assert precision(create("popular"), *amazon) < 0.05


@pytest.mark.parametrize("name", SHAPES)
def test_the_smallest_fraction_works_and_a_smaller_one_says_so(name):
    with pytest.raises(ParameterError) as error:
        shaped(name, 1e-9)
    least = float(str(error.value).split("at least ")[1].split(" ")[0])
    train, test = shaped(name, least)
    assert min(len(train), len(test)) >= 99
    assert train.Y.nnz / len(train) > 0.88 * SHAPES[name].labels_per_document


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"block": 0}, "block must be at least 1, but is 0"),
        ({"split": "dev"}, "split must be train or test, but is 'dev'"),
        ({"seed": -1}, "seed must be at least 0, but is -1"),
    ],
)
def test_wrong_arguments_are_refused_at_once(wrong, message):
    with pytest.raises(ParameterError, match=message):
        shaped_blocks("Amazon-670K", **wrong)


def test_written_files_read_back_to_the_same_data(tmp_path, amazon):
    steps = []
    written = write_shaped("Amazon-670K", tmp_path / "a", 0.02, progress=lambda *step: steps.append(step))
    for split, whole in zip(("train", "test"), amazon, strict=True):
        path = tmp_path / "a" / f"{split}.txt"
        found = read_dataset(path)
        assert same(found.X, whole.X)
        assert same(found.Y, whole.Y)
        assert written[path] == (len(whole), whole.X.shape[1], whole.Y.shape[1])
    assert steps[0] == ("write train.txt", 9809, 9809)
    assert len(steps) == 2
    assert BLOCK > 9809


def test_nothing_is_written_to_a_folder_with_files(tmp_path):
    (tmp_path / "labels.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match="must be written to a new folder, but .* exists; give another name"):
        write_shaped("Amazon-670K", tmp_path, 0.01)
    assert [path.name for path in tmp_path.iterdir()] == ["labels.jsonl"]
