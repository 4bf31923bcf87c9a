"""Models that can be loaded, but are not what `train` writes."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from labelspace.cli.exit_codes import DEBUG, described, foreseen
from labelspace.errors import ModelError


def of_model(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose unforeseen errors are those of its ``model``: what is tested works with what `train` writes."""

    @wraps(command)
    def checked(model: Path, **options: Any) -> None:  # noqa: ANN401 - the options of any command
        try:
            command(model=model, **options)
        except Exception as error:
            if foreseen(error) is not None or hasattr(error, "exit_code"):  # the latter ends a command of typer
                raise
            raise ModelError(
                f"a model must be as `labelspace train` wrote it, but {model} cannot be used ({described(error)}); "
                f"train it again, or report what {DEBUG}=1 in the environment prints"
            ) from error

    return checked
