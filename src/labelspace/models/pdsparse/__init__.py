"""PD-Sparse (Yen et al., ICML 2016) and PPD-Sparse (Yen et al., KDD 2017)."""

from labelspace.models.pdsparse.model import PDSparse

__all__ = ["PDSparse"]
