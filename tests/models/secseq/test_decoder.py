from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelspace.models.secseq.decoder import CodeDecoder, Learner, Memory, Shape, with_weights  # noqa: E402
from labelspace.training.torch_optimizer import single_thread  # noqa: E402

ENCODERS = ("bag", "gru", "convolution")


def n_weights(shape):
    return sum(weights.numel() for weights in CodeDecoder(shape, np.random.default_rng(0)).parameters())


def shape_of(encoder="bag", sequences=False, **sizes):
    word = 6 if encoder == "bag" else 5
    return replace(Shape(encoder, word, 6, 4, 3, 2, sequences), **sizes)


def rng_of(seed=0):
    return np.random.default_rng(seed)


def stirred(shape, seed=0):
    """A writer with no weight at 0, biases neither."""
    writer = CodeDecoder(shape, rng_of(seed))
    rng = rng_of(seed + 1)
    with torch.no_grad():
        for weights in writer.parameters():
            weights += torch.from_numpy(rng.uniform(-0.5, 0.5, weights.shape).astype(np.float32))
    return writer.requires_grad_(False)


def words_of(lengths, word, seed=3):
    return torch.from_numpy(rng_of(seed).standard_normal((sum(lengths), word)).astype(np.float32))


# ---- weights


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("sequences", [False, True])
def test_the_weights_are_one_array_that_the_modules_look_at(encoder, sequences):
    shape = shape_of(encoder, sequences)
    learner = Learner(shape, rng_of())
    assert learner.weights.value.shape == learner.gradient.shape == (n_weights(shape),)
    assert learner.weights.value.dtype == np.float32
    begin = 0
    for weights in learner.writer.parameters():
        end = begin + weights.numel()
        assert np.shares_memory(weights.detach().numpy(), learner.weights.value)
        assert np.shares_memory(weights.grad.numpy(), learner.gradient)
        assert np.array_equal(weights.detach().numpy().ravel(), learner.weights.value[begin:end])
        learner.weights.value[begin:end] = begin
        learner.gradient[begin:end] = -begin
        assert (weights == begin).all()
        assert (weights.grad == -begin).all()
        begin = end
    assert begin == len(learner.weights.value), "all of them"


def by_hand(shape):
    """The number of weights, counted from the formula in the module's docstring."""
    word, hidden, memory, width = shape.word, shape.hidden, shape.memory, shape.width
    found = {
        "bag": hidden,
        "gru": (memory + 1) * hidden + 2 * 3 * (hidden // 2) * (word + hidden // 2 + 2),
        "convolution": (memory + 1) * hidden + (5 * word + 1) * hidden,
    }[shape.encoder]
    found += shape.digits * width * memory + shape.sequences * 6 * memory * (memory + 1)
    for place in range(shape.digits):
        values = width + (shape.sequences and place == 0)
        gates = (memory + 1) * memory + (memory + 1) * hidden
        found += gates + (hidden + 1) * values + (memory + 1) * memory + memory * values
    return found


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("sequences", [False, True])
def test_the_number_of_weights_goes_by_the_shape(encoder, sequences):
    for sizes in ({}, {"digits": 3}, {"width": 7}, {"hidden": 8}, {"memory": 2}):
        shape = shape_of(encoder, sequences, **sizes)
        assert n_weights(shape) == by_hand(shape)


def test_random_weights_go_by_the_generator_alone_and_biases_begin_at_0():
    shape = shape_of("gru", sequences=True)
    torch.manual_seed(1)
    one = Learner(shape, rng_of(4))
    torch.manual_seed(2)
    other = Learner(shape, rng_of(4))
    assert np.array_equal(one.weights.value, other.weights.value)
    assert not np.array_equal(one.weights.value, Learner(shape, rng_of(5)).weights.value)
    for name, weights in one.writer.named_parameters():
        if "bias" in name and not (name.startswith("gates") and ".2." in name):
            assert not weights.any(), name
        elif "bias" in name:
            assert (weights == 1).all(), name
        else:
            bound = 1.0 if name.startswith("digits") else weights[0].numel() ** -0.5
            assert 0.5 * bound < weights.abs().max() <= bound, name


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_writer_with_the_weights_of_another_scores_alike(encoder):
    shape = shape_of(encoder, sequences=True)
    learner = Learner(shape, rng_of(7))
    learner.weights.value += 0.1
    kept = learner.weights.value.copy()
    twin = with_weights(shape, learner.weights.value)
    assert not any(weights.requires_grad for weights in twin.parameters())
    lengths = np.array([1, 1, 1] if encoder == "bag" else [3, 1, 2], np.int32)
    vectors = words_of(lengths, shape.word)
    p = words_of([4], 4)[:3, None]
    for place in range(2):
        one, other = (
            writer.scores(writer.attend(writer.read(vectors, lengths), p), p, place)
            for writer in (learner.writer, twin)
        )
        assert torch.equal(one, other)
    learner.weights.value[:] = 0
    assert np.array_equal(np.concatenate([w.numpy().ravel() for w in twin.parameters()]), kept), "a copy"


# ---- a step


def twin_adam(values, gradients, rate):
    """Adam as the end of section 2 of its paper has it, in float64; after each step."""
    mean, square, found = np.zeros_like(values), np.zeros_like(values), []
    for number, gradient in enumerate(gradients, 1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        values = values - rate * np.sqrt(1 - 0.999**number) / (1 - 0.9**number) * mean / (np.sqrt(square) + 1e-8)
        found.append(values)
    return found


@pytest.mark.parametrize("clip", [1e9, 1.0])
def test_a_step_is_adam_s_on_the_gradient_shortened(clip):
    learner, rate = Learner(shape_of(), rng_of(1)), 0.01
    values, gradients, moved = learner.weights.value.astype(np.float64), [], []
    p = words_of([5], 4)
    for number in range(1, 4):
        loss = (learner.writer.scores(learner.writer.blank(5).new_ones(5, 6), p, 1) ** 2).sum() * 5
        theirs = torch.autograd.grad(loss, list(learner.writer.parameters()), retain_graph=True, allow_unused=True)
        flat = np.concatenate(
            [
                np.zeros(w.numel()) if g is None else g.numpy().ravel()
                for w, g in zip(learner.writer.parameters(), theirs, strict=True)
            ]
        ).astype(np.float64)
        length = np.linalg.norm(flat)
        assert length > 2
        gradients.append(flat * min(1, clip / length))
        learner.descend(loss, clip, rate, number)
        assert np.allclose(learner.gradient, gradients[-1], rtol=1e-4, atol=1e-6)
        moved.append(learner.weights.value.copy())
    still = np.all(np.array(gradients) == 0, axis=0)
    assert still.any(), "place 0 had no part in it"
    for ours, twins in zip(moved, twin_adam(values, gradients, rate), strict=True):
        assert np.allclose(ours, twins, rtol=1e-4, atol=1e-3 * rate)
        assert np.array_equal(ours[still], values[still].astype(np.float32))


# ---- scores


def test_scores_are_those_of_the_formula():
    writer = stirred(shape_of(sequences=True))
    a, p = (words_of([7], size, seed).numpy().astype(np.float64) for size, seed in ((6, 8), (4, 9)))
    for place in range(2):
        w = {key: value.numpy().astype(np.float64) for key, value in writer.named_parameters()}

        def layers(x, kind, place=place, w=w):
            inner = np.maximum(x @ w[f"{kind}.{place}.0.weight"].T + w[f"{kind}.{place}.0.bias"], 0)
            return inner @ w[f"{kind}.{place}.2.weight"].T + w.get(f"{kind}.{place}.2.bias", 0)

        expected = (a * layers(p, "gates")) @ w[f"outputs.{place}.weight"].T + w[f"outputs.{place}.bias"]
        expected = expected + layers(p, "priors")
        found = writer.scores(torch.tensor(a).float(), torch.tensor(p).float(), place)
        assert found.shape == (7, 4 if place == 0 else 3), "the end is one more value of the first digit"
        assert np.allclose(found, expected, atol=1e-5)


def test_digits_have_a_vector_at_each_place():
    writer = stirred(shape_of(digits=3))
    table = writer.digits.weight
    digits = torch.tensor([[0, 2], [1, 1]])
    for place in range(3):
        assert torch.equal(writer.of_digits(digits, place), table[digits + 3 * place])


def test_the_history_goes_on_where_it_stood():
    writer = stirred(shape_of(sequences=True))
    codes = words_of([6], 4).view(2, 3, 4)
    whole = writer.after_codes(codes)
    assert whole.shape == (2, 3, 4)
    begun = writer.after_codes(codes[:, :2])
    assert torch.allclose(begun, whole[:, :2], atol=1e-6)
    assert torch.allclose(writer.after_codes(codes[:, 2:], begun[:, -1])[:, 0], whole[:, 2], atol=1e-6)


def test_nothing_written_is_zeros():
    writer = CodeDecoder(shape_of(), rng_of())
    assert torch.equal(writer.blank(2, 3), torch.zeros(2, 3, 4))


# ---- reading


def states_by_hand(writer, words):
    """One document's states: what torch's modules make of it when it stands alone."""
    if not len(words):
        words = torch.zeros(1, writer.shape.word)
    if writer.shape.encoder == "gru":
        return writer.encoder(words[None])[0][0]
    padded = torch.cat([torch.zeros(2, writer.shape.word), words, torch.zeros(2, writer.shape.word)])
    kernel = writer.convolution.weight  # (hidden, word, 5)
    found = [(kernel * padded[at : at + 5].T).sum((1, 2)) + writer.convolution.bias for at in range(len(words))]
    return torch.relu(torch.stack(found))


@pytest.mark.parametrize("encoder", ["gru", "convolution"])
@pytest.mark.parametrize("lengths", [[3, 1, 7, 0, 2], [0, 0], [4], [0, 2]])
def test_words_in_a_row_are_packed_document_by_document(encoder, lengths):
    writer = stirred(shape_of(encoder))
    sizes = np.array(lengths, np.int32)
    vectors = words_of(lengths, 5)
    memory = writer.read(vectors, sizes)
    longest = max(*lengths, 1)
    assert memory.states.shape == (len(lengths), longest, 6)
    for at, words in enumerate(torch.split(vectors, lengths)):
        own = states_by_hand(writer, words)
        assert memory.there[at].tolist() == [word < max(lengths[at], 1) for word in range(longest)]
        assert torch.allclose(memory.states[at, : len(own)], own, atol=1e-5)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_other_documents_of_a_batch_change_nothing(encoder):
    writer = stirred(shape_of(encoder))
    lengths = [1] * 5 if encoder == "bag" else [3, 1, 7, 0, 2]
    vectors = words_of(lengths, writer.shape.word)
    history = words_of([10], 4).view(5, 2, 4)
    whole = writer.read(vectors, np.array(lengths, np.int32))
    contexts, first = writer.attend(whole, history), writer.vector(whole)
    assert contexts.shape == (5, 2, 6)
    assert first.shape == (5, 6)
    for at, words in enumerate(torch.split(vectors, lengths)):
        alone = writer.read(words, np.array(lengths[at : at + 1], np.int32))
        assert torch.allclose(writer.attend(alone, history[at : at + 1])[0], contexts[at], atol=1e-5)
        assert torch.allclose(writer.vector(alone)[0], first[at], atol=1e-5)


@pytest.mark.parametrize("encoder", ["gru", "convolution"])
def test_attention_is_a_mean_of_the_words_that_are_there(encoder):
    writer = stirred(shape_of(encoder))
    states = words_of([8], 6).view(2, 4, 6)
    there = torch.tensor([[True, True, False, False], [True, True, True, True]])
    history = words_of([6], 4, seed=5).view(2, 3, 4)
    found = writer.attend(Memory(states, there), history)
    for i in range(2):
        own = states[i][there[i]].double()
        for j in range(3):
            asked = writer.ask.weight.double() @ history[i, j].double() + writer.ask.bias.double()
            weights = torch.softmax(own @ asked / 6**0.5, 0)
            assert torch.allclose(found[i, j].double(), weights @ own, atol=1e-5)


def test_a_bag_says_the_same_whatever_is_written():
    writer = stirred(shape_of())
    vectors = words_of([3], 6)
    memory = writer.read(vectors, np.ones(3, np.int32))
    expected = torch.relu(vectors + writer.offset)
    assert torch.equal(writer.vector(memory), expected)
    assert torch.equal(writer.attend(memory, writer.blank(3, 2)), expected[:, None].expand(-1, 2, -1))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_gradients_reach_the_vectors_of_words_and_every_weight(encoder):
    """A document without words among them: its place is filled after the words are."""
    learner = Learner(shape_of(encoder, sequences=True), rng_of(2))
    writer = learner.writer
    lengths = np.array([1, 1] if encoder == "bag" else [3, 0], np.int32)
    vectors = (words_of(lengths, writer.shape.word) + 0.1).requires_grad_()
    memory = writer.read(vectors, lengths)
    digits = torch.tensor([[0, 1, 2, 0]]).expand(2, 4)
    codes = sum(writer.of_digits(digits, place) for place in range(2))
    history = writer.after_codes(codes)
    loss = sum(writer.scores(writer.attend(memory, history), history, place).square().sum() for place in range(2))
    learner.descend(loss, 10.0, 0.1, 1)
    assert (vectors.grad.abs().sum(1) > 0).all()
    for name, weights in writer.named_parameters():
        assert weights.grad.any(), name


# ---- threads


def test_torch_is_held_to_one_thread_and_let_go_again():
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
