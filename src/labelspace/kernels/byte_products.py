"""Products of matrices of 8 bits, by the instruction vpdpbusd: it multiplies 64 bytes by 64 others, and adds by fours.

A processor with it (AVX-512 VNNI: Intel's servers since 2019, AMD's processors since 2022) multiplies seven times as
fast as in float32; see ``HAS_INSTRUCTION``. Sums of integers are exact, and a product is rounded before it is added, so
that a row of the result depends on no other row.

    matrix = sum over groups of (codes - 128) * weights, times the scales of both, plus the bias

Weights are stored as the instruction reads them: for 16 outputs and four inputs, the four weights of each output.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from labelspace.kernels.compiled import kernel
from labelspace.kernels.quantize import Int8s
from labelspace.types import Floats, Ints

GROUP = 64  # inputs that share a scale
LANES = 16  # outputs of one instruction
INPUTS = 4  # inputs of one instruction
BLOCKS = 2  # of outputs that are computed together: with six rows, their sums fill the registers
ROWS = 6
CENTER = 128  # the code of 0: the instruction takes one of its factors without a sign
Bytes = npt.NDArray[np.uint8]
HAS_INSTRUCTION = "+avx512vnni" in cpu_target.target_context.codegen()._get_host_cpu_features().split(",")
_SUMS, _FLOATS = ir.VectorType(ir.IntType(32), LANES), ir.VectorType(ir.FloatType(), LANES)
_FACTORS = (_SUMS, _SUMS)  # bytes, by fours


class ByteMatrix(NamedTuple):
    """Weights of ``n_inputs`` (a multiple of 64) and ``n_outputs`` (a multiple of 32), in blocks of 16 outputs."""

    weights: Int8s  # (blocks, n_inputs / 4, 16, 4)
    scales: Floats  # (blocks, groups, 16)
    offsets: Ints  # -128 times the sum of a group's weights; of the shape of scales
    bias: Floats  # (n_outputs,)


def pack(weights: Int8s, scales: Floats, bias: Floats) -> ByteMatrix:
    """Return weights (n_outputs, n_inputs) with a scale for each group of inputs (n_outputs, groups) as a matrix."""
    n_outputs, n_inputs = weights.shape
    sums = weights.reshape(n_outputs, -1, GROUP).sum(axis=2, dtype=np.int32)
    by_block = weights.reshape(-1, LANES, n_inputs // INPUTS, INPUTS).transpose(0, 2, 1, 3)
    return ByteMatrix(np.ascontiguousarray(by_block), _in_blocks(scales), _in_blocks(-CENTER * sums), bias)


def _in_blocks(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(table.reshape(-1, LANES, table.shape[1]).transpose(0, 2, 1))


@kernel(fastmath={"nnan", "nsz", "reassoc"}, error_model="numpy")
def quantize_groups(x: Floats, codes: Bytes, scales: Floats) -> None:
    """Write the codes 1 to 255 of x, where 128 is 0, and the scale of each group of 64 numbers of a row."""
    for i in range(len(x)):
        for group in range(scales.shape[1]):
            numbers, own = x[i, group * GROUP : (group + 1) * GROUP], codes[i, group * GROUP : (group + 1) * GROUP]
            largest = np.float32(1e-30)
            for j in range(GROUP):
                largest = max(largest, abs(numbers[j]))
            factor = np.float32(127.0) / largest
            for j in range(GROUP):
                own[j] = np.uint8(np.int32(numbers[j] * factor + np.float32(CENTER + 0.5)))
            scales[i, group] = largest / np.float32(127.0)


@kernel()
def multiply(
    codes: Bytes, code_scales: Floats, weights: Int8s, scales: Floats, offsets: Ints, bias: Floats, out: Floats
) -> None:
    """Write the product of quantized rows and a ``ByteMatrix``, given by its arrays, to ``out`` (n, n_outputs).

    The arrays are separate arguments: numba needs 20 times as long to find the type of a named tuple.
    """
    n_rows, n_groups, n_outputs = len(codes), code_scales.shape[1], out.shape[1]
    for block in range(0, len(weights), BLOCKS):
        row = 0
        while row + ROWS <= n_rows:
            _six_rows(codes, code_scales, weights, scales, offsets, bias, out, row, block, n_groups, n_outputs)
            row += ROWS
        while row < n_rows:
            _one_row(codes, code_scales, weights, scales, offsets, bias, out, row, block, n_groups, n_outputs)
            row += 1


class _Tile:
    """Writes, in LLVM, the product of some rows and of two blocks of outputs."""

    def __init__(self, n_rows: int, context: Any, builder: Any, signature: Any, args: Any) -> None:  # noqa: ANN401
        arrays = zip(signature.args[:7], args[:7], strict=True)
        data = [context.make_array(kind)(context, builder, value).data for kind, value in arrays]
        self.codes, self.code_scales, self.weights, self.scales, self.offsets, self.bias, self.out = data
        self.row, self.block, self.n_groups, self.n_outputs = (
            context.cast(builder, value, kind, types.intp)
            for kind, value in zip(signature.args[7:], args[7:], strict=True)
        )
        self.builder = builder
        self.rows = [self.at(self.row, r) for r in range(n_rows)]

    def at(self, *terms: Any) -> Any:  # noqa: ANN401 - values of LLVM, here and below
        """Return the sum of products: ``at(a, (b, c))`` is a + b * c."""
        total = _integer(0)
        for term in terms:
            product = self.builder.mul(*map(_integer, term)) if isinstance(term, tuple) else _integer(term)
            total = self.builder.add(total, product)
        return total

    def vector(self, data: Any, at: Any, kind: Any) -> Any:  # noqa: ANN401
        """Return the address of a vector in an array."""
        return self.builder.bitcast(self.builder.gep(data, [at]), kind.as_pointer())

    def read(self, data: Any, at: Any, kind: Any) -> Any:  # noqa: ANN401
        """Return a vector of an array."""
        return self.builder.load(self.vector(data, at, kind), align=1)

    def repeat(self, value: Any, kind: Any) -> Any:  # noqa: ANN401
        """Return a vector of one value."""
        none = ir.Constant(kind, ir.Undefined)
        first = self.builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(first, none, ir.Constant(_SUMS, [0] * LANES))

    def write(self) -> None:
        """Write the loop over the groups of inputs, and store the sums of products."""
        builder = self.builder
        columns = [self.at((self.at(self.block, b), LANES)) for b in range(BLOCKS)]
        biases = [self.read(self.bias, column, _FLOATS) for column in columns]
        totals = [[cgutils.alloca_once_value(builder, bias) for bias in biases] for _ in self.rows]  # type: ignore[no-untyped-call]
        with cgutils.for_range(builder, self.n_groups) as loop:
            sums = self.group_sums(loop.index)
            for r, row in enumerate(self.rows):
                own = builder.gep(self.code_scales, [self.at((row, self.n_groups), loop.index)])
                row_scale = self.repeat(builder.load(own), _FLOATS)
                for b in range(BLOCKS):
                    scale = builder.fmul(row_scale, self.read(self.scales, self.of_group(b, loop.index), _FLOATS))
                    product = builder.fmul(builder.sitofp(sums[r][b], _FLOATS), scale)
                    builder.store(builder.fadd(builder.load(totals[r][b]), product), totals[r][b])
        for r, row in enumerate(self.rows):
            for b, column in enumerate(columns):
                at = self.vector(self.out, self.at((row, self.n_outputs), column), _FLOATS)
                builder.store(builder.load(totals[r][b]), at, align=1)

    def of_group(self, b: int, group: Any) -> Any:  # noqa: ANN401
        """Return where the scales and offsets of a group begin, of the block ``b`` of the tile."""
        return self.at((self.at((self.at(self.block, b), self.n_groups), group), LANES))

    def group_sums(self, group: Any) -> list[list[Any]]:  # noqa: ANN401
        """Return the sums of products of a group of inputs, by row and block."""
        builder = self.builder
        kind = ir.FunctionType(_SUMS, [_SUMS, *_FACTORS])
        add_products = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.vpdpbusd.512")  # type: ignore[no-untyped-call]
        starts = [self.read(self.offsets, self.of_group(b, group), _SUMS) for b in range(BLOCKS)]
        sums = [list(starts) for _ in self.rows]
        n_inputs = self.at((self.n_groups, GROUP))
        for step in range(GROUP // INPUTS):
            first = self.at((group, GROUP), step * INPUTS)  # input
            blocks = [
                self.at((self.at(self.block, b), self.at((n_inputs, LANES))), (first, LANES)) for b in range(BLOCKS)
            ]
            weights = [self.read(self.weights, at, _FACTORS[1]) for at in blocks]
            for r, row in enumerate(self.rows):
                four = builder.gep(self.codes, [self.at((row, n_inputs), first)])
                four = builder.load(builder.bitcast(four, ir.IntType(32).as_pointer()), align=1)
                codes = builder.bitcast(self.repeat(four, _SUMS), _FACTORS[0])
                sums[r] = [builder.call(add_products, [sums[r][b], codes, weights[b]]) for b in range(BLOCKS)]
        return sums


def _integer(value: Any) -> Any:  # noqa: ANN401
    return ir.Constant(ir.IntType(64), value) if isinstance(value, int) else value


def _tile(n_rows: int) -> Any:  # noqa: ANN401
    """Return a function for kernels that writes the products of some rows and two blocks of outputs."""

    def typed(typing: Any, codes, code_scales, weights, scales, offsets, bias, out, row, block, n_groups, n_outputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ANN401, E501, ARG001
        def write(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
            _Tile(n_rows, context, builder, signature, args).write()
            return context.get_dummy_value()

        arrays = (codes, code_scales, weights, scales, offsets, bias, out)
        return types.void(*arrays, row, block, n_groups, n_outputs), write

    return intrinsic(typed)


_six_rows, _one_row = _tile(ROWS), _tile(1)
