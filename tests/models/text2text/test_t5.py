import numpy as np
import pytest

torch = pytest.importorskip("torch")

from labelspace.models.text2text.t5 import T5, Shape, published_name  # noqa: E402

SHAPE = Shape(dimension=16, heads=3, head=4, hidden=20, layers=2, writing=3)


def random_net(shape=SHAPE, seed=0):
    net = T5(shape)
    net.begin(np.random.default_rng(seed))
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
    twin = transformers.T5ForConditionalGeneration(config).eval().requires_grad_(False)
    weights = twin.state_dict()
    net = T5(Shape(16, 3, 4, 20, 2, 3, gated=gated, scaled=scaled, buckets=8, farthest=6)).requires_grad_(False)
    net.load_state_dict({name: weights[published_name(name, gated)] for name, _ in net.named_parameters()})
    tokens, written = torch.randint(3, 50, (4, 9)), torch.randint(3, 50, (4, 6))
    there = torch.arange(9) < torch.tensor([9, 5, 3, 1])[:, None]
    wanted = twin(input_ids=tokens, attention_mask=there.long(), decoder_input_ids=written).logits
    vectors = weights["shared.weight"]
    said, _ = net.write(vectors[written], net.read(vectors[tokens], there))
    assert torch.allclose(said @ weights["lm_head.weight"].T, wanted, atol=1e-4)


def test_what_is_written_token_by_token_is_the_same():
    net, rng = random_net().double(), np.random.default_rng(1)
    memory = net.read(torch.from_numpy(rng.standard_normal((3, 5, 16))), torch.ones(3, 5, dtype=torch.bool))
    tokens = torch.from_numpy(rng.standard_normal((3, 4, 16)))
    whole, _ = net.write(tokens, memory)
    keys, parts = None, []
    for place in range(4):
        said, keys = net.write(tokens[:, place : place + 1], memory, keys)
        parts.append(said)
    assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-12)


def test_what_is_not_there_is_not_read():
    net, rng = random_net().double(), np.random.default_rng(1)
    tokens = torch.from_numpy(rng.standard_normal((1, 5, 16)))
    there = torch.tensor([[True, True, True, False, False]])
    start = torch.from_numpy(rng.standard_normal((1, 1, 16)))
    padded, _ = net.write(start, net.read(tokens, there))
    cut, _ = net.write(start, net.read(tokens[:, :3], there[:, :3]))
    assert torch.allclose(padded, cut, atol=1e-12)


def test_dropout_is_drawn_from_its_own_generator_and_keeps_the_mean():
    net, x = random_net(), torch.ones(200, 100)
    assert net.drop(x) is x, "no generator, no dropout"
    net.drop.share, net.drop.rng = 0.25, np.random.default_rng(0)
    dropped = net.drop(x)
    assert torch.unique(dropped).tolist() == pytest.approx([0, 4 / 3])
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.02)
    net.drop.rng = np.random.default_rng(0)
    assert torch.equal(net.drop(x), dropped)


def test_the_same_seed_begins_alike():
    one, same, other = random_net(), random_net(), random_net(seed=1)
    flat = [torch.cat([p.ravel() for p in net.parameters()]) for net in (one, same, other)]
    assert torch.equal(flat[0], flat[1])
    assert not torch.equal(flat[0], flat[2])
