"""What a model folder says about itself: the values of ``labelspace info``, and the README.md."""

import shutil
from html import unescape
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

import labelspace
from labelspace import LabelSpace, Tagger, store
from labelspace.errors import ModelError, ParameterError
from labelspace.tagger.card import escaped
from labelspace.tagger.description import describe
from labelspace.tagger.versions import open_versioned, rollback
from labelspace.types import Concept
from tests.learning_model import learns  # noqa: F401 - a fixture
from tests.tagger.test_lineage import NAMES, TEXTS, changed

HOSTILE = "a|b\n---\n# <script>x</script> [y](http://y) ![z](z) `c` *d* __e__ &lt; www.f.g h@i.j \\| \u202e\x1b[31m"


@pytest.fixture
def model(learns, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    Tagger("counting").fit(TEXTS, NAMES).save(tmp_path / "model", license="Apache-2.0")
    return tmp_path / "model"


def described(folder):
    return describe(folder, store.read_manifest(folder))


def card(folder):
    return (folder / "README.md").read_text("utf-8")


class Rendered(HTMLParser):
    """The tags of a page, and the texts of the cells of its tables."""

    def __init__(self, markdown):
        super().__init__()
        self.tags, self.rows = set(), []
        self.feed(MarkdownIt("commonmark").enable("table").render(markdown))

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_labels_are_counted_by_what_is_known_of_them(learns, tmp_path):  # noqa: F811
    space = LabelSpace(
        ["fruit", 'say "alt": ["x"]', "vehicle"],
        synonyms=[["apple"], [], []],
        concepts=[Concept("http://x/1", description="sweet"), Concept("http://x/2"), Concept()],
    )
    tagger = Tagger("lexical").fit_labels(space)
    tagger.add_label("pear").merge_labels("pear", "fruit").retire_label("vehicle").save(tmp_path / "m")
    labels = described(tmp_path / "m")["labels"]
    assert (labels["n"], labels["in_use"], labels["merged"], labels["retired"]) == (4, 2, 1, 1)
    assert (labels["with_synonyms"], labels["with_description"], labels["with_uri"]) == (1, 1, 2)
    assert labels["most_frequent"] == {}


def test_members_parameters_and_features_are_told_as_far_as_they_differ_from_the_defaults(tmp_path):
    texts, names = [f"{text} {i}" for i in range(5) for text in TEXTS], NAMES * 5
    members = "neighbors:words,pdsparse:words"
    Tagger("blend", members=members, features="tfidf", feature_params={"min_df": 1}).fit(texts, names).save(tmp_path)
    about = described(tmp_path)
    assert about["params"] == {"members": members}
    assert [each["method"] for each in about["members"]] == ["neighbors", "pdsparse"]
    assert about["features"]["words"] == {"name": "tfidf", "params": {"ngrams": 1, "min_df": 1}}
    assert about["packages"]["labelspace"] == labelspace.__version__


def test_the_hub_reads_the_front_matter(model):
    hub = pytest.importorskip("huggingface_hub")
    data = hub.ModelCard(card(model)).data.to_dict()
    tags = ["labelspace", "multi-label-classification", "extreme-multi-label-classification"]
    about = {"library_name": "labelspace", "pipeline_tag": "text-classification", "license": "apache-2.0"}
    assert data == {**about, "tags": tags}


def test_no_name_of_a_label_or_file_is_markup(learns, tmp_path):  # noqa: F811
    tagger = Tagger("counting").fit(["a text"] * 2, [[HOSTILE, "x" * 1000]] * 2)
    tagger.origin_ = tagger.origin_._replace(data=HOSTILE)
    tagger.save(tmp_path / "m")
    front, markdown = card(tmp_path / "m").split("\n---\n", 1)
    page = Rendered(markdown)
    assert page.tags <= {"h1", "p", "pre", "code", "table", "thead", "tbody", "tr", "td", "th"}
    assert {len(row) for row in page.rows} == {2}
    [named] = [value.strip() for heading, value in page.rows if heading.strip() == "trained on"]
    assert named == " ".join(HOSTILE.split()).replace("\u202e", "\ufffd").replace("\x1b", "\ufffd")
    assert "http://" not in markdown
    assert "www.f" not in markdown
    assert len(markdown) < 4000
    assert unescape(escaped("naïve 犬 3.5, x_y: [z]")) == "naïve 犬 3.5, x_y: [z]"
    assert escaped("naïve 犬 3.5, x_y: z") == "naïve 犬 3.5, x_y: z", "what means nothing stays readable"


def test_loading_ignores_the_card_and_saving_writes_it_anew(model, tmp_path):
    written = card(model)
    labelspace.load(model).save(tmp_path / "again")
    assert card(tmp_path / "again") == written
    (model / "README.md").write_text("edited")
    labelspace.load(model, verify=True).save(model)
    assert card(model) == written
    (model / "README.md").unlink()
    learned = labelspace.load(model).learn(["a toast"], [["toast"]])
    with open_versioned(model) as opened:
        opened.add(learned, learned.lineage_[-1])
    assert "1970-01-01T00" in card(model)
    assert not (model.with_name("model.versions") / "1" / "README.md").exists()
    rollback(model)
    assert "version 3: rollback to 1" in card(model)
    assert described(model)["license"] == "Apache-2.0"


def test_the_license_stays_with_a_model_that_is_trained_again(model):
    with open_versioned(model) as opened:
        learned = Tagger("counting").fit(TEXTS, NAMES).learn(["a toast"], [["toast"]])
        opened.add(learned, learned.lineage_[-1])
    assert labelspace.load(model).license_ == "Apache-2.0"


@pytest.mark.parametrize("license", ["", "a b", "mit\nx: y", 3, "x" * 65])
def test_what_is_no_license_is_refused(model, license):
    with pytest.raises(ParameterError, match="license must be .* identifier such as apache-2.0"):
        labelspace.load(model).save(model, license=license)
    changed(model, license=license)
    for read in (labelspace.load, described):
        with pytest.raises(ModelError, match="identifier such as apache-2.0 .* as its license"):
            read(model)


@pytest.mark.parametrize(
    "entries",
    [{"data": {"data": "x"}}, {"data": {"data": "x", "sha256": "y"}}, {"versions": 3}, {"features": []}, {"model": {}}],
)
def test_a_manifest_that_fits_nothing_is_refused_in_one_line(model, entries):
    changed(model, **entries)
    with pytest.raises(ModelError) as error:
        described(model)
    assert "\n" not in str(error.value)


def test_a_folder_with_only_a_readme_is_no_model(model):
    other = model.with_name("other")
    other.mkdir()
    shutil.copy(model / "README.md", other)
    with pytest.raises(ModelError, match="holds other files"):
        labelspace.load(model).save(other)
