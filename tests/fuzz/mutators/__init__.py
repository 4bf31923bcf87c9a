"""Seeded mutators. Each takes a ``Subject``, changes its files in place and says what it changed; "" if it cannot."""

from collections.abc import Callable
from random import Random

from tests.fuzz.mutators import arrays, checkpoints, faiss_file, headers, labels, manifest, raw, records
from tests.fuzz.mutators.sealing import seal_all
from tests.fuzz.mutators.subject import Files, Subject

Mutator = Callable[[Subject], str]

MODELS: dict[str, Mutator] = {
    **arrays.MUTATORS, **headers.MUTATORS, **manifest.MUTATORS, **labels.MUTATORS, **faiss_file.MUTATORS,
    **raw.MUTATORS,
}  # fmt: skip
DATA: dict[str, Mutator] = {**records.MUTATORS, **raw.MUTATORS}
CHECKPOINTS: dict[str, Mutator] = {**arrays.MUTATORS, **headers.MUTATORS, **checkpoints.MUTATORS, **raw.MUTATORS}
ENCODERS: dict[str, Mutator] = {**arrays.MUTATORS, **headers.MUTATORS, **raw.MUTATORS}
BY_KIND = {"models": MODELS, "data": DATA, "checkpoints": CHECKPOINTS, "encoders": ENCODERS}
MORE = 0.2  # the share of cases with more than one mutation
UNSEALED = 0.05  # the share of model cases whose checksums are left as they were


def mutate(kind: str, files: Files, donor: Files, mutator: str, rng: Random) -> tuple[Files, str]:
    """The files of a case and what was done to them; ``mutator`` comes first, maybe more follow."""
    subject = Subject(dict(files), donor, rng)
    by_name = BY_KIND[kind]
    done = [by_name[mutator](subject)]
    while not any(done) or rng.random() < MORE:
        done.append(by_name[rng.choice(sorted(by_name))](subject))
    if kind not in ("data", "encoders"):  # a checkpoint may have models in folders
        done.append("unsealed" if rng.random() < UNSEALED else seal_all(subject))
    return subject.files, "; ".join(filter(None, done))
