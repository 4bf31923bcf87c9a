"""The figures of ``benchmarks/serve.py`` as a table."""

from __future__ import annotations

from typing import Any

Figures = dict[str, Any]
Row = tuple[str, str]


def rows(figures: Figures) -> list[Row]:
    """What was measured, and the value in words."""
    found = [*_throughput(figures["throughput"], figures["workers"])]
    half = figures["half_load"]
    found.append(("c. half load", f"{_open(half)}; not 200: {half['not_200']}"))
    found += _soak(figures["soak"])
    found += _overload(figures["overload"])
    found += _worker_cost(figures["worker_cost"])
    if "annif" in figures:
        found += _annif(figures["annif"])
    return found


def print_report(figures: Figures) -> None:
    """Print all rows."""
    print(
        f"{figures['model']}: {figures['workers']} workers on {figures['cores']} cores, {figures['texts']} texts. "
        "Load and server share the cores; what the load took is in brackets."
    )
    for name, value in rows(figures):
        print(f"{name:32} {value}")


def _closed(run: Figures) -> str:
    bad = f"; status 400 or more: {run['refused']}, failed: {run['failed']}"
    latency = f"p50 {run['p50_ms']:.2f} ms, p99 {run['p99_ms']:.2f} ms"
    return f"{run['per_second']:,.1f} requests/s, {latency}{bad} [wrk: {run['cores']:.2f} cores]"


def _open(run: Figures) -> str:
    latency = f"p50 {run['p50_ms']:.2f} ms, p99 {run['p99_ms']:.2f} ms"
    return f"{run['rate']:,.1f} requests/s due, {latency} [generator: {run['cores']:.2f} cores]"


def _throughput(part: Figures, workers: int) -> list[Row]:
    cores = ", ".join(f"{value:.2f}" for value in part["worker_cores"])
    return [
        (f"a. Tagger.tag, {workers} processes", f"{part['alone_per_second']:,.1f} texts/s"),
        ("b. closed loop, 32 connections", _closed(part["closed_loop"])),
        ("   cores of each worker", cores),
        ("   over HTTP / alone", f"{part['http_over_alone']:.3f}"),
        ("   one connection", _closed(part["one_connection"])),
    ]


def _soak(part: Figures) -> list[Row]:
    first, last = part["memory"][0], part["memory"][-1]

    def total(sample: list[dict[str, float]], kind: str) -> float:
        return sum(worker[kind] for worker in sample)

    found = [("d. soak at 90 %", f"{_open(part)}"), ("   requests, not 200", f"{part['offered']:,}, {part['not_200']}")]
    for kind in ("pss", "uss"):
        before, after = total(first, f"{kind}_mb"), total(last, f"{kind}_mb")
        text = f"{before:.1f} -> {after:.1f} MB ({part[f'{kind}_growth_percent']:+.2f} %)"
        found.append((f"   {kind.upper()} of the workers", text))
    return found


def _overload(part: Figures) -> list[Row]:
    answers = f"{part['per_second']:.0f} a second answered, {part['refused']} refused, {part['failed']} failed"
    return [
        (f"e. overload at {100 * part['offered_over_most']:.0f} %", f"{answers}; {part['connections']} connections"),
        ("   p99 of the accepted", f"below {part['accepted_p99_below_ms']:g} ms in the server"),
    ]


def _worker_cost(part: Figures) -> list[Row]:
    shown = f"USS {part['worker_uss_mb']:.1f} MB, PSS {part['worker_pss_mb']:.1f} MB"
    tiny = f"USS {part['tiny_worker_uss_mb']:.1f} MB"
    model = f"{part['model_private_mb']:.1f} MB private, of {part['model_on_disk_mb']:.1f} MB on disk"
    return [("f. a worker", shown), ("   with a tiny model", tiny), ("   so the model costs it", model)]


def _annif(part: Figures) -> list[Row]:
    return [
        ("g. labelspace", _closed(part["labelspace"])),
        ("   Annif", _closed(part["annif"])),
        ("   Annif, one connection", _closed(part["annif_one_connection"])),
        ("   labelspace / Annif", f"{part['throughput_ratio']:.2f} times the throughput"),
    ]
