import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from labelspace.errors import ParameterError  # noqa: E402
from labelspace.models.text2text.model import Text2Text  # noqa: E402
from labelspace.models.text2text.tokenization import SubwordTokenizer  # noqa: E402
from labelspace.types import LabelSpace  # noqa: E402
from tests.checks import same_topk  # noqa: E402
from tests.models.text2text.products import PRODUCTS, best_by_column  # noqa: E402


@pytest.fixture(scope="module")
def small_t5(tmp_path_factory, products):
    """A folder as transformers writes it: a T5 with random weights, and a tokenizer."""
    folder = tmp_path_factory.mktemp("t5")
    texts = [*products[0], *products[2].names, "Your task Input: Output: NA"]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=SubwordTokenizer.train(texts, vocab_size=200)._tokenizer,
        pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=210, d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_pretrained_weights_are_fine_tuned_and_not_needed_again(small_t5, products, tmp_path):
    texts, Y, labels = products
    rates = {"learning_rate": 0.003, "token_learning_rate": 0.03}
    model = Text2Text(pretrained=str(small_t5), epochs=15, batch_size=8, dropout=0.0, **rates)
    model.fit(texts, Y, labels=labels)
    assert model.t5_config_["hidden_dim"] == 24, "the architecture is that of the folder"
    assert best_by_column(model, ["title: bar no 1"])[0]["L1"] == "Soap"
    model.save(tmp_path / "model")
    small_t5.rename(tmp_path / "away")
    try:
        loaded = Text2Text.load(tmp_path / "model")
        assert same_topk(loaded.predict_topk(texts, k=4), model.predict_topk(texts, k=4))
    finally:
        (tmp_path / "away").rename(small_t5)


def test_targets_are_token_sequences_of_the_pretrained_tokenizer(small_t5, products):
    texts, Y, labels = products
    model = Text2Text(pretrained=str(small_t5), epochs=1).fit(texts, Y, labels=labels)
    prompt = model._decoder.tokenization
    (path,) = prompt.tokenizer.encode(["L0: Drinks L1: Tea"])
    assert prompt.tries[1].tree.code_length >= len(path) + 1
    (tokens,) = prompt.encode(["title: leaf"])
    assert tokens[: len(prompt.prefix)] == prompt.prefix
    assert tokens[-1] == 1, "the end"


def test_labels_with_the_same_tokens_stay_distinct(small_t5):
    labels = LabelSpace(["brand: 甲", "brand: 乙", "brand: m2", "brand: m²"])
    texts, Y = [f"title: {word} no {i}" for i in range(10) for word in PRODUCTS][:40], np.tile(np.eye(4), (10, 1))
    model = Text2Text(pretrained=str(small_t5), epochs=1, batch_size=8).fit(texts, Y, labels=labels)
    top = model.predict_topk(["title: leaf"], k=4)
    assert sorted(top.labels[0]) == [0, 1, 2, 3]
    assert top.scores[0].sum() == pytest.approx(1.0, abs=1e-3)


def test_what_is_no_t5_is_refused_in_one_line(small_t5, products, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    texts, Y, labels = products
    foreign = tmp_path / "bert"
    transformers.BertConfig(hidden_size=8, num_attention_heads=1).save_pretrained(foreign)
    unsafe = tmp_path / "unsafe"
    unsafe.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (unsafe / name).write_bytes((small_t5 / name).read_bytes())
    torch.save({}, unsafe / "pytorch_model.bin")
    for path, reason in (
        (foreign, "is a bert"),
        (tmp_path / "none", "is no folder"),
        ("no/such-t5", "cannot be read"),
        (unsafe, "cannot be read"),
    ):
        with pytest.raises(ParameterError, match=reason) as error:
            Text2Text(pretrained=str(path)).fit(texts, Y, labels=labels)
        assert "\n" not in str(error.value)
