"""Where torch or transformers is not installed, the doctests of modules that need it are left out."""

from importlib.util import find_spec

NEED = {
    "torch": ["training/descent", "training/writer", "training/lessons", "training/decoding", "training/t5"]
    + ["models/secseq", "models/mlc2seq"],
    "transformers": [
        "features/pieces",
        "training/answering",
        "training/pretrained",
        "training/question",
        "models/text2text",
    ],
}

collect_ignore = [
    f"src/labelspace/{name}.py" for package, names in NEED.items() if not find_spec(package) for name in names
]
