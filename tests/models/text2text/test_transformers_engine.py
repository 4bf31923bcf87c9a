import json

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from labelspace.errors import LabelspaceError, ParameterError  # noqa: E402
from labelspace.models.text2text.config import own_config  # noqa: E402
from labelspace.models.text2text.constrained_decoding import TokenEmbeddings  # noqa: E402
from labelspace.models.text2text.model import Text2Text  # noqa: E402
from labelspace.models.text2text.pretrained import build_t5, load_generator, load_t5, weight_arrays  # noqa: E402
from labelspace.models.text2text.tokenization import pad  # noqa: E402
from labelspace.models.text2text.transformers_engine import sequence_loss  # noqa: E402
from labelspace.store import sealed  # noqa: E402
from labelspace.types import LabelSpace  # noqa: E402
from tests.checks import same_topk  # noqa: E402
from tests.models.text2text.products import best_by_column, products_table  # noqa: E402
from tests.models.text2text.t5_folder import write_t5_folder  # noqa: E402

TABLE = products_table(40)
KNOWN_TEXTS = [*TABLE[0], *TABLE[2].names, "brand: NA L0: NA L1: NA"] * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_t5_folder(tmp_path_factory.mktemp("t5"), KNOWN_TEXTS, generation={"num_beams": 2}, d_model=32)


def paper(folder, **params):
    """The preset, with a prompt of two words."""
    small = {"pretrained": str(folder), "prompt": "title {text} :", "epochs": 1, "batch_size": 20, "max_length": 30}
    return Text2Text.paper(**{**small, **params})


def fitted(folder, **params):
    texts, Y, labels = TABLE
    return paper(folder, **params).fit(texts, Y, labels=labels)


@pytest.fixture(scope="module")
def learned(folder):
    """The preset, once it has learned the table."""
    return fitted(folder, epochs=20, batch_size=4, learning_rate=0.015, dropout=0.0, beam_size=1)


@pytest.fixture(scope="module")
def untrained(folder):
    return fitted(folder, learning_rate=1e-6)


def test_free_generation_is_parsed(learned):
    bean, mist = "title: bean no 1", "title: mist no 2"
    written = ["brand: Kettle L0: Drinks L1: Coffee", "brand: Foam L0: Care L1: NA"]
    assert learned.generate([bean, mist]) == written
    assert best_by_column(learned, [bean, mist]) == [
        {"brand": "Kettle", "L0": "Drinks", "L1": "Coffee"},
        {"brand": "Foam", "L0": "Care"},
    ]
    assert learned.predict_topk([bean], k=1).scores[0, 0] == 1.0, "there is one sequence"


def test_what_cannot_be_parsed_counts_as_nothing_and_is_counted(untrained):
    top = untrained.predict_topk(TABLE[0][:10], k=3)
    assert (top.labels == -1).all()
    assert untrained.report()["generated"]["malformed"] == 10
    reader = untrained._generator.reader
    assert reader.read("brand: Foam L0: Nothing L1: NA") == ([TABLE[2].names.index("brand: Foam")], True, False)
    assert reader.read("brand: Foam") == ([TABLE[2].names.index("brand: Foam")], False, True)


@pytest.mark.parametrize("one_sequence", [False, True])
def test_constrained_probabilities_are_those_of_our_own_t5(folder, one_sequence):
    texts = [*TABLE[0][:9], ""]
    model = fitted(folder, decoding="constrained", one_sequence=one_sequence, beam_size=8)
    own = Text2Text(pretrained=str(folder), one_sequence=one_sequence, prior=False, beam_size=8, prompt=model.prompt)
    own.set_params(max_length=30)
    for key in model.state:
        setattr(own, key, getattr(model, key))
    own.labels_, own.t5_config_ = model.labels_, {k: v for k, v in model.t5_config_.items() if k in own_keys(model)}
    a, b = model.predict_topk(texts, k=7), own.predict_topk(texts, k=7)
    assert (a.labels == b.labels).all()
    finite = np.isfinite(b.scores)
    assert a.scores[finite] == pytest.approx(b.scores[finite], rel=1e-5)


def own_keys(model):
    return vars(own_config(model.t5_config_)).keys()


def test_constrained_generation_writes_existing_targets_only(untrained, folder):
    model = fitted(folder, decoding="constrained", learning_rate=1e-6, beam_size=3)
    written = set(model.generate(TABLE[0]))
    assert written <= set(
        model._generator.tokenization.tokenizer.decode(model._generator.tokenization.target_sequences)
    )
    assert not written & set(untrained.generate(TABLE[0])), "free generation knows nothing of them"


def test_the_loss_is_the_cross_entropy_over_the_vocabulary(folder):
    _, t5, _ = load_generator(str(folder), dropout=0.0)
    _, net = load_t5(str(folder))
    documents, targets = [[5, 6, 7], [8, 9]], [[20, 21, 1], [22, 1]]
    tokens, is_token = pad(documents)
    log_p = []
    with torch.no_grad():
        embeddings = TokenEmbeddings.of_all_tokens([torch.from_numpy(table) for table in net.tables])
        encoded = net.t5.encode(embeddings.embed(tokens), torch.from_numpy(is_token))
        for row, target in enumerate(targets):
            read = embeddings.embed(np.array([[0, *target[:-1]]], np.int32))
            hidden, _ = net.t5.decode(read, encoded.take(torch.tensor([row])))
            scores = embeddings.logits(hidden[0], embeddings.tokens).log_softmax(1)
            log_p += [float(scores[at, token]) for at, token in enumerate(target)]
        loss = sequence_loss(t5.eval(), tokens, is_token, targets)
    assert float(loss) == pytest.approx(-np.mean(log_p), rel=1e-5)
    assert len(log_p) == 5, "padding is not counted"


@pytest.mark.parametrize(
    "config", [{}, {"feed_forward_proj": "gated-silu", "tie_word_embeddings": False, "layer_norm_epsilon": 1e-5}]
)
def test_weights_and_configuration_rebuild_the_network(tmp_path, config):
    folder = write_t5_folder(tmp_path, KNOWN_TEXTS, **config)
    _, t5, saved = load_generator(str(folder), dropout=0.3)
    rebuilt = build_t5(json.loads(json.dumps(saved)), *weight_arrays(t5))
    tokens = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        logits = [net(input_ids=tokens, decoder_input_ids=tokens).logits for net in (t5.eval(), rebuilt)]
    assert torch.equal(*logits)
    if config:
        with pytest.raises(ParameterError, match="gated-silu and layer_norm_epsilon=1e-05, which needs engine=transf"):
            load_t5(str(folder))


def test_the_generation_settings_of_the_folder_are_used(untrained, folder, tmp_path):
    assert untrained.t5_config_["generation"] == {"num_beams": 2}
    assert untrained._generator.n_beams == 2
    assert fitted(folder, beam_size=3)._generator.n_beams == 3
    for name, settings in (("sampling", {"do_sample": True}), ("forced", {"forced_eos_token_id": 1})):
        unknown = write_t5_folder(tmp_path / name, KNOWN_TEXTS, generation=settings)
        with pytest.raises(ParameterError, match=f"generates with {next(iter(settings))}=") as error:
            fitted(unknown)
        assert "\n" not in str(error.value)


def test_a_saved_model_answers_the_same_and_needs_no_folder(learned, tmp_path):
    texts = TABLE[0][:8]
    learned.save(tmp_path / "model")
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".jsonl", ".safetensors"}
    loaded = Text2Text.load(tmp_path / "model")
    assert same_topk(loaded.predict_topk(texts, k=3), learned.predict_topk(texts, k=3))
    assert loaded.generate(texts) == learned.generate(texts)
    assert [loaded.generate([text])[0] for text in texts] == learned.generate(texts), "alone as in a batch"


@pytest.mark.parametrize(
    "change",
    [
        {"generation": {"do_sample": True}},
        {"generation": {"num_beams": 10**6}},
        {"feed_forward_proj": "gated-relu"},
        {"hidden_dim": 25},
        {"auto_map": "x.py"},
    ],
)
def test_a_changed_configuration_is_refused(untrained, tmp_path, change):
    with pytest.raises(LabelspaceError) as error:
        changed_on_disk(untrained, tmp_path, lambda model: model["state"]["t5_config_"]["value"].update(change))
    assert "\n" not in str(error.value)
    assert "checksum" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "rule"),
    [({"pretrained": None}, "engine=transformers needs a pretrained T5"), ({"prior": True}, "prior=true needs")],
)
def test_changed_parameters_that_do_not_go_together_are_refused(untrained, tmp_path, change, rule):
    with pytest.raises(LabelspaceError, match=rule) as error:
        changed_on_disk(untrained, tmp_path, lambda model: model["params"].update(change))
    assert "\n" not in str(error.value)


def changed_on_disk(model, folder, change):
    """The model as it is loaded after a change of its file, sealed again as a stranger would."""
    model.save(folder / "model")
    path = folder / "model" / "model.json"
    document = json.loads(path.read_text())
    change(document["model"])
    path.write_text(json.dumps(sealed(document)))
    return Text2Text.load(folder / "model")


def test_the_same_seed_gives_the_same_weights_and_leaves_torchs_generator_alone(folder):
    before = torch.random.get_rng_state()
    first, second = fitted(folder), fitted(folder)
    assert torch.equal(before, torch.random.get_rng_state())
    assert np.array_equal(first.weights_, second.weights_)
    assert not np.array_equal(first.weights_, fitted(folder, random_state=1).weights_), "dropout and order are drawn"


def test_patience_and_labels_that_are_not_of_a_table(folder):
    texts, names = TABLE[0], ["Tea", "Coffee", "甲"]
    Y = sp.csr_matrix(np.eye(3)[np.arange(len(texts)) % 3])
    model = paper(folder, one_sequence=False, patience=1, epochs=2).fit(texts, Y, labels=LabelSpace(names))
    assert len(model.validation_scores_) == 2
    reader = model._generator.reader
    assert reader.read(" Coffee ") == ([1], True, True)
    assert reader.read("Coffee NA") == reader.read("") == ([], True, False)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"pretrained": None, "prompt": None}, "engine=transformers needs a pretrained T5, but pretrained is none"),
        ({"prior": True}, "prior=true needs engine=own"),
        ({"token_learning_rate": 0.1}, "token_learning_rate of text2text has an effect only with engine=own"),
        ({"engine": "own"}, "decoding=free needs engine=transformers"),
        ({"engine": "own", "decoding": "constrained"}, "beam_size=none needs engine=transformers"),
        ({"one_sequence": False}, "but there are 2 column groups; set one_sequence=true"),
    ],
)
def test_choices_that_do_not_go_together_are_refused(folder, params, message):
    with pytest.raises(ParameterError, match=message):
        fitted(folder, **params)


def test_templates_need_a_pretrained_t5():
    for given in ({"prompt": "{text}"}, {"output": "{column}= {value}"}):
        with pytest.raises(ParameterError, match="has an effect only with pretrained, but pretrained is none; leave"):
            Text2Text(**given)
