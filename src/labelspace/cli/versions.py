"""The commands history and rollback."""

from typing import Annotated

from typer import Option

from labelspace.cli.arguments import Json, Keep, ModelPath
from labelspace.cli.console import console, print_json, print_line


def history(model: ModelPath, as_json: Json = False) -> None:
    """Show the versions of a model: how each was made, and its figures on held-out documents."""
    from labelspace.report.versions import versions_json, versions_table
    from labelspace.tagger.versions import history as versions_of

    versions = versions_of(model)
    if as_json:
        print_json({"model": str(model), "versions": versions_json(versions)})
        return
    console().print(versions_table(f"versions of {model}", versions))
    if len(versions) == 1:
        print_line("a new version is made by: labelspace learn MODEL DATA")


def rollback(
    model: ModelPath,
    to: Annotated[int | None, Option(metavar="N", min=1, help="The version. Default: the one before.")] = None,
    keep: Keep = None,
    as_json: Json = False,
) -> None:
    """Go back to an older version of a model, under a new number: a rollback can be rolled back too."""
    from labelspace import store
    from labelspace.tagger.versions import rollback as go_back

    made = go_back(model, to, store.KEPT if keep is None else keep)
    if as_json:
        values = made.to_json()
        print_json({"model": str(model), "version": values.pop("number"), **values})
        return
    print_line(f"{model} is version {made.restored} again, as version {made.number}: {made.n_labels:,} labels")
