"""A tagger with columns beside the text: every method that reads a matrix learns from them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from labelspace import Tagger
from labelspace.errors import DataError, ParameterError
from labelspace.tagger.held_out import HeldOutDocuments

SIDE = {"text": "title", "labels": "tags", "numeric": "price", "categorical": "brand", "vectors": "emb"}


def table(n: int = 240) -> pd.DataFrame:
    """Return documents whose titles say nothing: half of the labels follow from the price, half from the brand."""
    rng = np.random.default_rng(0)
    price, brand = rng.uniform(0, 100, n), rng.choice(["Amul", "Tata"], n)
    tags = [["cheap" if p < 50 else "dear", b.lower()] for p, b in zip(price, brand, strict=True)]
    emb = list(rng.normal(size=(n, 3)).astype(np.float32))
    return pd.DataFrame({"title": "an item", "tags": tags, "price": price, "brand": brand, "emb": emb})


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger("one_vs_rest").fit(table(), **SIDE)


ROW = {"title": "an item", "price": 3, "brand": "Tata", "emb": [0.0, 0.0, 0.0]}


@pytest.mark.parametrize("method", ["one_vs_rest", "neighbors", "label_tree", "blend"])
def test_labels_follow_from_what_stands_beside_the_text(method: str) -> None:
    data = table()
    made = Tagger(method).fit(data[:200], **SIDE)
    assert made.evaluate(data[200:], ks=[2])["P@2"] > 80  # by chance 50


def test_a_saved_tagger_reads_the_same_rows(tagger: Tagger, tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.side_columns.names == ("price", "brand", "emb")
    assert loaded.tag(ROW) == tagger.tag(ROW)
    assert {name for name, _ in loaded.tag(ROW, k=2)} == {"cheap", "tata"}


def test_a_row_without_a_column_is_an_error(tagger: Tagger) -> None:
    with pytest.raises(DataError, match="'price'"):
        tagger.tag({key: value for key, value in ROW.items() if key != "price"})
    with pytest.raises(DataError, match="reads price, brand, emb beside each text"):
        tagger.tag("an item")


def test_explanations_name_the_values(tagger: Tagger) -> None:
    why = tagger.explain(ROW, ["cheap"])[0]
    by_name = {value.name: value.share for value in why.values}
    assert list(by_name)[1:] == ["brand = Tata", "emb"]
    assert next(iter(by_name)).startswith("price ")
    assert max(by_name, key=by_name.__getitem__).startswith("price ")
    assert why.remainder == pytest.approx(0, abs=1e-6)
    assert why.words[-1].text == "item"


def test_a_method_that_reads_texts_only_refuses() -> None:
    with pytest.raises(ParameterError, match="lexical reads the text only; leave out price.*one_vs_rest"):
        Tagger("lexical").fit(table(), text="title", labels="tags", numeric="price")


def test_a_tagger_goes_on_learning_from_rows(tagger: Tagger) -> None:
    made = Tagger("one_vs_rest").fit(table(), **SIDE)
    new = table(40).assign(title="a novelty", tags=[["new"]] * 40)
    made.learn(new)
    assert made.tag({**ROW, "title": "a novelty"}, k=1)[0][0] == "new"


def test_held_out_documents_keep_their_values(tagger: Tagger) -> None:
    documents = tagger.to_dataset(table(5))
    kept = HeldOutDocuments.of(documents).dataset(tagger.labels_, tagger.side_columns)
    assert tagger.tag_batch(kept.texts) == tagger.tag_batch(documents.texts)
