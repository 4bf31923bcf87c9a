"""Load on ``labelspace serve``: throughput, latency, a long run, overload, memory of a worker, and Annif beside it.

    python benchmarks/serve.py MODEL DATA [--workers 2] [--minutes 10] [--annif http://127.0.0.1:8765 PROJECT] [--json]

It starts the server itself, on a free port of 127.0.0.1, and sends it the test texts of DATA:

a. alone: ``Tagger.tag`` in as many processes as there are workers, one thread each, without a server
b. closed loop: wrk with 32 connections (that is the maximum of all that follows), and with one
c. half load: requests at a constant rate of half the maximum
d. soak: 90 % of the maximum for some minutes, with the memory of the workers before and after
e. overload: three times the maximum or more; what is refused, and how long the accepted requests take
f. what another worker costs: its private memory, and that of one with a tiny model of the same method
g. Annif (``benchmarks/serve_annif.py`` says how to start it) with the same texts and the same wrk

a and b, and the two sides of g, run in alternation, and the best run counts: workers that listen on one socket do not
always get equal parts of the connections. Load and server share the cores: what the load took of them is printed with
each figure. Needs Linux and wrk (Debian: ``apt install wrk``).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from serve_load import OpenLoop, open_loop
from serve_process import Server, megabytes, serving
from serve_report import print_report
from serve_wrk import ClosedLoop, Target, closed_loop

from labelspace import Tagger
from labelspace import load as load_tagger
from labelspace.data.source import iter_records, read_dataset, split_file

K = 5
WARM_TEXTS = 50  # before a process is timed: kernels are loaded, caches filled
CHECKED = 20  # texts whose answers by HTTP must be those of Tagger.tag
TINY_DOCUMENTS = 200
MEMORY_SAMPLES = 5
HALF, SOAK = 0.5, 0.9  # of the maximum
FLOOD_CONNECTIONS = 512  # of the overload
THREADS = "LABELSPACE_THREADS"
Figures = dict[str, Any]


def say(text: str) -> None:
    """Progress, apart from the figures."""
    print(text, file=sys.stderr, flush=True)


def test_file(data: Path) -> Path:
    """The file whose texts are sent."""
    file = split_file(data, "test")
    if file is None:
        sys.exit(f"DATA must have a test file, but {data} has none; give a folder with test.jsonl.gz")
    return file


def test_texts(file: Path, n: int) -> list[str]:
    """The first texts that are not empty."""
    texts = [record.text for record in iter_records(file) if record.text and not record.text.isspace()]
    if not texts:
        sys.exit(f"requests need texts, but {file} has none; give data with texts")
    return texts[:n]


def tag_alone(model: str, texts: list[str], seconds: float, barrier: Any, results: Any) -> None:  # noqa: ANN401
    """In a process of its own: tag for some seconds, then tell the rate and the first answers."""
    tagger = load_tagger(model)
    for text in texts[:WARM_TEXTS]:
        tagger.tag(text, K)
    barrier.wait()
    n, start = 0, time.perf_counter()
    while (taken := time.perf_counter() - start) < seconds:
        tagger.tag(texts[n % len(texts)], K)
        n += 1
    results.put((n / taken, [[name for name, _ in tagger.tag(text, K)] for text in texts[:CHECKED]]))


def alone(model: str, texts: list[str], seconds: float, processes: int) -> tuple[float, list[list[str]]]:
    """Texts a second of several processes together, and the labels of the first texts."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    children = [
        context.Process(target=tag_alone, args=(model, texts, seconds, barrier, results)) for _ in range(processes)
    ]
    for child in children:
        child.start()
    found = [results.get(timeout=seconds + 120) for _ in children]
    for child in children:
        child.join()
    del os.environ[THREADS]
    if before is not None:
        os.environ[THREADS] = before
    return sum(rate for rate, _ in found), found[0][1]


def suggest_target(server: Server, texts: Sequence[str]) -> Target:
    """Requests to our server."""
    bodies = [json.dumps({"text": text, "k": K}).encode() for text in texts]
    return Target(f"{server.url}/v1/models/{server.model}/suggest", "application/json", bodies)


def annif_target(url: str, project: str, texts: Sequence[str]) -> Target:
    """Requests to Annif."""
    bodies = [urlencode({"text": text, "limit": K}).encode() for text in texts]
    return Target(f"{url.rstrip('/')}/v1/projects/{project}/suggest", "application/x-www-form-urlencoded", bodies)


def answers(target: Target, n: int, field: str) -> list[list[str]]:
    """The labels that a server gives the first texts."""
    found = []
    for body in target.bodies[:n]:
        with urlopen(Request(target.url, body, {"Content-Type": target.content_type}), timeout=60) as response:
            found.append([item["label"] for item in json.load(response)[field]])
    return found


def best(runs: Sequence[ClosedLoop]) -> ClosedLoop:
    """The run with the highest throughput: other work on the machine can only lower it."""
    return max(runs, key=lambda run: run.per_second)


def throughput(server: Server, target: Target, texts: list[str], args: argparse.Namespace) -> Figures:
    """Texts a second of ``Tagger.tag`` and of the server: a and b."""
    rates, runs, cores, seconds = [], [], [], args.seconds
    closed_loop(target, min(3, seconds))  # warms up all workers
    for run in range(args.runs):
        say(f"a, b: Tagger.tag alone and over HTTP, run {run + 1} of {args.runs}")
        rate, expected = alone(args.model, texts, seconds, server.workers)
        rates.append(rate)
        before = server.cpu_seconds()
        runs.append(closed_loop(target, seconds))
        cores.append([round((b - a) / seconds, 2) for a, b in zip(before, server.cpu_seconds(), strict=True)])
        if answers(target, CHECKED, "suggestions") != expected:
            sys.exit("the server must give the labels of Tagger.tag, but gives others; its figures would mean nothing")
    chosen = best(runs)
    return {
        "alone_per_second": round(max(rates), 1),
        "closed_loop": asdict(chosen),
        "worker_cores": cores[runs.index(chosen)],
        "http_over_alone": round(chosen.per_second / max(rates), 3),
        "one_connection": asdict(closed_loop(target, seconds, connections=1)),
        "all_runs": {"alone": [round(rate, 1) for rate in rates], "closed_loop": [run.per_second for run in runs]},
    }


def soak(server: Server, target: Target, rate: float, seconds: float, warm_seconds: float) -> Figures:
    """A long run (d); memory is sampled while the load goes on."""
    say(f"d: {rate:.0f} requests a second for {seconds / 60:.1f} minutes")
    open_loop(target, rate, warm_seconds)
    samples = [server.memory()]
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(open_loop, target, rate, seconds)
        for _ in range(MEMORY_SAMPLES - 1):
            time.sleep(seconds / MEMORY_SAMPLES)
            samples.append(server.memory())
        result = load.result()
    samples.append(server.memory())

    def growth(kind: str) -> float:
        first, last = (sum(worker[kind] for worker in sample) for sample in (samples[0], samples[-1]))
        return round(100 * (last / first - 1), 2)

    return {
        **_open_figures(result),
        "memory": samples,
        "pss_growth_percent": growth("pss_mb"),
        "uss_growth_percent": growth("uss_mb"),
    }


def overload(target: Target, most: float, seconds: float) -> Figures:
    """More requests than the server can answer: e. What accepted ones take is counted by the server, in buckets."""
    say(f"e: {FLOOD_CONNECTIONS} connections that ask again at once")
    before = _buckets(target)
    flood = closed_loop(target, seconds, FLOOD_CONNECTIONS)
    taken = {bound: n - before.get(bound, 0) for bound, n in _buckets(target).items()}
    enough = [bound for bound, n in taken.items() if n >= 0.99 * max(taken.values())]
    return {
        **asdict(flood),
        "offered_over_most": round((flood.per_second + flood.refused / seconds) / most, 2),
        "accepted_p99_below_ms": 1e3 * min(enough),
    }


def _buckets(target: Target) -> dict[float, float]:
    """How many suggestions took at most so many seconds, by /metrics."""
    parts = urlsplit(target.url)
    with urlopen(f"{parts.scheme}://{parts.netloc}/metrics") as answer:  # noqa: S310 - of this machine
        lines = answer.read().decode().splitlines()
    pattern = re.compile(r'labelspace_request_duration_seconds_bucket\{le="([^"]+)",route="[^"]*/suggest"\} (\S+)')
    found = (pattern.fullmatch(line) for line in lines)
    return {float(match[1]): float(match[2]) for match in found if match}


def _open_figures(result: OpenLoop) -> Figures:
    shares = {str(status): round(result.share(status), 5) for status in sorted(result.statuses)}
    return {**asdict(result), "shares": shares, "neither_200_nor_429": result.other, "not_200": result.not_ok}


def tiny_model(method: str, file: Path, folder: str) -> None:
    """In a process of its own: train the same method on a few documents."""
    few = read_dataset(file).rows(range(TINY_DOCUMENTS))
    names = [[few.labels.names[label] for label in row.indices] for row in few.Y]
    Tagger(method).fit(few.texts or [], names).save(folder)


def worker_cost(server: Server, args: argparse.Namespace, texts: list[str]) -> Figures:
    """Private memory of a worker, beside that of one with a tiny model; both after the same load: f."""
    say("f: memory of a worker with a tiny model of the same method")
    full = server.memory()
    method = json.loads(Path(args.model, "model.json").read_text())["method"]
    with tempfile.TemporaryDirectory() as folder:
        tiny = str(Path(folder, "tiny"))
        training = (method, test_file(args.data), tiny)
        child = multiprocessing.get_context("spawn").Process(target=tiny_model, args=training)
        child.start()
        child.join()
        with serving(tiny, args.workers, args.serve_option) as bare:
            closed_loop(suggest_target(bare, texts), args.seconds)
            small = bare.memory()
    private, private_tiny = (max(worker["uss_mb"] for worker in workers) for workers in (full, small))
    return {
        "worker_uss_mb": private,
        "worker_pss_mb": max(worker["pss_mb"] for worker in full),
        "tiny_worker_uss_mb": private_tiny,
        "model_private_mb": round(private - private_tiny, 1),
        "model_on_disk_mb": megabytes(sum(file.stat().st_size for file in Path(args.model).rglob("*"))),
    }


def beside_annif(ours: Target, theirs: Target, seconds: float, n_runs: int) -> Figures:
    """The same texts for Annif: g."""
    empty = sum(not labels for labels in answers(theirs, CHECKED, "results"))
    if empty == CHECKED:
        sys.exit("Annif must suggest labels, but suggests none for the first texts; train its project first")
    closed_loop(theirs, min(3, seconds))
    runs: dict[str, list[ClosedLoop]] = {"labelspace": [], "annif": []}
    for run in range(n_runs):
        say(f"g: labelspace and Annif, run {run + 1} of {n_runs}")
        runs["labelspace"].append(closed_loop(ours, seconds))
        runs["annif"].append(closed_loop(theirs, seconds))
    mine, peer = best(runs["labelspace"]), best(runs["annif"])
    return {
        "labelspace": asdict(mine),
        "annif": asdict(peer),
        "annif_one_connection": asdict(closed_loop(theirs, seconds, connections=1)),
        "throughput_ratio": round(mine.per_second / peer.per_second, 2),
        "all_runs": {name: [run.per_second for run in each] for name, each in runs.items()},
    }


def measure(args: argparse.Namespace) -> Figures:
    """All figures."""
    texts = test_texts(test_file(args.data), args.texts)
    figures: Figures = {
        "model": Path(args.model).name,
        "workers": args.workers,
        "cores": os.cpu_count(),
        "texts": len(texts),
    }
    with serving(args.model, args.workers, args.serve_option) as server:
        target = suggest_target(server, texts)
        figures["throughput"] = throughput(server, target, texts, args)
        figures["worker_cost"] = worker_cost(server, args, texts)
        if args.annif:
            url, project = args.annif
            figures["annif"] = beside_annif(target, annif_target(url, project, texts), args.seconds, args.runs)
        most = figures["throughput"]["closed_loop"]["per_second"]
        say(f"c: {HALF * most:.0f} requests a second")
        figures["half_load"] = _open_figures(open_loop(target, HALF * most, args.seconds))
        figures["soak"] = soak(server, target, SOAK * most, 60 * args.minutes, args.seconds)
        figures["overload"] = overload(target, most, args.seconds)
    return figures


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10, help="of the soak")
    parser.add_argument("--seconds", type=float, default=10, help="of each other run")
    parser.add_argument("--runs", type=int, default=5, help="of which the best counts, in a, b and g")
    parser.add_argument("--texts", type=int, default=2000, help="at most so many different requests")
    parser.add_argument(
        "--annif", nargs=2, metavar=("URL", "PROJECT"), help="an Annif server that runs on this machine"
    )
    parser.add_argument(
        "--serve-option", action="append", default=[], help="of labelspace serve, as --serve-option=--x=1"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    figures = measure(args)
    if args.json:
        print(json.dumps(figures))
    else:
        print_report(figures)


if __name__ == "__main__":
    main()
