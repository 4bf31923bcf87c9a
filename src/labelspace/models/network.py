"""network prototype"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelspace.estimator import above, at_least, whole
from labelspace.features.scaling import unit_rows
from labelspace.kernels.network import adam, descend_features, embed_rows
from labelspace.kernels.threads import run_blocks
from labelspace.models.base import Aids, Model
from labelspace.types import Csr, Floats, TopK


class Network(Model):
    name = "network"
    title = "one hidden layer, binary cross-entropy"
    choose_when = "labels are few and many a document"
    text_features = {"ngrams": 1}
    rules = {"hidden": whole(1), "epochs": whole(1), "batch": whole(1), "rate": above(0), "seed": whole(0)}
    state = ("E_", "c_", "W_", "b_")

    def __init__(self, hidden=256, epochs=10, batch=256, rate=5e-3, erate=.05, dropout=.5, input_dropout=.2, init=.1, decay=1., seed=0):
        self.hidden=hidden; self.epochs=epochs; self.batch=batch; self.rate=rate; self.erate=erate; self.dropout=dropout; self.input_dropout=input_dropout; self.seed=seed; self.init=init; self.decay=decay

    def _fit(self, X, Y, aids):
        X = unit_rows(X)
        n, d = X.shape; L = Y.shape[1]; H = self.hidden
        rng = np.random.default_rng(self.seed)
        E = (rng.standard_normal((d, H), np.float32) * np.float32(self.init))
        W = rng.standard_normal((L, H), np.float32) * np.float32(H ** -0.5)
        cb = np.zeros((1, H), np.float32)
        f = (np.bincount(Y.indices, minlength=L) + .5) / (n + 1)
        b = np.log(f / (1 - f)).astype(np.float32)[:, None].copy()
        sq = np.zeros(d, np.float32)
        st = [(np.zeros_like(p), np.zeros_like(p)) for p in (W, b, cb)]
        steps = self.epochs * -(-n // self.batch); step = 0
        for epoch in range(self.epochs):
            order = rng.permutation(n)
            for i in range(0, n, self.batch):
                rows = order[i:i + self.batch]; B = len(rows)
                Xb = X[rows]; Yb = Y[rows]
                if self.input_dropout:
                    Xb.data *= (rng.random(len(Xb.data), np.float32) >= self.input_dropout) / np.float32(1 - self.input_dropout)
                h = np.empty((B, H), np.float32)
                run_blocks(lambda s, t: embed_rows(Xb.data, Xb.indices, Xb.indptr, s, t, E, cb[0], h), B, (B + 1) // 2 if Xb.nnz * H > 500000 else B)
                mask = (h > 0).astype(np.float32)
                if self.dropout:
                    mask *= (rng.random((B, H), np.float32) >= self.dropout) * np.float32(1 / (1 - self.dropout))
                h *= mask
                z = h @ W.T; z += b[:, 0]
                np.negative(z, out=z); np.exp(z, out=z); z += 1; np.reciprocal(z, out=z)
                z[np.repeat(np.arange(B), np.diff(Yb.indptr)), Yb.indices] -= 1
                z /= B if self.decay else 1
                dh = z @ W; dh *= mask
                gW = z.T @ h
                step += 1
                lr = 1 - (step - 1) / steps
                for p, g, (m, v) in zip((W, b, cb), (gW, z.sum(0)[:, None], dh.sum(0)[None]), st):
                    run_blocks(lambda s, t: adam(p, g, m, v, s, t, self.rate * lr, step), len(p), (len(p) + 1) // 2 if p.size > 200000 else len(p))
                C = Xb.tocsc(); feats = np.flatnonzero(np.diff(C.indptr)).astype(np.int32)
                ends = np.append(C.indptr[feats], C.indptr[-1]).astype(np.int32)
                run_blocks(lambda s, t: descend_features(C.data, C.indices, ends, feats, s, t, dh, self.erate * lr, E, sq), len(feats), (len(feats) + 1) // 2 if Xb.nnz * H > 500000 else max(1,len(feats)))
            aids.progress("epochs", epoch + 1, self.epochs)
        self.E_, self.c_, self.W_, self.b_ = E, cb[0], W, b[:, 0].copy()

    def _predict(self, X, k):
        X = unit_rows(X); out = TopK.empty(X.shape[0], k)
        for s in range(0, X.shape[0], 256):
            Xb = X[s:s + 256]; h = np.empty((Xb.shape[0], self.hidden), np.float32)
            embed_rows(Xb.data, Xb.indices, Xb.indptr, 0, Xb.shape[0], self.E_, self.c_, h)
            z = np.maximum(h, 0) @ self.W_.T + self.b_
            top = np.argpartition(-z, k - 1, axis=1)[:, :k] if k < z.shape[1] else np.tile(np.arange(k), (len(z), 1))
            v = np.take_along_axis(z, top, 1); o = np.argsort(-v, 1, kind="stable")
            out.labels[s:s + 256] = np.take_along_axis(top, o, 1); out.scores[s:s + 256] = 1 / (1 + np.exp(-np.take_along_axis(v, o, 1)))
        return out
