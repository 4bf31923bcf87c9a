"""Show what reranking does with the scores of an endpoint that knows the right labels, but not well.

    python benchmarks/rerank.py MODEL DATA [--n 1000] [--noise 10,30,50] [--weights 0,0.25,0.5,0.75,1]

The endpoint is a stub on this machine: it scores a right label 70 and a wrong one 30, plus Gaussian noise of a standard
deviation. This is the mechanism only; the gain by a real language model depends on the model and was not measured.
"""

import argparse
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from labelspace import metrics
from labelspace.data.answer_files import LabelDisplay
from labelspace.data.source import open_source
from labelspace.experiment.evaluate import reranked_topk
from labelspace.tagger import Tagger
from labelspace.tagger.reranking import ChatEndpoint, Reranker, RerankSettings
from labelspace.tagger.reranking.prompt import MAX_TEXT, candidate_line
from labelspace.types import Dataset

RIGHT, WRONG = 70.0, 30.0


class Oracle(ThreadingHTTPServer):
    """An endpoint that knows the labels of documents, with noise."""

    def __init__(self, documents: Dataset, noise: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        rows, labels = np.split(documents.Y.indices, documents.Y.indptr[1:-1]), documents.labels
        lines = [candidate_line(label, labels, LabelDisplay(labels)) for label in range(len(labels))]
        texts = [text[:MAX_TEXT] for text in documents.texts or []]
        self.right = {text: {lines[label] for label in row} for text, row in zip(texts, rows, strict=True)}
        self.noise = noise

    def scores(self, asked: str) -> dict[str, float]:
        """Return the scores of the candidates in a message, the same each time."""
        listed, text = re.split(r"\n\n<text-\w+>\n", asked)
        right = self.right[text.rpartition("\n</text-")[0]]
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        random = np.random.default_rng(seed)
        found = re.findall(r"(?m)^(\d+)\. (.*)$", listed)
        means = [RIGHT if name in right else WRONG for _, name in found]
        scores = np.clip(random.normal(means, self.noise), 0, 100)
        return {number: round(float(score)) for (number, _), score in zip(found, scores, strict=True)}


class Handler(BaseHTTPRequestHandler):
    """Answers as a chat endpoint does."""

    server: Oracle

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        """Answer one request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = json.dumps(self.server.scores(body["messages"][1]["content"]))
        answer = json.dumps({"choices": [{"message": {"content": content}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: Any) -> None:  # noqa: ANN401 - of http.server
        """Print nothing."""


def main() -> None:
    """Print nDCG@5 and P@1 for each noise and weight."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--n", type=int, default=1000, help="test documents")
    parser.add_argument("--noise", default="10,30,50")
    parser.add_argument("--weights", default="0,0.25,0.5,0.75,1")
    given = parser.parse_args()
    tagger = Tagger.load(given.model)
    documents = open_source(given.data).test(tagger.labels_)
    assert documents is not None
    documents = documents.rows(range(min(given.n, len(documents))))
    for noise in map(float, given.noise.split(",")):
        oracle = Oracle(documents, noise)
        threading.Thread(target=oracle.serve_forever, daemon=True).start()
        for weight in map(float, given.weights.split(",")):
            endpoint = ChatEndpoint(f"http://127.0.0.1:{oracle.server_port}", "oracle")
            reranker = Reranker(endpoint, tagger, RerankSettings(weight=weight))
            top = reranked_topk(reranker, documents, lambda k: tagger.predict_topk(documents.texts or [], k), 5)
            found = metrics.evaluate(documents.Y, top, tagger.labels_.counts, tagger.labels_.n_documents)
            figures = f"P@1 {found['P@1']:.2f}, nDCG@5 {found['nDCG@5']:.2f}"
            print(f"noise {noise:g}, weight {weight:g}: {figures}, {reranker.tally.reranked:,} reranked", flush=True)
        oracle.shutdown()


if __name__ == "__main__":
    main()
