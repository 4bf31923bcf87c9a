"""MLflow: log a tagger as a model of the flavor ``python_function``, and load it; the extra ``mlflow``.

What is logged is a model folder and the name of this module: nothing is pickled.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from labelspace.errors import ModelError, require
from labelspace.tagger import Tagger, load
from labelspace.version import __version__

FOLDER = "model"  # with the tagger, in the folder of the logged model
K = 5  # labels per document, unless the parameter ``k`` says otherwise


class TaggerFunction:
    """What ``mlflow.pyfunc.load_model`` returns: texts in, a table with a row for each document and label out."""

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - data of pandas
        """Tag texts or the rows of a table; the columns are those of ``tag_batch(output="pandas")``.

        A table with one column is a column of texts, unless the tagger learned from a table.
        """
        k = K if params is None else params.get("k", K)
        is_one_column = len(getattr(model_input, "columns", ())) == 1 and self.tagger.columns_ is None
        texts = model_input.iloc[:, 0] if is_one_column else model_input
        return self.tagger.tag_batch(texts, k, output="pandas")


def log_model(tagger: Tagger, name: str = "model", **options: Any) -> Any:  # noqa: ANN401 - options of MLflow
    """Log a tagger in the active run of MLflow; return its ``ModelInfo``, whose ``model_uri`` loads it.

    ``options`` are those of ``mlflow.pyfunc.log_model``, such as ``registered_model_name``. The model takes the
    parameter ``k``: ``mlflow.pyfunc.load_model(uri).predict(texts, params={"k": 3})``.
    """
    pyfunc = require("mlflow.pyfunc", "mlflow", "log_model")
    signature = require("mlflow.models", "mlflow").infer_signature(params={"k": K})
    about = {"signature": signature, "pip_requirements": [f"labelspace=={__version__}"], **options}
    with TemporaryDirectory(prefix="labelspace-") as scratch:
        folder = Path(scratch) / FOLDER
        tagger.save(folder)
        return pyfunc.log_model(name=name, loader_module=__name__, data_path=str(folder), **about)


def load_model(uri: str) -> Tagger:
    """Load a tagger that ``log_model`` logged, from the URI of a model such as ``models:/tags/1``."""
    artifacts = require("mlflow.artifacts", "mlflow", "load_model")
    logged = Path(artifacts.download_artifacts(uri))
    flavors = require("mlflow.models", "mlflow").Model.load(logged).flavors
    function = flavors.get("python_function", {})
    if function.get("loader_module") != __name__:
        raise ModelError(f"{uri} must be a model that labelspace.mlflow.log_model logged, but is another; give its URI")
    return load(logged / function["data"])


def _load_pyfunc(path: str) -> TaggerFunction:
    """Return the tagger of a folder; MLflow calls it by this name."""
    return TaggerFunction(load(path))
