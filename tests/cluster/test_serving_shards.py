"""Models in shards answer as whole ones do, label by label and score by score."""

import json
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from labelspace import store
from labelspace.cluster.executor import pack, unpack
from labelspace.cluster.serving.kernels import Scored
from labelspace.cluster.serving.shard_folder import load_part, saved_model, shards_of, splitting_of, write_shards
from labelspace.cluster.serving.sharding import id_counts
from labelspace.data.synthetic import planted
from labelspace.errors import ClusterError, ModelError, ParameterError
from labelspace.models.base import Model
from labelspace.models.checks import check_inputs
from labelspace.models.partial_fit import learn_more
from labelspace.models.registry import create
from labelspace.store import folder_bytes
from labelspace.tagger import Tagger

TREE = {"max_leaf_size": 4, "branching_factor": 3}
CASES = {
    "flat tree": ("label_tree", {}),
    "narrow beam": ("label_tree", {**TREE, "beam_size": 2}),
    "several trees": ("label_tree", {"max_leaf_size": 20, "branching_factor": 3, "beam_size": 2, "n_estimators": 3}),
    "leaves of any depth": ("label_tree", {**TREE, "tree": "kmeans", "loss": "logistic", "beam_size": 3}),
    "one_vs_rest": ("one_vs_rest", {}),
    "pdsparse": ("pdsparse", {"max_iter": 3, "post_max_iter": 0}),
    "glas": ("glas", {"embedding_dim": 16, "epochs": 2}),
    "glas, quantized": ("glas", {"embedding_dim": 16, "epochs": 2, "index": "quantized"}),
    "leml": ("leml", {"sparse": False, "max_iter": 2}),
}
DOCUMENTS = planted(n=400, d=200, l=90, seed=3)
TRAIN, TEST = DOCUMENTS.rows(range(340)), DOCUMENTS.rows(range(340, 400))


class ShardsHere:
    """Shards in this process; what is sent to them and back is packed as for other machines."""

    def __init__(self, shards):
        self.shards = shards

    def call(self, method, *arguments, mask=None):
        named = {} if mask is None else {"allowed": mask}
        sent = pack(arguments)
        return [
            unpack(pack(getattr(shard, method)(*unpack(sent, copy=True), **named)), copy=True) for shard in self.shards
        ]

    def share(self, mask):
        return mask.copy()


def split_here(model, folder, n):
    """A model and the same in shards, through their files."""
    model.save(folder / "model")
    written = write_shards(saved_model(folder / "model"), model, n)
    shards = ShardsHere([load_part(part) for part in written.shards])
    return written.connected(shards)


def same(found, expected):
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("n", [2, 7])
@pytest.mark.parametrize("case", CASES)
def test_shards_answer_as_the_whole_model(case, n, tmp_path):
    name, params = CASES[case]
    whole = create(name, **params).fit(TRAIN.X, TRAIN.Y)
    sharded = split_here(whole, tmp_path, n)
    rng = np.random.default_rng(0)
    for k in (1, 5, 60, 100):
        same(sharded.predict_topk(TEST.X, k), whole.predict_topk(TEST.X, k))
        for share in (0.02, 0.3, 0.9):
            allowed = rng.random(90) < share
            same(sharded.predict_topk(TEST.X, k, allowed=allowed), whole.predict_topk(TEST.X, k, allowed=allowed))
    same(sharded.predict_topk(TEST.X[:0], 2), whole.predict_topk(TEST.X[:0], 2))


def test_the_beam_among_many_allowed_labels_is_that_of_the_whole_model(tmp_path, monkeypatch):
    for module in ("models.label_tree.search", "cluster.serving.sharded_tree"):
        monkeypatch.setattr(f"labelspace.{module}.FEW_LABELS", 10)
    whole = create("label_tree", **TREE, beam_size=2).fit(TRAIN.X, TRAIN.Y)
    sharded = split_here(whole, tmp_path, 3)
    for share in (0.3, 0.9):
        allowed = np.random.default_rng(1).random(90) < share
        for k in (1, 5, 40):  # 40 need wider beams
            same(sharded.predict_topk(TEST.X, k, allowed=allowed), whole.predict_topk(TEST.X, k, allowed=allowed))


@pytest.mark.parametrize("case", ["narrow beam", "several trees", "one_vs_rest", "pdsparse", "glas"])
def test_shards_explain_as_the_whole_model(case, tmp_path):
    name, params = CASES[case]
    whole = create(name, **params).fit(TRAIN.X, TRAIN.Y)
    sharded = split_here(whole, tmp_path, 3)
    views = check_inputs(TEST.X[2])
    labels = np.array([int(whole.predict_topk(TEST.X[2], 1).labels[0, 0]), 4, 80], np.int32)
    expected, found = whole.explain(whole.read(views), labels), sharded.explain(sharded.read(views), labels)
    assert any(len(shares.columns) for evidence in expected for shares in evidence.columns.values())
    for one, other in zip(found, expected, strict=True):
        assert one.log_odds == other.log_odds
        assert one.columns.keys() == other.columns.keys()
        for view, shares in one.columns.items():
            np.testing.assert_array_equal(shares.shares, other.columns[view].shares)


@pytest.fixture(scope="module")
def tree_model():
    return create("label_tree", **TREE).fit(TRAIN.X, TRAIN.Y)


@pytest.fixture
def saved(tree_model, tmp_path):
    tree_model.save(tmp_path / "model")
    return saved_model(tmp_path / "model")


@pytest.mark.parametrize(("n", "depth"), [(1, 3), (2, 2), (8, 1)])
def test_weights_are_at_the_door_or_in_one_shard_and_alike_in_number(n, depth, tree_model, tmp_path):
    sharded = split_here(tree_model, tmp_path, n)
    sizes = [len(shard.values_) for shard in sharded.shards.shards]
    assert sharded.depth == depth
    assert len(sharded.values_) <= len(tree_model.values_) / n
    assert sum(sizes) + len(sharded.values_) == len(tree_model.values_)
    assert max(sizes) < 1.5 * min(sizes)


def test_a_shard_is_smaller_than_the_model(tree_model, saved):
    assert write_shards(saved, tree_model, 3).largest_bytes < folder_bytes(saved.folder)


def test_shards_are_written_once_and_those_of_older_versions_removed(tree_model, saved, tmp_path):
    assert shards_of(saved, 2) is None
    first = write_shards(saved, tree_model, 2)
    assert shards_of(saved, 2) == write_shards(saved, tree_model, 2) == first
    for beam_size in (5, 6):  # two later versions
        later = create("label_tree", **TREE, beam_size=beam_size).fit(TRAIN.X, TRAIN.Y)
        later.save(tmp_path / "model")
        write_shards(saved_model(tmp_path / "model"), later, 2)
    assert len(list((tmp_path / "model.shards").iterdir())) == 2
    assert shards_of(saved, 2) is None


def test_a_part_is_no_model(tree_model, saved):
    part = write_shards(saved, tree_model, 2).shards[0]
    with pytest.raises(ModelError, match="must hold model.safetensors"):
        Tagger.load(part.folder)


def test_a_part_of_another_version_is_refused(tree_model, saved):
    part = write_shards(saved, tree_model, 2).shards[0]
    with pytest.raises(ModelError, match="must be of the served model"):
        load_part(part._replace(checksum=part.checksum ^ 1))


def a_cycle(shard):
    shard.parents_ = shard.parents_ + shard.nodes_[-1]


def the_number_that_is_no_node(shard):
    shard.nodes_ = np.append(shard.nodes_[:-1], np.int32(2**31 - 1))


@pytest.mark.parametrize(
    ("change", "rule"),
    [(a_cycle, "children with larger numbers than their parents"), (the_number_that_is_no_node, "must be below")],
)
def test_a_shard_whose_nodes_lead_nowhere_is_refused(change, rule, tree_model, saved, tmp_path):
    shard = load_part(write_shards(saved, tree_model, 2).shards[0])
    change(shard)
    with pytest.raises(ModelError, match=rule):
        store.save(tmp_path / "shard", {}, {"shard": shard}, None)


def fewer_features(shard):
    shard.starts_ = np.append(shard.starts_[: shard.n_features // 2], shard.starts_[-1])


@pytest.mark.parametrize(
    "change",
    [
        fewer_features,
        lambda shard: setattr(shard, "labels_", shard.labels_ + 90),
        lambda shard: setattr(shard, "nodes_", shard.nodes_ + 1000),
    ],
)
def test_a_shard_that_is_not_of_the_front_end_is_refused(change, tree_model, saved):
    written = write_shards(saved, tree_model, 2)
    shards = [load_part(part) for part in written.shards]
    change(shards[1])
    with pytest.raises(ModelError, match="every shard must have 200 features, labels below 90 and nodes below"):
        written.connected(ShardsHere(shards))


@pytest.mark.parametrize("case", ["one_vs_rest", "glas"])
def test_shards_of_other_labels_than_the_front_end_has_are_refused(case, tmp_path):
    name, params = CASES[case]
    whole = create(name, **params).fit(TRAIN.X, TRAIN.Y)
    parts = list(splitting_of(whole).split(whole, 2))
    door = splitting_of(whole).front_end(whole, 2)
    door.n_labels_ = 20
    with pytest.raises(ModelError, match="labels below 20"):
        splitting_of(whole).connected(door, ShardsHere(parts))


def test_documents_with_other_features_than_a_shard_has_is_refused(tree_model, saved):
    linear = create("one_vs_rest", max_iter=1).fit(TRAIN.X, TRAIN.Y)
    tree, classifiers = (
        load_part(write_shards(saved, tree_model, 2).shards[0]),
        next(splitting_of(linear).split(linear, 2)),
    )
    wider, few = TEST.X[:1].copy(), np.zeros(1, np.int32)
    wider.resize(1, 201)
    with pytest.raises(ClusterError, match="must have the 200 features of the shard, but have others"):
        tree.expand(wider, Scored.empty(1, 1, 2), 2, 2)
    with pytest.raises(ClusterError, match="must have the 200 features"):
        classifiers.search(wider, 2)
    for shard in (tree, classifiers):
        with pytest.raises(ClusterError, match="must have the 200 features"):
            shard.weights(np.array([3, 200], np.int32), few)


def test_ids_are_counted_without_a_copy_of_them():
    ids = np.arange(2**23, dtype=np.uint16) % np.uint16(7)
    tracemalloc.start()
    counts = id_counts(ids, 8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts.tolist() == np.bincount(ids, minlength=8).tolist()
    assert peak < ids.nbytes  # in 64 bits, four times as many


@pytest.mark.parametrize("change", ["damage", "edit", "format"])
def test_a_list_of_shards_that_is_not_ours_is_refused(change, tree_model, saved):
    path = Path(write_shards(saved, tree_model, 2).front_end.folder).with_name("shards.json")
    listed = json.loads(path.read_text())
    if change == "edit":
        listed["parts"]["shard-0"] += 1
    elif change == "format":
        listed = [listed]
    path.write_text(json.dumps(listed)[: -1 if change == "damage" else None])
    with pytest.raises(ModelError, match="must list shards"):
        shards_of(saved, 2)
    shutil.rmtree(path.parent)
    assert write_shards(saved, tree_model, 2).shards


def test_what_cannot_be_split_is_refused(tree_model):
    popular = create("popular").fit(TRAIN.X, TRAIN.Y)
    with pytest.raises(ParameterError, match="but is of popular; train one of these, or use --replicas"):
        splitting_of(popular)
    for model in (tree_model, create("one_vs_rest", max_iter=1).fit(TRAIN.X, TRAIN.Y)):
        with pytest.raises(ParameterError, match="91 shards are for .* labels that have documents; ask for fewer"):
            list(splitting_of(model).split(model, 91))
    leml = create("leml", sparse=True, max_iter=1).fit(TRAIN.X, TRAIN.Y)
    with pytest.raises(ParameterError, match="sparse=false"):
        list(splitting_of(leml).split(leml, 2))


def test_a_sharded_index_takes_no_labels(tmp_path):
    name, params = CASES["glas"]
    sharded = split_here(create(name, **params).fit(TRAIN.X, TRAIN.Y), tmp_path, 2)
    assert isinstance(sharded, Model)
    with pytest.raises(ParameterError, match="in shards"):
        sharded.index_.remove([0])
    with pytest.raises(ParameterError, match="in shards"):
        sharded.index_.add([95], np.ones((1, sharded.index_.dimension)))


@pytest.mark.parametrize("case", ["flat tree", "one_vs_rest"])
def test_a_model_in_shards_does_not_go_on_learning(case, tmp_path):
    name, params = CASES[case]
    sharded = split_here(create(name, **params).fit(TRAIN.X, TRAIN.Y), tmp_path, 2)
    sharded.attach_labels(None)
    before = sharded.predict_topk(TEST.X, 5)
    with pytest.raises(ParameterError, match="a whole model goes on learning, but this one is in shards"):
        learn_more(sharded, TEST.X, TEST.Y)
    same(sharded.predict_topk(TEST.X, 5), before)
