"""Where torch is not installed, the doctests of modules that need it are left out."""

from importlib.util import find_spec

NEED_TORCH = ("training/writer", "training/lessons", "training/decoding", "models/secseq", "models/mlc2seq")

collect_ignore = [] if find_spec("torch") else [f"src/labelspace/{name}.py" for name in NEED_TORCH]
