"""ICD-10-CM as a tagging task, built from the package ``simple-icd-10-cm``: diagnosis texts -> about 98,500 codes.

A document is a code's description, or one of its inclusion terms (alternative wordings). Its labels are the code and
its ancestors. The test set is a seeded random share of the inclusion terms; all descriptions are in train.
"""

import numpy as np

from labelspace.data.label_mapping import ones_of_rows
from labelspace.errors import require
from labelspace.types import Dataset, Hierarchy, LabelSpace

TEST_SHARE = 0.2


def icd10(seed: int = 0) -> tuple[Dataset, Dataset]:
    """Return train and test.

    A label's name is the code, its synonym the description; the hierarchy is the tree of codes.
    """
    icd = require("simple_icd_10_cm", extra="demo")
    codes = list(dict.fromkeys(icd.get_all_codes(True)))
    descriptions = [icd.get_description(code) for code in codes]
    label_id = {code: i for i, code in enumerate(codes)}
    parents = {code: icd.get_parent(code) for code in codes}
    # A block with a single category has the name of that category: its parent is then that of the block.
    blocks = [code for code, parent in parents.items() if parent == code]
    parents |= {code: icd.get_parent(code, prioritize_blocks=True) for code in blocks}
    edges = [(label_id[code], label_id[parent]) for code, parent in parents.items() if parent]
    tree = Hierarchy.from_edges(np.array(edges), len(codes))
    space = LabelSpace(codes, [[text] for text in descriptions], hierarchy=tree)
    terms = [(i, term) for i, code in enumerate(codes) for term in icd.get_inclusion_term(code)]

    rng = np.random.default_rng(seed)
    in_test = np.zeros(len(terms), bool)
    in_test[rng.choice(len(terms), round(TEST_SHARE * len(terms)), replace=False)] = True
    train = [*enumerate(descriptions), *(term for term, is_test in zip(terms, in_test, strict=True) if not is_test)]
    test = [term for term, is_test in zip(terms, in_test, strict=True) if is_test]
    return _dataset(train, space, "icd10cm-train"), _dataset(test, space, "icd10cm-test")


def _dataset(documents: list[tuple[int, str]], space: LabelSpace, name: str) -> Dataset:
    """Return documents given as (label id, text), labeled with the code and its ancestors."""
    assert space.hierarchy is not None
    Y = ones_of_rows([[code] for code, _ in documents], len(space))
    ids = [f"{space.names[code]}#{row}" for row, (code, _) in enumerate(documents)]
    return Dataset(space.hierarchy.closed(Y), space, texts=[text for _, text in documents], ids=ids, name=name)
