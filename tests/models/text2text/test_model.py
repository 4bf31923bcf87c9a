import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import labelspace  # noqa: E402
from labelspace.data.synthetic import planted  # noqa: E402
from labelspace.data.table import describe_labels  # noqa: E402
from labelspace.errors import DataError, ModelError, ParameterError  # noqa: E402
from labelspace.models.text2text.model import Text2Text  # noqa: E402
from labelspace.models.text2text.subwords import Pieces  # noqa: E402
from labelspace.tagger import Tagger  # noqa: E402
from labelspace.types import Columns, Dataset, Hierarchy, LabelSpace  # noqa: E402

THINGS = {  # word of the title -> brand, L0, L1; the second level of the last one is not known
    "leaf": ("Kettle", "Drinks", "Tea"),
    "bean": ("Kettle", "Drinks", "Coffee"),
    "bar": ("Foam", "Care", "Soap"),
    "cup": ("Foam", "Drinks", "Tea"),
    "mist": ("Foam", "Care", None),
}


def table(n=120, seed=0):
    """Rows of products as texts, their labels, and what is known of these."""
    rng, names, rows = np.random.default_rng(seed), {}, []
    texts, edges = [], set()
    for _ in range(n):
        thing = list(THINGS)[rng.integers(len(THINGS))]
        price = f"; price: {rng.integers(9)}" if rng.random() < 0.7 else ""  # a field may be missing
        texts.append(f"title: {thing} no {rng.integers(5)}{price}")
        columns = zip(("brand", "L0", "L1"), THINGS[thing], strict=True)
        found = [names.setdefault(f"{column}: {value}", len(names)) for column, value in columns if value]
        edges |= {(found[2], found[1])} if len(found) == 3 else set()
        rows.append(found)
    Y = sp.lil_matrix((n, len(names)), dtype=np.float32)
    for i, found in enumerate(rows):
        Y[i, found] = 1
    return texts, Y.tocsr(), LabelSpace(list(names), hierarchy=Hierarchy.from_edges(sorted(edges), len(names)))


def quick(**params):
    return Text2Text(**{"dimension": 16, "heads": 2, "hidden": 16, "epochs": 20, "batch": 8, **params})


@pytest.fixture(scope="module")
def shop():
    return table()


@pytest.fixture(scope="module")
def fitted(shop):
    texts, Y, labels = shop
    return quick().fit(texts, Y, labels=labels)


def best_by_column(model, texts):
    """The best value of each column, as text."""
    top = model.predict_topk(texts, k=model.n_labels_)
    found = []
    for labels in top.labels:
        best = {}
        for name in [model.labels_.names[label] for label in labels if label >= 0]:
            best.setdefault(*name.split(": "))
        found.append(best)
    return found


def same(one, other):
    return np.array_equal(one.labels, other.labels) and np.array_equal(one.scores, other.scores)


def test_it_fills_in_a_table(fitted):
    leaf, cup = best_by_column(fitted, ["title: leaf no 3; price: 4", "title: cup"])
    assert leaf == {"brand": "Kettle", "L0": "Drinks", "L1": "Tea"}
    assert cup == {"brand": "Foam", "L0": "Drinks", "L1": "Tea"}


def test_a_level_without_a_value_is_na_and_takes_its_chance_from_the_values(fitted, shop):
    labels = shop[2]
    top = fitted.predict_topk(["title: mist no 1"], k=len(labels))
    scores = {
        labels.names[label]: score for label, score in zip(top.labels[0], top.scores[0], strict=True) if label >= 0
    }
    assert scores["L0: Care"] > 0.8
    assert sum(score for name, score in scores.items() if name.startswith("L1: ")) < 0.3
    for column in ("brand", "L0"):
        assert sum(score for name, score in scores.items() if name.startswith(column)) == pytest.approx(1.0, abs=0.01)


def test_the_best_of_each_column_are_a_path_that_exists(shop):
    texts, Y, labels = shop
    paths = {tuple(labels.names[i] for i in row.indices if labels.names[i][0] == "L") for row in Y}
    rng = np.random.default_rng(0)
    for seed in range(3):
        model = quick(epochs=1, seed=seed).fit(texts, Y, labels=labels)  # it has hardly learned anything
        asked = ["", "nothing known", *(" ".join(rng.choice(list(THINGS), 3)) for _ in range(40))]
        for found in best_by_column(model, asked):
            assert any({f"L0: {found['L0']}", f"L1: {found['L1']}"} == set(path) for path in paths), found


def test_a_path_stays_one_where_a_value_lies_below_several():
    rows = [("red", "A", "Other", "x"), ("green", "B", "Other", "y"), ("blue", "C", "Other", "z")]
    columns = Columns(("title",), (("L0", "L1", "L2"),))
    names = [f"L{level}: {value}" for level in range(3) for value in sorted({row[level + 1] for row in rows})]
    Y = sp.csr_matrix([[name in [f"L{i}: {v}" for i, v in enumerate(row[1:])] for name in names] for row in rows] * 30)
    labels = describe_labels(LabelSpace(names), Y.astype(np.float32), columns)
    tagger = Tagger(quick(epochs=8))
    tagger.fit_dataset(
        Dataset(Y.astype(np.float32), labels, [f"title: {row[0]}" for row in rows] * 30, columns=columns)
    )
    for word, *path in rows:
        for consistent in (False, True):
            tags = [name for name, _ in tagger.tag(f"title: {word}", k=7, consistent=consistent)]
            assert [next(name for name in tags if name.startswith(f"L{i}")) for i in range(3)] == [
                f"L{i}: {value}" for i, value in enumerate(path)
            ]


def test_the_score_of_a_label_is_the_sum_of_its_answers(fitted, shop):
    question, net, vectors = fitted._answerer()
    top = fitted.predict_topk(["title: leaf cup"], k=len(shop[2]))
    scores = np.zeros(len(shop[2]))
    scores[top.labels[0][top.labels[0] >= 0]] = top.scores[0][top.labels[0] >= 0]
    drinks, tea, coffee = (shop[2].index[name] for name in ("L0: Drinks", "L1: Tea", "L1: Coffee"))
    assert scores[drinks] == pytest.approx(scores[tea] + scores[coffee], abs=1e-5), "every drink is tea or coffee"


@pytest.mark.slow
@pytest.mark.slow
def test_any_labels_will_do_with_and_without_a_hierarchy():
    data = planted(n=300, d=80, l=12, texts=True, seed=3)
    for labels in (data.labels, LabelSpace(data.labels.names), None):
        model = quick(epochs=25, dimension=32, batch=16).fit(data.texts[:250], data.Y[:250], labels=labels)
        first = model.predict_topk(data.texts[250:], k=1).labels[:, 0]
        assert data.Y[np.arange(250, 300), first].mean() > 0.7


def test_blocks_of_documents_do_not_matter(fitted, shop, monkeypatch):
    whole = fitted.predict_topk(shop[0], k=4)
    monkeypatch.setattr("labelspace.models.text2text.model.ROW_BLOCK", 7)
    assert same(fitted.predict_topk(shop[0], k=4), whole)


def test_the_same_seed_gives_the_same_model_and_another_another(shop):
    texts, Y, labels = shop
    one, again, other = (quick(epochs=2, seed=seed).fit(texts, Y, labels=labels) for seed in (1, 1, 2))
    assert np.array_equal(one.weights_, again.weights_)
    assert np.array_equal(one.vectors_, again.vectors_)
    assert np.array_equal(one.pieces_, again.pieces_)
    assert not np.array_equal(one.weights_, other.weights_)


def test_a_saved_model_answers_as_before_and_holds_no_pickle(fitted, shop, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model")
    assert same(loaded.predict_topk(shop[0], k=5), fitted.predict_topk(shop[0], k=5))
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".jsonl", ".safetensors"}
    assert loaded.report() == fitted.report()


def test_a_training_that_was_cut_off_goes_on(shop, tmp_path, monkeypatch):
    from labelspace.models.text2text.model import _Task

    texts, Y, labels = shop
    whole = quick(epochs=3).fit(texts, Y, labels=labels)
    epoch = _Task._epoch

    def cut_off(self, number):
        if number == 2:
            raise KeyboardInterrupt
        epoch(self, number)

    monkeypatch.setattr(_Task, "_epoch", cut_off)
    with pytest.raises(KeyboardInterrupt):
        quick(epochs=3).fit(texts, Y, labels=labels, checkpoint=tmp_path)
    monkeypatch.setattr(_Task, "_epoch", epoch)
    resumed = quick(epochs=3).fit(texts, Y, labels=labels, checkpoint=tmp_path)
    assert np.array_equal(resumed.weights_, whole.weights_)
    with pytest.raises(ModelError, match="the same data and parameters"):
        quick(epochs=3).fit(["other", *texts[1:]], Y, labels=labels, checkpoint=tmp_path)


def test_patience_stops_by_documents_held_out(shop):
    texts, Y, labels = shop
    model = quick(epochs=30, patience=1).fit(texts, Y, labels=labels)
    assert 1 < len(model.course_) < 30
    assert model.report()["accuracies"] == model.course_
    given = quick(epochs=30, patience=1).fit(texts, Y, labels=labels, validation=(texts[:20], Y[:20]))
    assert len(given.course_) >= 2


def test_progress_counts_tokens_up_to_the_last(shop):
    texts, Y, labels = shop
    told = []
    quick(epochs=2).fit(texts, Y, labels=labels, progress=lambda *step: told.append(step))
    assert {step for step, _, _ in told} == {"tokens"}
    done = [done for _, done, _ in told]
    assert done == sorted(done)
    assert told[-1][1] == told[-1][2]


@pytest.fixture(scope="module")
def small_t5(tmp_path_factory, shop):
    """A folder as transformers writes it: a T5 that knows nothing, and a tokenizer."""
    folder = tmp_path_factory.mktemp("t5")
    pieces = Pieces.learned([*shop[0], *shop[2].names, "Your task Input: Output: NA"], vocabulary=200)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=pieces._tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=210, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_pretrained_weights_are_tuned_and_not_needed_again(small_t5, shop, tmp_path):
    texts, Y, labels = shop
    model = Text2Text(pretrained=str(small_t5), epochs=15, batch=8, rate=0.003, token_rate=0.03, dropout=0.0)
    model.fit(texts, Y, labels=labels)
    assert model.shape_["hidden"] == 24, "the shape is that of the folder"
    assert best_by_column(model, ["title: bar no 1"])[0]["L1"] == "Soap"
    model.save(tmp_path / "model")
    small_t5.rename(tmp_path / "away")
    try:
        loaded = labelspace.load(tmp_path / "model")
        assert same(loaded.predict_topk(texts, k=4), model.predict_topk(texts, k=4))
    finally:
        (tmp_path / "away").rename(small_t5)


def test_pretrained_answers_are_spelled_in_its_own_tokens(small_t5, shop):
    texts, Y, labels = shop
    model = Text2Text(pretrained=str(small_t5), epochs=1).fit(texts, Y, labels=labels)
    question, _, _ = model._answerer()
    lengths = [len(tokens) for tokens in question.pieces.of(["L0: Drinks L1: Tea"])]
    assert question.parts[1].tree.digits >= lengths[0] + 1
    tokens = question.documents(["title: leaf"])[0]
    assert tokens[: len(question.head)] == question.head
    assert tokens[-1] == 1, "the end"


def test_labels_that_a_tokenizer_spells_alike_are_told_apart(small_t5):
    labels = LabelSpace(["brand: 甲", "brand: 乙", "brand: m2", "brand: m²"])
    texts, Y = [f"title: {what} no {i}" for i in range(10) for what in THINGS][:40], np.tile(np.eye(4), (10, 1))
    model = Text2Text(pretrained=str(small_t5), epochs=1, batch=8).fit(texts, Y, labels=labels)
    top = model.predict_topk(["title: leaf"], k=4)
    assert sorted(top.labels[0]) == [0, 1, 2, 3]
    assert top.scores[0].sum() == pytest.approx(1.0, abs=1e-3)


def test_what_is_no_t5_is_refused_in_one_line(small_t5, shop, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    texts, Y, labels = shop
    foreign = tmp_path / "bert"
    transformers.BertConfig(hidden_size=8, num_attention_heads=1).save_pretrained(foreign)
    unsafe = tmp_path / "unsafe"
    unsafe.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (unsafe / name).write_bytes((small_t5 / name).read_bytes())
    torch.save({}, unsafe / "pytorch_model.bin")
    for where, why in (
        (foreign, "is a bert"),
        (tmp_path / "none", "is no folder"),
        ("no/such-t5", "cannot be read"),
        (unsafe, "cannot be read"),
    ):
        with pytest.raises(ParameterError, match=why) as error:
            Text2Text(pretrained=str(where)).fit(texts, Y, labels=labels)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"dimension": 10, "heads": 4}, "dimension of text2text must be a multiple of heads"),
        ({"pretrained": ""}, "pretrained of text2text must be none, or a folder or the name of a T5"),
        ({"beam": 0}, "beam of text2text must be a whole number of at least 1"),
        ({"dropout": 1}, "dropout of text2text must be at least 0 and below 1"),
    ],
)
def test_bad_parameters_are_refused(params, message, shop):
    with pytest.raises(ParameterError, match=message):
        Text2Text(**params).fit(*shop[:2])


def test_features_are_refused(shop):
    with pytest.raises(DataError, match="text"):
        quick().fit(np.eye(3), np.eye(3))


def test_weights_that_go_astray_are_reported(shop):
    with pytest.raises(ParameterError, match="lower rate or token_rate"):
        quick(rate=1e20, token_rate=1e20, clip=1e20).fit(*shop[:2])


def test_neither_the_library_nor_the_list_of_methods_needs_torch():
    script = (
        "import sys, labelspace, json; from labelspace.models.registry import methods; methods(); "
        "print(json.dumps([name for name in ('torch', 'transformers', 'tokenizers') if name in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == []
