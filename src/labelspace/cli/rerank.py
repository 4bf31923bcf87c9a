"""The options of commands that rerank answers by a language model, and what is said about it."""

import os
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Option

from labelspace.cli.arguments import OptionGroup
from labelspace.cli.exit_codes import as_flag
from labelspace.cli.notes import note
from labelspace.errors import ParameterError

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.tagger import Tagger
    from labelspace.tagger.reranking import Reranker

PANEL = "By a language model (--rerank)"


def _option(help: str, **more: Any) -> Any:  # noqa: ANN401 - of typer
    return Option(help=help, rich_help_panel=PANEL, **more)


class RerankOptions(NamedTuple):
    """The options of reranking; None stands for the default of ``RerankSettings``."""

    rerank: Annotated[
        str | None,
        _option(
            "Reorder the best labels by the scores of an OpenAI-compatible endpoint (POST URL/chat/completions), which "
            "is sent the texts. A key is read from LABELSPACE_RERANK_KEY.",
            metavar="URL",
        ),
    ] = None
    rerank_model: Annotated[str | None, _option("The model to ask for, by its name there.", metavar="NAME")] = None
    rerank_candidates: Annotated[
        int | None, _option("Labels per document that are scored. Default: 50.", metavar="N", min=2, max=1000)
    ] = None
    rerank_weight: Annotated[
        float | None,
        _option("Weight of the scores next to our probabilities. Default: 0.5.", metavar="W", min=0, max=1),
    ] = None
    rerank_timeout: Annotated[str | None, _option("Time for a document. Default: 30s.", metavar="30s")] = None
    rerank_total_timeout: Annotated[
        str | None, _option("Time for all documents; the rest keeps our order. Default: 10m.", metavar="10m")
    ] = None
    rerank_parallel: Annotated[int | None, _option("Requests at a time. Default: 4.", metavar="N", min=1, max=64)] = (
        None
    )

    def check(self, consistent: object) -> None:
        """Raise ParameterError if these options and --consistent do not go together."""
        others = {name: value for name, value in self._asdict().items() if name != "rerank" and value is not None}
        if self.rerank is None and others:
            raise ParameterError(f"{as_flag(next(iter(others)))} is for --rerank, but there is none; add --rerank URL")
        if self.rerank is not None and self.rerank_model is None:
            raise ParameterError("--rerank asks a model by name, but none is given; add --rerank-model NAME")
        if self.rerank is not None and consistent:
            rule = "--consistent puts labels below their ancestors, but --rerank gives them another order"
            raise ParameterError(f"{rule}; leave one of the two out")

    def reranker(self, tagger: "Tagger", language: str | None = None) -> "Reranker | None":
        """Return what reranks the answers of a tagger, after a ``check``; None without --rerank."""
        if self.rerank is None or self.rerank_model is None:
            return None
        from labelspace.experiment.timing import parse_duration
        from labelspace.tagger.reranking import KEY_VARIABLE, ChatEndpoint, Reranker, RerankSettings

        endpoint = ChatEndpoint(self.rerank, self.rerank_model, os.environ.get(KEY_VARIABLE))
        if endpoint.is_open:
            note(f"texts go to {endpoint.shown} without encryption; use https unless only you can listen")
        given = {
            "n_candidates": self.rerank_candidates,
            "weight": self.rerank_weight,
            "n_parallel": self.rerank_parallel,
        }
        times = {"timeout": self.rerank_timeout, "total_timeout": self.rerank_total_timeout}
        seconds = {
            name: parse_duration(text, f"--rerank-{name.replace('_', '-')}") for name, text in times.items() if text
        }
        settings: Any = {name: value for name, value in {**given, **seconds}.items() if value is not None}
        return Reranker(endpoint, tagger, RerankSettings(**settings), language)


Reranking = Annotated[RerankOptions, Option(parser=OptionGroup.of(RerankOptions))]


def note_reranking(reranker: "Reranker | None") -> None:
    """Say how many documents were reranked, why others were not, and what was sent."""
    if reranker is None:
        return
    tally = reranker.tally
    fell_back = ", ".join(f"{count:,} {reason}" for reason, count in tally.fell_back.most_common())
    kept = f"; {tally.fell_back.total():,} kept our order: {fell_back}" if fell_back else ""
    tokens = f", {tally.prompt_tokens:,} tokens in and {tally.completion_tokens:,} out" if tally.prompt_tokens else ""
    sent = f"{tally.requests:,} requests, {tally.characters:,} characters sent{tokens}"
    note(f"reranked {tally.reranked:,} of {tally.documents:,} documents by {reranker.endpoint.shown} ({sent}){kept}")
