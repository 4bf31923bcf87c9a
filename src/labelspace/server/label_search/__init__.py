"""Search for labels while a user types their names."""

from labelspace.server.label_search.search import LabelMatch, LabelSearch

__all__ = ["LabelMatch", "LabelSearch"]
