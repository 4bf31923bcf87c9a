from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelspace.models.secseq.config import DecoderConfig  # noqa: E402
from labelspace.models.secseq.network import CodeDecoder, EncoderStates, decoder_from_weights  # noqa: E402
from labelspace.training.torch_optimizer import FlatAdam, single_thread  # noqa: E402

ENCODERS = ("bag", "gru", "convolution")


def config_of(encoder="bag", sequences=False, **sizes):
    word_dim = 6 if encoder == "bag" else 5
    return replace(DecoderConfig(encoder, word_dim, 6, 4, 3, 2, sequences), **sizes)


def rng_of(seed=0):
    return np.random.default_rng(seed)


def random_decoder(config, seed=0):
    """A decoder with no weight at 0, biases neither."""
    decoder = CodeDecoder(config, rng_of(seed))
    rng = rng_of(seed + 1)
    with torch.no_grad():
        for weights in decoder.parameters():
            weights += torch.from_numpy(rng.uniform(-0.5, 0.5, weights.shape).astype(np.float32))
    return decoder.requires_grad_(False)


def random_rows(lengths, dim, seed=3):
    return torch.from_numpy(rng_of(seed).standard_normal((sum(lengths), dim)).astype(np.float32))


def flat_weights(decoder):
    return np.concatenate([weights.detach().numpy().ravel() for weights in decoder.parameters()])


# ---- weights


def expected_n_weights(config):
    """The number of weights, counted from the formula in the module's docstring."""
    word_dim, hidden_dim, decoder_dim, code_size = (
        config.word_dim, config.hidden_dim, config.decoder_dim, config.code_size,
    )  # fmt: skip
    total = {
        "bag": hidden_dim,
        "gru": (decoder_dim + 1) * hidden_dim + 2 * 3 * (hidden_dim // 2) * (word_dim + hidden_dim // 2 + 2),
        "convolution": (decoder_dim + 1) * hidden_dim + (5 * word_dim + 1) * hidden_dim,
    }[config.encoder]
    total += config.code_length * code_size * decoder_dim + config.sequences * 6 * decoder_dim * (decoder_dim + 1)
    for d in range(config.code_length):
        n_values = code_size + (config.sequences and d == 0)
        gates = (decoder_dim + 1) * decoder_dim + (decoder_dim + 1) * hidden_dim
        total += gates + (hidden_dim + 1) * n_values + (decoder_dim + 1) * decoder_dim + decoder_dim * n_values
    return total


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("sequences", [False, True])
def test_the_number_of_weights_depends_on_the_config(encoder, sequences):
    for sizes in ({}, {"code_length": 3}, {"code_size": 7}, {"hidden_dim": 8}, {"decoder_dim": 2}):
        config = config_of(encoder, sequences, **sizes)
        assert len(flat_weights(CodeDecoder(config, rng_of()))) == expected_n_weights(config)


def test_initial_weights_depend_on_the_generator_alone_and_biases_are_0():
    config = config_of("gru", sequences=True)
    torch.manual_seed(1)
    one = CodeDecoder(config, rng_of(4))
    torch.manual_seed(2)
    same = CodeDecoder(config, rng_of(4))
    assert np.array_equal(flat_weights(one), flat_weights(same))
    assert not np.array_equal(flat_weights(one), flat_weights(CodeDecoder(config, rng_of(5))))
    for name, weights in one.named_parameters():
        if "bias" in name and not (name.startswith("gates") and ".2." in name):
            assert not weights.any(), name
        elif "bias" in name:
            assert (weights == 1).all(), name
        else:
            bound = 1.0 if name.startswith("digit_embeddings") else weights[0].numel() ** -0.5
            assert 0.5 * bound < weights.abs().max() <= bound, name


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_decoder_from_the_weights_of_another_has_the_same_logits(encoder):
    config = config_of(encoder, sequences=True)
    decoder = CodeDecoder(config, rng_of(7))
    optimizer = FlatAdam(decoder, "learning_rate")
    optimizer.weights.value += 0.1
    weights = optimizer.weights.value.copy()
    copy = decoder_from_weights(config, weights)
    assert not any(parameter.requires_grad for parameter in copy.parameters())
    lengths = np.array([1, 1, 1] if encoder == "bag" else [3, 1, 2], np.int32)
    embeddings, p = random_rows(lengths, config.word_dim), random_rows([4], 4)[:3, None]
    for d in range(2):
        one, other = (net.digit_logits(net.attend(net.encode(embeddings, lengths), p), p, d) for net in (decoder, copy))
        assert torch.equal(one, other)
    before = weights.copy()
    weights[:] = 0
    assert np.array_equal(flat_weights(copy), before), "the array is copied"


# ---- logits


def test_logits_are_those_of_the_formula():
    decoder = random_decoder(config_of(sequences=True))
    a, p = (random_rows([7], dim, seed).numpy().astype(np.float64) for dim, seed in ((6, 8), (4, 9)))
    for d in range(2):
        w = {key: value.numpy().astype(np.float64) for key, value in decoder.named_parameters()}

        def two_layers(x, kind, d=d, w=w):
            inner = np.maximum(x @ w[f"{kind}.{d}.0.weight"].T + w[f"{kind}.{d}.0.bias"], 0)
            return inner @ w[f"{kind}.{d}.2.weight"].T + w.get(f"{kind}.{d}.2.bias", 0)

        expected = (a * two_layers(p, "gates")) @ w[f"outputs.{d}.weight"].T + w[f"outputs.{d}.bias"]
        expected = expected + two_layers(p, "priors")
        logits = decoder.digit_logits(torch.tensor(a).float(), torch.tensor(p).float(), d)
        assert logits.shape == (7, 4 if d == 0 else 3), "the end is one more value of the first digit"
        assert np.allclose(logits, expected, atol=1e-5)


def test_digits_have_an_embedding_per_position():
    decoder = random_decoder(config_of(code_length=3))
    digits = torch.tensor([[0, 2], [1, 1]])
    for d in range(3):
        assert torch.equal(decoder.embed_digits(digits, d), decoder.digit_embeddings.weight[digits + 3 * d])


def test_the_code_gru_continues_from_a_state():
    decoder = random_decoder(config_of(sequences=True))
    codes = random_rows([6], 4).view(2, 3, 4)
    at_once = decoder.code_states(codes)
    assert at_once.shape == (2, 3, 4)
    first = decoder.code_states(codes[:, :2])
    assert torch.allclose(first, at_once[:, :2], atol=1e-6)
    assert torch.allclose(decoder.code_states(codes[:, 2:], first[:, -1])[:, 0], at_once[:, 2], atol=1e-6)


def test_the_initial_state_is_zeros():
    decoder = CodeDecoder(config_of(), rng_of())
    assert torch.equal(decoder.initial_state(2, 3), torch.zeros(2, 3, 4))


# ---- encoders


def slow_states(decoder, words):
    """The hidden states of one document, as torch's modules give them for it alone."""
    word_dim = decoder.config.word_dim
    if not len(words):
        words = torch.zeros(1, word_dim)
    if decoder.config.encoder == "gru":
        return decoder.encoder_gru(words[None])[0][0]
    padded = torch.cat([torch.zeros(2, word_dim), words, torch.zeros(2, word_dim)])
    kernel = decoder.convolution.weight  # (hidden_dim, word_dim, 5)
    states = [(kernel * padded[at : at + 5].T).sum((1, 2)) + decoder.convolution.bias for at in range(len(words))]
    return torch.relu(torch.stack(states))


@pytest.mark.parametrize("encoder", ["gru", "convolution"])
@pytest.mark.parametrize("lengths", [[3, 1, 7, 0, 2], [0, 0], [4], [0, 2]])
def test_hidden_states_are_those_of_each_document_alone(encoder, lengths):
    decoder = random_decoder(config_of(encoder))
    embeddings = random_rows(lengths, 5)
    encoder_states = decoder.encode(embeddings, np.array(lengths, np.int32))
    max_length = max(*lengths, 1)
    assert encoder_states.states.shape == (len(lengths), max_length, 6)
    for row, words in enumerate(torch.split(embeddings, lengths)):
        expected = slow_states(decoder, words)
        assert encoder_states.mask[row].tolist() == [word < max(lengths[row], 1) for word in range(max_length)]
        assert torch.allclose(encoder_states.states[row, : len(expected)], expected, atol=1e-5)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_contexts_do_not_depend_on_the_other_documents_of_a_batch(encoder):
    decoder = random_decoder(config_of(encoder))
    lengths = [1] * 5 if encoder == "bag" else [3, 1, 7, 0, 2]
    embeddings = random_rows(lengths, decoder.config.word_dim)
    h = random_rows([10], 4).view(5, 2, 4)
    batch = decoder.encode(embeddings, np.array(lengths, np.int32))
    contexts, initial = decoder.attend(batch, h), decoder.initial_context(batch)
    assert contexts.shape == (5, 2, 6)
    assert initial.shape == (5, 6)
    for row, words in enumerate(torch.split(embeddings, lengths)):
        alone = decoder.encode(words, np.array(lengths[row : row + 1], np.int32))
        assert torch.allclose(decoder.attend(alone, h[row : row + 1])[0], contexts[row], atol=1e-5)
        assert torch.allclose(decoder.initial_context(alone)[0], initial[row], atol=1e-5)


@pytest.mark.parametrize("encoder", ["gru", "convolution"])
def test_attention_is_a_weighted_mean_of_the_words_under_the_mask(encoder):
    decoder = random_decoder(config_of(encoder))
    states = random_rows([8], 6).view(2, 4, 6)
    mask = torch.tensor([[True, True, False, False], [True, True, True, True]])
    h = random_rows([6], 4, seed=5).view(2, 3, 4)
    contexts = decoder.attend(EncoderStates(states, mask), h)
    for i in range(2):
        words = states[i][mask[i]].double()
        for j in range(3):
            query = decoder.attention.weight.double() @ h[i, j].double() + decoder.attention.bias.double()
            weights = torch.softmax(words @ query / 6**0.5, 0)
            assert torch.allclose(contexts[i, j].double(), weights @ words, atol=1e-5)


def test_the_context_of_a_bag_does_not_depend_on_the_codes():
    decoder = random_decoder(config_of())
    embeddings = random_rows([3], 6)
    encoder_states = decoder.encode(embeddings, np.ones(3, np.int32))
    expected = torch.relu(embeddings + decoder.encoder_bias)
    assert torch.equal(decoder.initial_context(encoder_states), expected)
    contexts = decoder.attend(encoder_states, decoder.initial_state(3, 2))
    assert torch.equal(contexts, expected[:, None].expand(-1, 2, -1))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_gradients_reach_the_word_embeddings_and_every_weight(encoder):
    """Also beside a document without words, which is padded."""
    decoder = CodeDecoder(config_of(encoder, sequences=True), rng_of(2))
    lengths = np.array([1, 1] if encoder == "bag" else [3, 0], np.int32)
    embeddings = (random_rows(lengths, decoder.config.word_dim) + 0.1).requires_grad_()
    encoder_states = decoder.encode(embeddings, lengths)
    digits = torch.tensor([[0, 1, 2, 0]]).expand(2, 4)
    h = decoder.code_states(sum(decoder.embed_digits(digits, d) for d in range(2)))
    loss = sum(decoder.digit_logits(decoder.attend(encoder_states, h), h, d).square().sum() for d in range(2))
    loss.backward()
    assert (embeddings.grad.abs().sum(1) > 0).all()
    for name, weights in decoder.named_parameters():
        assert weights.grad.any(), name


# ---- the optimizer


def twin_adam(values, gradients, learning_rate):
    """Adam as at the end of section 2 of its paper, in float64; the values after each step."""
    mean, square, steps = np.zeros_like(values), np.zeros_like(values), []
    for number, gradient in enumerate(gradients, 1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        rate = learning_rate * np.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        values = values - rate * mean / (np.sqrt(square) + 1e-8)
        steps.append(values)
    return steps


@pytest.mark.parametrize("clip_norm", [1e9, 1.0])
def test_a_step_is_that_of_adam_on_the_clipped_gradient(clip_norm):
    decoder = CodeDecoder(config_of(), rng_of(1))
    optimizer, learning_rate = FlatAdam(decoder, "learning_rate"), 0.01
    values, gradients, moved = optimizer.weights.value.astype(np.float64), [], []
    p = random_rows([5], 4)
    for number in range(1, 4):
        loss = (decoder.digit_logits(torch.ones(5, 6), p, 1) ** 2).sum() * 5
        theirs = torch.autograd.grad(loss, list(decoder.parameters()), retain_graph=True, allow_unused=True)
        pairs = zip(decoder.parameters(), theirs, strict=True)
        flat = np.concatenate([np.zeros(w.numel()) if g is None else g.numpy().ravel() for w, g in pairs])
        flat = flat.astype(np.float64)
        norm = np.linalg.norm(flat)
        assert norm > 2
        gradients.append(flat * min(1, clip_norm / norm))
        optimizer.step(loss, clip_norm, learning_rate, number)
        assert np.allclose(optimizer.gradient, gradients[-1], rtol=1e-4, atol=1e-6)
        moved.append(optimizer.weights.value.copy())
    still = np.all(np.array(gradients) == 0, axis=0)
    assert still.any(), "digit 0 has no part in the loss"
    for ours, expected in zip(moved, twin_adam(values, gradients, learning_rate), strict=True):
        assert np.allclose(ours, expected, rtol=1e-4, atol=1e-3 * learning_rate)
        assert np.array_equal(ours[still], values[still].astype(np.float32))


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("sequences", [False, True])
def test_the_optimizer_holds_all_weights_in_one_array_that_the_modules_share(encoder, sequences):
    config = config_of(encoder, sequences)
    decoder = CodeDecoder(config, rng_of())
    optimizer = FlatAdam(decoder, "learning_rate")
    values, gradient = optimizer.weights.value, optimizer.gradient
    assert values.shape == gradient.shape == (expected_n_weights(config),)
    assert values.dtype == np.float32
    start = 0
    for weights in decoder.parameters():
        stop = start + weights.numel()
        assert np.shares_memory(weights.detach().numpy(), values)
        assert np.shares_memory(weights.grad.numpy(), gradient)
        assert np.array_equal(weights.detach().numpy().ravel(), values[start:stop])
        values[start:stop], gradient[start:stop] = start, -start
        assert (weights == start).all()
        assert (weights.grad == -start).all()
        start = stop
    assert start == len(values)


def test_torch_runs_on_one_thread_within_the_context_alone():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        with single_thread():
            assert torch.get_num_threads() == 1
            with single_thread():
                pass
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
        with pytest.raises(KeyboardInterrupt), single_thread():
            raise KeyboardInterrupt
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
