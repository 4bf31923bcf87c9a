"""Reorder a shortlist by the scores of a language model, behind an OpenAI-compatible endpoint.

The network is here, in ``endpoint.py``, and not in ``cli`` or ``server``: tagging and evaluation both rerank, and lie
between the two. Nothing imports this package before a caller names an endpoint.
"""

from labelspace.tagger.reranking.endpoint import KEY_VARIABLE, ChatEndpoint
from labelspace.tagger.reranking.reranker import Reranker, RerankSettings, Tally

__all__ = ["KEY_VARIABLE", "ChatEndpoint", "RerankSettings", "Reranker", "Tally"]
