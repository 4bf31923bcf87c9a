"""What an install without extras does: no scikit-learn, no faiss, nothing that an extra brings."""

import subprocess
import sys

BLOCKED = (
    "sklearn", "faiss", "pyarrow", "simple_icd_10_cm", "torch", "transformers", "joblib", "optuna", "rdflib", "pandas",
    "polars", "datasets", "zstandard",
)  # fmt: skip
CODE = """
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[2].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocked())

import labelspace
from labelspace import Tagger
from labelspace.errors import MissingExtraError

texts = ["knead the bread dough", "sticky bread dough", "grill the fish", "marinate the fish"] * 6
labels = [["bread", "dough"], ["bread", "dough"], ["fish"], ["fish"]] * 6
for tagger in (Tagger(), Tagger("glas", embedding_dim=16, all_labels=False, epochs=2)):
    tagger.fit(texts, labels).save(sys.argv[1])
    loaded = labelspace.load(sys.argv[1])
    assert loaded.tag_batch(texts, k=2) == tagger.tag_batch(texts, k=2)
    print(loaded.tag("grill some fish", k=1)[0][0])
try:
    Tagger("glas", index="hnsw").fit(texts, labels)
except MissingExtraError as error:
    print(error)
"""


def test_without_extras_models_are_trained_saved_loaded_and_asked(tmp_path):
    command = [sys.executable, "-c", CODE, str(tmp_path / "model"), ",".join(BLOCKED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "fish", "fish",
        "an index of kind 'hnsw' needs the package 'faiss', which is not installed; run: pip install 'labelspace[ann]'",
    ]  # fmt: skip
