"""Why NeuralXC as its authors ran it predicts the most frequent labels for every document.

    python benchmarks/neuralxc_collapse.py DATA [--epochs 20] [--only NAME ...]

Needs torch. Their published settings for Bibtex are the first row: features-1152-600-256 and back, regressor
256-112-32, labels-96-32 and back, ReLU, tanh on the codes of labels, Adam at 0.0003 with a weight decay of 0.0001,
batches of 64, alpha = beta = 0.01, mean losses, Xavier initialization; but ReLU where the decoder of features and
the encoder of labels have a leaky one, and no sigmoid on the features. Each further row changes what it says.
Measured after some epochs on a fifth of train. ``spread`` is the standard deviation of a label's scores over documents,
averaged over labels: near 0, all documents get the same prediction. ``code`` is the mean absolute value of f(phi_i(x)):
near 1, tanh is saturated.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace

import numpy as np
import torch
from splits import Split, read
from torch import nn

from labelspace import metrics
from labelspace.training.losses import log_odds
from labelspace.types import Csr, TopK

MEASURED = (2, 5, 10, 20, 40)  # epochs after which to measure


@dataclass(frozen=True)
class Setting:
    """Hyperparameters of a training."""

    inputs: tuple[int, ...] = (1152, 600, 256)
    between: tuple[int, ...] = (112,)
    outputs: tuple[int, ...] = (96, 32)
    saturating: bool = True  # tanh on the codes of labels
    prior_bias: bool = False  # biases start at the log-odds of the label frequencies
    mean: bool = True  # losses are means over features and labels, not sums
    weight_decay: float = 1e-4
    learning_rate: float = 3e-4


PUBLISHED = Setting()
FIXED = Setting(saturating=False, prior_bias=True, mean=False, weight_decay=0.0)
ROWS = {
    "as published": PUBLISHED,
    "biases at the labels' frequencies": replace(PUBLISHED, prior_bias=True),
    "codes without tanh": replace(PUBLISHED, saturating=False),
    "sums, not means": replace(PUBLISHED, mean=False),
    "no weight decay": replace(PUBLISHED, weight_decay=0.0),
    "sums and no decay": replace(PUBLISHED, mean=False, weight_decay=0.0),
    "all four": FIXED,
    "all four, one layer each of 256": replace(FIXED, inputs=(256,), between=(), outputs=(256,)),
}


def layers(widths: list[int], last: nn.Module | None = None) -> nn.Sequential:
    """Dense layers with ReLU between, with Xavier initialization."""
    parts: list[nn.Module] = []
    for inputs, units in zip(widths, widths[1:], strict=False):
        dense = nn.Linear(inputs, units)
        nn.init.xavier_uniform_(dense.weight)
        parts += [dense, nn.ReLU()]
    return nn.Sequential(*parts[:-1], *([] if last is None else [last]))


class Net(nn.Module):
    """The five parts of the paper."""

    def __init__(self, Y: Csr, n_features: int, setting: Setting) -> None:
        super().__init__()
        code = nn.Tanh() if setting.saturating else None
        inputs, outputs = [n_features, *setting.inputs], [Y.shape[1], *setting.outputs]
        self.phi_i, self.psi_i = layers(inputs), layers(inputs[::-1])
        self.f = layers([inputs[-1], *setting.between, outputs[-1]], code)
        self.phi_o, self.psi_o = layers(outputs, code), layers(outputs[::-1])
        last = self.psi_o[-1]
        if setting.prior_bias and isinstance(last, nn.Linear):
            last.bias.data = torch.from_numpy(log_odds(Y))

    def loss(self, x: torch.Tensor, y: torch.Tensor, mean: bool) -> torch.Tensor:
        """Eq. 1, with alpha = beta = 0.01."""
        code = self.phi_i(x)
        of_x, of_y = (self.psi_i(code) - x) ** 2, (torch.sigmoid(self.psi_o(self.phi_o(y))) - y) ** 2
        crossed = nn.functional.binary_cross_entropy_with_logits(self.psi_o(self.f(code)), y, reduction="none")
        terms = (0.01 * of_x, 0.01 * of_y, crossed)
        return torch.stack([term.mean() if mean else term.sum() / len(x) for term in terms]).sum()


def dense(M: Csr, rows: np.ndarray | slice = slice(None)) -> torch.Tensor:
    """Some rows as a dense tensor."""
    return torch.from_numpy(M[rows].toarray().astype(np.float32))


def run(train: Split, unseen: Split, setting: Setting, epochs: int) -> list[str]:
    """The figures after some epochs."""
    X, Y = train
    torch.manual_seed(0)
    net = Net(Y, X.shape[1], setting)
    adam = torch.optim.Adam(net.parameters(), lr=setting.learning_rate, weight_decay=setting.weight_decay)
    cells = []
    for epoch in range(1, epochs + 1):
        order = np.random.default_rng(epoch).permutation(X.shape[0])
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            loss = net.loss(dense(X, rows), dense(Y, rows), setting.mean)
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        if epoch in MEASURED:
            with torch.no_grad():
                code = net.f(net.phi_i(dense(unseen[0])))
                scores = net.psi_o(code).numpy()
            top = TopK.from_scores(scores, 5)
            figures = metrics.evaluate(unseen[1], top, propensity_from="test")
            shares = "/".join(f"{figures[key]:.1f}" for key in ("P@1", "P@3", "P@5"))
            cells.append(f"{shares} ({scores.std(axis=0).mean():.3f}, {code.abs().mean():.2f})")
    return cells


def main() -> None:
    """Print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[], help="names of rows")
    args = parser.parse_args()
    torch.set_num_threads(1)
    train, unseen = read(args.data, "validation", {})
    print(
        "| P@1/3/5 (spread, code) after epochs |",
        " | ".join(str(epoch) for epoch in MEASURED if epoch <= args.epochs),
        "| CPU s |",
    )
    for name, setting in ROWS.items():
        if not args.only or name in args.only:
            before = time.process_time()
            cells = run(train, unseen, setting, args.epochs)
            print(f"| {name} |", " | ".join(cells), f"| {time.process_time() - before:.0f} |", flush=True)


if __name__ == "__main__":
    main()
