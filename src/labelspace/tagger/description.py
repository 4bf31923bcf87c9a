"""What a model folder says about itself: plain values, read from ``model.json`` and the labels, without loading it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from labelspace import store
from labelspace.errors import ParameterError
from labelspace.estimator import Estimator
from labelspace.estimator.parameter_constraints import shown
from labelspace.features import features_class
from labelspace.features.language import CODES
from labelspace.models.registry import METHODS, method
from labelspace.tagger.lineage import LINEAGE, Version, read_lineage, saved_license, saved_origin
from labelspace.types import LabelSpace

FREQUENT = 5  # labels that are named
Manifest = Mapping[str, Any]
Facts = list[tuple[str, str]]
"""Headings and what stands beside them, in words."""


def describe(folder: str | Path, manifest: Manifest) -> dict[str, Any]:
    """Return the description of a model folder as plain values; raise ModelError if its files do not fit together."""
    with store.refusing_damage(folder):
        model, features = manifest["model"], manifest.get("features")
        members = model["state"].get("members_", {}).get("list", [])
        member_views = model["state"].get("member_views_", {}).get("value", [None] * len(members))
        views = {} if features is None else features["state"]["features_"].get("dict", {})
        labels = store.read_labels(folder, manifest)
        n_labels = model["state"]["n_labels_"]["value"]
        lineage = read_lineage(manifest.get(LINEAGE, []))
        return {
            **_part(model),
            "title": method(model["name"]).title if model["name"] in METHODS else None,
            "members": [_part(member, view) for member, view in zip(members, member_views, strict=True)],
            "features": {view: _features(packed) for view, packed in views.items()},
            "language": _language([model, *members, *views.values()]),
            "n_documents": 0 if labels is None else labels.n_documents,
            "data": saved_origin(manifest)._asdict(),
            "labels": {"n": n_labels} if labels is None else _labels(labels),
            "held_out": _held_out(lineage),
            "last_change": lineage[-1].to_json() if lineage else None,
            "license": saved_license(manifest),
            "bytes": sum(file["bytes"] for file in manifest["files"].values()),
            "format": manifest["format"],
            "packages": dict(manifest["versions"]),
        }


def _part(packed: Manifest, view: str | None = None) -> dict[str, Any]:
    """Return the method of a model or member, the columns of the views that it reads, and what differs from defaults.

    Views of texts have 0 columns. ``view`` is the name of the joined views that a member reads.
    """
    views = packed["state"]["widths_"]["value"]
    if view is not None:
        views = {view: sum(views.values())}
    return {"method": packed["name"], "views": views, "params": _changed(method, packed)}


def _features(packed: Manifest) -> dict[str, Any]:
    return {"name": packed["name"], "params": _changed(features_class, packed)}


def _changed(find: Callable[[str], type[Estimator]], packed: Manifest) -> dict[str, Any]:
    """Return the parameters that differ from the defaults, all of a class that is not known."""
    try:
        defaults = find(packed["name"]).defaults()
    except ParameterError:
        defaults = {}
    same = {key: list(value) if isinstance(value, tuple) else value for key, value in defaults.items()}
    return {key: value for key, value in packed["params"].items() if key not in same or same[key] != value}


def _language(parts: list[Manifest]) -> str | None:
    """Return the code of the language that the first part to know it has."""
    codes = {name: code for code, name in CODES.items()}
    values = [part["state"].get(key, {}).get("value") for part in parts for key in ("language_", "stemming_")]
    return next((codes[value] for value in values if isinstance(value, str) and value in codes), None)


def _labels(labels: LabelSpace) -> dict[str, Any]:
    """Return how many labels there are of each kind, and how many have what."""
    known = [(bool(concept.description), bool(concept.uri)) for concept in labels.concepts or ()]
    counts = labels.answered_counts
    frequent = np.argsort(-counts, kind="stable")[:FREQUENT]
    edges = np.zeros((0, 2)) if labels.hierarchy is None else labels.hierarchy.edges
    n_in_use = int(labels.in_use.sum())
    return {
        "n": len(labels),
        "in_use": n_in_use,
        "merged": labels.n_merged,
        "retired": len(labels) - n_in_use - labels.n_merged,
        "named": labels.are_named,
        "with_documents": int((counts > 0).sum()),
        "with_synonyms": sum(map(bool, labels.synonyms or ())),
        "with_description": sum(has_description for has_description, _ in known),
        "with_uri": sum(has_uri for _, has_uri in known),
        "with_parent": len(np.unique(edges[:, 0])),
        "most_frequent": {str(labels.names[at]): int(counts[at]) for at in frequent if counts[at]},
    }


def _held_out(lineage: tuple[Version, ...]) -> dict[str, Any] | None:
    """Return the figures of the last version that was compared with the one before."""
    found = [version.held_out for version in lineage if version.held_out is not None]
    if not found:
        return None
    value, low, high = found[-1].new
    return {"metric": "nDCG@5", "value": value, "low": low, "high": high, "n": found[-1].n, "source": found[-1].source}


def facts(about: Mapping[str, Any]) -> Facts:
    """Return a description in words."""
    title = f": {about['title']}" if about["title"] else ""
    rows = [("method", f"{about['method']}{title}"), ("views", _named(about["views"]))]
    rows += [("member", f"{each['method']} ({', '.join(each['views'])}){_settings(each)}") for each in about["members"]]
    rows += [("parameters", _settings(about, "") or "our defaults")]
    rows += [(f"features {view}", f"{each['name']}{_settings(each)}") for view, each in about["features"].items()]
    rows += [("language", about["language"] or "unknown"), *_data_facts(about), *_label_facts(about["labels"])]
    if about["held_out"] is not None:
        shown_figure = "{metric} {value:.2f} (95 % interval {low:.1f} to {high:.1f}), {n:,} documents of {source}"
        rows.append(("held out", shown_figure.format(**about["held_out"])))
    packages = ", ".join(f"{name} {number}" for name, number in about["packages"].items())
    size = f"{about['bytes'] / 1e6:,.1f} MB"
    return [
        *rows,
        ("license", about["license"] or "not stated"),
        ("size", size),
        ("written by", f"{packages}; format {about['format']}"),
    ]


def _named(views: Mapping[str, int]) -> str:
    return ", ".join(f"{view} ({width:,} features)" if width else view for view, width in views.items())


def _settings(part: Mapping[str, Any], before: str = ": ") -> str:
    """Return the parameters that differ from the defaults, as the command line takes them; empty if there are none."""
    listed = ", ".join(f"{key}={shown(value)}" for key, value in part["params"].items())
    return f"{before}{listed}" if listed else ""


def _data_facts(about: Mapping[str, Any]) -> Facts:
    data, last = about["data"], about["last_change"]
    digest = f", SHA-256 {data['sha256']}" if data["sha256"] else ""
    rows = [("trained on", f"{data['data'] or 'unnamed data'}{digest}"), ("documents", f"{about['n_documents']:,}")]
    if last is not None:
        source = f" from {last['data']}" if last["data"] else ""
        source += f" to {last['restored']}" if last["restored"] else ""
        rows.append(("last change", f"version {last['number']}: {last['made_by']}{source}, {last['time']}"))
    return rows


def _label_facts(labels: Mapping[str, Any]) -> Facts:
    kinds = {
        "merged": "merged into others",
        "retired": "retired",
        "with_documents": "with documents",
        "with_synonyms": "with synonyms",
        "with_description": "with a description",
        "with_uri": "with a URI",
        "with_parent": "with a parent",
    }
    parts = [f"{labels['n']:,}", *(f"{labels[key]:,} {words}" for key, words in kinds.items() if labels.get(key))]
    frequent = [f"{name} ({count:,})" for name, count in labels.get("most_frequent", {}).items()]
    return [("labels", ", ".join(parts)), *([("most frequent", "; ".join(frequent))] if frequent else [])]
