import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelspace.models.text2text.config import T5Config  # noqa: E402
from labelspace.models.text2text.t5 import T5, transformers_name  # noqa: E402

CONFIG = T5Config(16, n_heads=3, head_dim=4, hidden_dim=20, n_encoder_layers=2, n_decoder_layers=3)


def random_net(seed=0):
    net = T5(CONFIG)
    net.init_weights(np.random.default_rng(seed))
    return net.requires_grad_(False)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_it_is_the_t5_of_transformers(gated, scaled):
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(
        vocab_size=50, d_model=16, d_kv=4, d_ff=20, num_layers=2, num_decoder_layers=3, num_heads=3,
        feed_forward_proj="gated-gelu" if gated else "relu", tie_word_embeddings=scaled, decoder_start_token_id=0,
        relative_attention_num_buckets=8, relative_attention_max_distance=6,
    )  # fmt: skip
    torch.manual_seed(3)
    reference = transformers.T5ForConditionalGeneration(config).eval().requires_grad_(False)
    weights = reference.state_dict()
    ours = T5Config(16, 3, 4, 20, 2, 3, gated=gated, scaled_output=scaled, n_distance_buckets=8, max_distance=6)
    net = T5(ours).requires_grad_(False)
    net.load_state_dict({name: weights[transformers_name(name, gated)] for name, _ in net.named_parameters()})
    inputs, outputs = torch.randint(3, 50, (4, 9)), torch.randint(3, 50, (4, 6))
    is_token = torch.arange(9) < torch.tensor([9, 5, 3, 1])[:, None]
    expected = reference(input_ids=inputs, attention_mask=is_token.long(), decoder_input_ids=outputs).logits
    embeddings = weights["shared.weight"]
    hidden, _ = net.decode(embeddings[outputs], net.encode(embeddings[inputs], is_token))
    assert torch.allclose(hidden @ weights["lm_head.weight"].T, expected, atol=1e-4)


def test_decoding_token_by_token_gives_the_same():
    net, rng = random_net().double(), np.random.default_rng(1)
    documents = net.encode(torch.from_numpy(rng.standard_normal((3, 5, 16))), torch.ones(3, 5, dtype=torch.bool))
    embedded = torch.from_numpy(rng.standard_normal((3, 4, 16)))
    at_once, _ = net.decode(embedded, documents)
    past, steps = None, []
    for position in range(4):
        hidden, past = net.decode(embedded[:, position : position + 1], documents, past)
        steps.append(hidden)
    assert torch.allclose(torch.cat(steps, 1), at_once, atol=1e-12)


def test_padding_is_not_read():
    net, rng = random_net().double(), np.random.default_rng(1)
    embedded = torch.from_numpy(rng.standard_normal((1, 5, 16)))
    is_token = torch.tensor([[True, True, True, False, False]])
    start = torch.from_numpy(rng.standard_normal((1, 1, 16)))
    padded, _ = net.decode(start, net.encode(embedded, is_token))
    cut, _ = net.decode(start, net.encode(embedded[:, :3], is_token[:, :3]))
    assert torch.allclose(padded, cut, atol=1e-12)


def test_dropout_is_drawn_from_its_generator_and_keeps_the_mean():
    net, x = random_net(), torch.ones(200, 100)
    assert net.dropout(x) is x, "no generator, no dropout"
    net.dropout.p, net.dropout.rng = 0.25, np.random.default_rng(0)
    dropped = net.dropout(x)
    assert torch.unique(dropped).tolist() == pytest.approx([0, 4 / 3])
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.02)
    net.dropout.rng = np.random.default_rng(0)
    assert torch.equal(net.dropout(x), dropped)


def test_the_same_seed_gives_the_same_initial_weights():
    one, same, other = random_net(), random_net(), random_net(seed=1)
    flat = [torch.cat([p.ravel() for p in net.parameters()]) for net in (one, same, other)]
    assert torch.equal(flat[0], flat[1])
    assert not torch.equal(flat[0], flat[2])
