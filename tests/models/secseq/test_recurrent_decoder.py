from dataclasses import replace
from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelspace.labels.codes import Codes  # noqa: E402
from labelspace.models.secseq.config import MAX_SEQUENCE, DecoderConfig  # noqa: E402
from labelspace.models.secseq.network import (  # noqa: E402
    EncoderStates,  # noqa: E402
    build_decoder,
    decoder_from_weights,
)
from labelspace.models.secseq.objectives import PrefixObjective, SequenceObjective  # noqa: E402
from tests.models.secseq.decoder_twin import CODES, random_labels  # noqa: E402

LENGTH, SIZE, UNITS, HIDDEN = 3, 3, 4, 6
SHARED = list(product([False, True], [False, True]))
CONFIG = DecoderConfig("gru", 5, HIDDEN, UNITS, SIZE, LENGTH, True, "gru")


def random_decoder(config, seed=0):
    """A decoder with no weight at 0."""
    decoder, rng = build_decoder(config, np.random.default_rng(seed)), np.random.default_rng(seed + 1)
    with torch.no_grad():
        for weights in decoder.parameters():
            weights += torch.from_numpy(rng.uniform(-0.5, 0.5, weights.shape).astype(np.float32))
    return decoder.requires_grad_(False)


def documents(encoder="gru", n=2):
    """Encoder states: the first document has two words, the others four."""
    n_words = 1 if encoder == "bag" else 4
    states = np.random.default_rng(3).standard_normal((n, n_words, HIDDEN)).astype(np.float32)
    mask = np.ones((n, n_words), bool)
    mask[0, 2:] = False
    return EncoderStates(torch.from_numpy(states), torch.from_numpy(mask))


# ---- the same in NumPy


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numpy_cell(w, kind, x, s, cells):
    """A step of a GRU (Cho et al., 2014) or an LSTM, with torch's order of gates."""
    of_input = w["cell.weight_ih_l0"] @ x + w["cell.bias_ih_l0"]
    of_state = w["cell.weight_hh_l0"] @ s + w["cell.bias_hh_l0"]
    if kind == "gru":
        (r, z, n), (r_state, z_state, n_state) = np.split(of_input, 3), np.split(of_state, 3)
        r, z = sigmoid(r + r_state), sigmoid(z + z_state)
        return (1 - z) * np.tanh(n + r * n_state) + z * s, cells
    i, f, g, o = np.split(of_input + of_state, 4)
    cells = sigmoid(f) * cells + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cells), cells


def numpy_logits(decoder, words, digits):
    """The logits of each digit of one document's sequence, given those before it, and after the last."""
    config, w = decoder.config, {name: p.numpy().astype(np.float64) for name, p in decoder.named_parameters()}
    s, cells = np.tanh(w["initial.weight"] @ words.mean(0) + w["initial.bias"]), np.zeros(UNITS)
    x, logits = w["digit_embeddings.weight"][-1], []
    for t in range(len(digits) + 1):
        d = t % LENGTH
        s, cells = numpy_cell(w, config.decoder, x, s, cells)
        if config.encoder == "bag":
            a = words[0]
        else:
            scores = words @ (w["attention.weight"] @ s + w["attention.bias"]) / HIDDEN**0.5
            weights = np.exp(scores - scores.max())
            a = weights / weights.sum() @ words
        o = np.tanh(w["combine.weight"] @ np.append(s, a) + w["combine.bias"])
        layer = 0 if config.shared_outputs else d
        logits.append(w[f"outputs.{layer}.weight"] @ o + w[f"outputs.{layer}.bias"])
        if t < len(digits):
            x = w["digit_embeddings.weight"][digits[t] + (0 if config.shared_embeddings else d * SIZE)]
    return logits


@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize("encoder", ["bag", "gru"])
@pytest.mark.parametrize(("outputs", "embeddings"), SHARED)
def test_steps_are_those_of_the_formulas(kind, encoder, outputs, embeddings):
    config = replace(CONFIG, decoder=kind, encoder=encoder, shared_outputs=outputs, shared_embeddings=embeddings)
    decoder, encoder_states = random_decoder(config), documents(encoder)
    digits = np.array([[[2, 0, 1, 1], [0, 0, 2, 2], [1, 2, 0, 0]], [[0, 1, 2, 0], [2, 1, 1, 1], [0, 2, 2, 1]]])
    states = decoder.start(encoder_states, 3)
    for t in range(5):
        logits = decoder.next_logits(states, t % LENGTH)
        assert logits.shape == (2, 3, SIZE + (outputs or t % LENGTH == 0)), "the end"
        for row, m in np.ndindex(2, 3):
            words = encoder_states.states[row][encoder_states.mask[row]].numpy().astype(np.float64)
            assert np.allclose(logits[row, m], numpy_logits(decoder, words, digits[row, m, :t])[-1], atol=1e-5)
        if t < 4:
            states = decoder.append(encoder_states, states, torch.from_numpy(digits[:, :, t]), t % LENGTH)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize(("outputs", "embeddings"), SHARED)
@pytest.mark.parametrize("repeated", [False, True])
def test_the_loss_is_that_of_going_digit_by_digit(kind, outputs, embeddings, repeated):
    """A softmax over all values; labels 5 and 7 of the first document share a code."""
    config = replace(CONFIG, decoder=kind, shared_outputs=outputs, shared_embeddings=embeddings)
    Y = random_labels(4, 9)
    decoder, encoder_states, rows = random_decoder(config), documents(n=4), np.array([2, 0, 1, 3], np.int32)
    rng = np.random.default_rng(0)
    objective = SequenceObjective(Codes(CODES, 3), Y, "frequent", rng, MAX_SEQUENCE, masked=False, repeated=repeated)
    loss, n_tokens = objective.loss(decoder, encoder_states, rows)
    rank, expected, count = (-Y.toarray().sum(0)).argsort(kind="stable").tolist(), 0.0, 0
    for i, row in enumerate(rows):
        codes = [CODES[label].tolist() for label in sorted(Y[row].indices, key=rank.index)]
        if not repeated:
            codes = [code for at, code in enumerate(codes) if code not in codes[:at]]
        if not codes:
            continue
        words = encoder_states.states[i][encoder_states.mask[i]].numpy().astype(np.float64)
        digits = [digit for code in codes for digit in code]
        for logits, digit in zip(numpy_logits(decoder, words, digits), [*digits, SIZE], strict=True):
            expected += np.log(np.exp(logits).sum()) - logits[digit]
        count += len(digits)
    assert n_tokens == count
    assert count == 3 * (Y.nnz if repeated else len(objective.labels))
    assert loss.item() == pytest.approx(expected / 4, rel=1e-5)


# ---- weights


@pytest.mark.parametrize("kind", ["gated", "gru", "lstm"])
@pytest.mark.parametrize("encoder", ["bag", "gru", "convolution"])
@pytest.mark.parametrize(("outputs", "embeddings"), SHARED)
def test_the_number_of_weights_is_that_of_the_config(kind, encoder, outputs, embeddings):
    embeddings = embeddings and kind != "gated"
    for sequences in (True, False) if kind == "gated" else (True,):
        for sizes in ({}, {"code_length": 1}, {"code_size": 7, "decoder_dim": 3}, {"hidden_dim": 8, "word_dim": 2}):
            shared = {"shared_outputs": outputs, "shared_embeddings": embeddings}
            config = replace(CONFIG, decoder=kind, encoder=encoder, sequences=sequences, **shared, **sizes)
            decoder = build_decoder(config, np.random.default_rng(0))
            weights = np.concatenate([p.detach().numpy().ravel() for p in decoder.parameters()])
            assert len(weights) == config.n_weights
            copy = decoder_from_weights(config, weights)
            assert all(torch.equal(*pair) for pair in zip(decoder.parameters(), copy.parameters(), strict=True))


def test_a_shared_softmax_has_as_many_weights_whatever_the_code_length():
    plain = replace(CONFIG, shared_outputs=True, shared_embeddings=True)
    assert plain.n_weights == replace(plain, code_length=50).n_weights < CONFIG.n_weights


def test_initial_weights_depend_on_the_generator_alone():
    one, same, other = (build_decoder(CONFIG, np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert all(torch.equal(*pair) for pair in zip(one.parameters(), same.parameters(), strict=True))
    assert not torch.equal(one.combine.weight, other.combine.weight)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_gradients_reach_every_weight(kind):
    decoder = build_decoder(replace(CONFIG, decoder=kind), np.random.default_rng(0))
    objective = SequenceObjective(Codes(CODES, 3), random_labels(4, 9), "rare", np.random.default_rng(0), MAX_SEQUENCE)
    embeddings = torch.from_numpy(np.random.default_rng(1).standard_normal((8, 5)).astype(np.float32))
    encoder_states = decoder.encode(embeddings, np.array([3, 2, 1, 2], np.int32))
    objective.loss(decoder, encoder_states, np.arange(4, dtype=np.int32))[0].backward()
    for name, weights in decoder.named_parameters():
        assert weights.grad.any(), name


# ---- initial biases of one output layer


def test_shared_biases_start_at_the_frequency_of_digits_at_all_positions():
    Y = random_labels(4, 9)
    decoder = random_decoder(replace(CONFIG, shared_outputs=True))
    objective = SequenceObjective(Codes(CODES, 3), Y, "frequent", np.random.default_rng(0), MAX_SEQUENCE)
    objective.init_biases(decoder)
    counts = np.bincount(CODES[objective.labels].ravel(), minlength=3) + 1.5
    assert np.allclose(decoder.outputs[2].bias, np.log([*counts, 4.5]) - np.log(5), atol=1e-6)
    gated, own = (
        random_decoder(replace(CONFIG, encoder="bag", decoder="gated", sequences=False, shared_outputs=shared))
        for shared in (True, False)
    )
    for decoder in (gated, own):
        PrefixObjective(Codes(CODES, 3), Y, softmax=False).init_biases(decoder)
    odds = torch.stack([layer.bias for layer in own.outputs]).exp()
    assert (gated.outputs[0].bias.exp() > odds.min(0).values - 1e-6).all()
    assert (gated.outputs[0].bias.exp() < odds.max(0).values + 1e-6).all(), "odds of sums are between"
