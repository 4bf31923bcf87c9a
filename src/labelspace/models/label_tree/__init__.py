"""Label trees: Parabel, Bonsai and PLT, with C and the view of texts chosen on held-out documents."""

from labelspace.models.label_tree.model import LabelTree

__all__ = ["LabelTree"]
