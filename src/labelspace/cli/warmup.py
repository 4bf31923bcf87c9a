"""The command warmup."""

import time
from typing import Annotated, Any

from typer import Option

from labelspace.cli.arguments import Json
from labelspace.cli.console import print_json, print_line, progress

USUAL = ("blend", "label_tree", "pdsparse", "glas", "sleec")


def warmup(
    methods: Annotated[
        list[str] | None,
        Option("--method", metavar="NAME", help=f"A method to compile for. Repeatable. Default: {', '.join(USUAL)}."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compile the kernels of training and tagging ahead, for example for a container image.

    Otherwise the first training on a machine compiles them. Compiled kernels are kept in a folder, which is printed.
    """
    from labelspace.experiment.warmup import compile_kernels, few_documents, few_rows, reads_features
    from labelspace.kernels import ROOT
    from labelspace.kernels.compilation import cache_folder, cached_bytes, watching
    from labelspace.models.registry import method
    from labelspace.server.label_search import LabelSearch

    names = list(dict.fromkeys(methods or USUAL))
    for name in names:
        method(name)  # that it exists
    compiled: list[str] = []

    def count(kernel: str, starts: bool) -> None:
        if starts and kernel.startswith("labelspace."):
            compiled.append(kernel)

    start = time.perf_counter()
    with watching(count), progress(quiet=as_json) as report:
        texts, rows = few_documents(), few_rows()
        for name in names:
            compile_kernels(name, texts, progress=report)
            if reads_features(name, texts):
                compile_kernels(name, rows, progress=report)
        LabelSearch(texts.labels).find("warm", limit=5)  # as `labelspace serve` does before it is ready
    folder = cache_folder(ROOT)
    summary = {
        "methods": names,
        "n_compiled": len(compiled),
        "seconds": round(time.perf_counter() - start, 3),
        "folder": str(folder),
        "mb": round(cached_bytes(folder) / 1e6, 3),
    }
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)


def print_summary(summary: dict[str, Any]) -> None:
    """Print what was compiled, and where it is kept."""
    names = ", ".join(summary["methods"])
    if summary["n_compiled"]:
        print_line(f"compiled {summary['n_compiled']} kernels for {names} in {summary['seconds']:.1f} s")
    else:
        print_line(f"nothing to do: the kernels for {names} are compiled")
    print_line(f"cache: {summary['folder']} ({summary['mb']:.1f} MB)")
