"""FastXML (Prabhu and Varma, KDD 2014) and PfastreXML (Jain, Prabhu and Varma, KDD 2016)."""

from labelspace.models.fastxml.model import FastXML

__all__ = ["FastXML"]
