"""SeCSeq (Chang et al., 2018) and its one-digit setting mlc2seq (Nam et al., 2017)."""

from labelspace.models.secseq.model import Mlc2Seq, SeCSeq

__all__ = ["Mlc2Seq", "SeCSeq"]
