"""Second moments of vectors, and powers of them: what maps vectors so that directions count as in their products."""

import numpy as np

from labelspace.types import Doubles, Floats

RIDGE = 0.1  # added to the second moments of queries, relative to their mean


def second_moments(rows: Floats) -> Doubles:
    """E[v v'] of rows v."""
    moments: Doubles = (rows.T @ rows).astype(np.float64) / len(rows)
    return moments


def moment_basis(queries: Floats) -> tuple[Doubles, Doubles]:
    """The eigenvalues and eigenvectors of E[q q'], with a ridge: what queries do not use must not become 0."""
    values, basis = np.linalg.eigh(second_moments(queries))
    return np.maximum(values, 0) + max(RIDGE * float(values.mean()), 1e-12), basis


def moment_power(queries: Floats, power: float) -> Floats:
    """E[q q']^power, up to a rotation."""
    values, basis = moment_basis(queries)
    return np.asarray(basis * values**power, np.float32)
