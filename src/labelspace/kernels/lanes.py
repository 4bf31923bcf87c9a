"""Eight float32 side by side, as one vector of the processor: numba makes none of a loop over eight by itself.

A table (rows, LANES) holds the weights of up to eight labels, which are read and changed together. The loops are given
to LLVM as they shall run. A product is rounded before it is added, so that results are the same on all processors.

    add_row_products(data, indices, start, stop, table, out)      out += data[j] * table[indices[j]], j in start..stop
    add_to_rows(data, indices, start, stop, table, steps)         table[indices[j]] += data[j] * steps, j in start..stop

``data`` is float32, ``indices`` int32; the others are contiguous float32: ``table`` (rows, LANES), the last (LANES,).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8  # float32 of a vector of 256 bits, as AVX has
VECTOR = ir.VectorType(ir.FloatType(), LANES)
UNALIGNED = 4  # bytes: a row begins at any float32


class _Call(NamedTuple):
    """A call as numba hands it over to be written in LLVM."""

    context: Any
    builder: Any
    signature: Any
    args: Any

    def data(self, at: int) -> Any:  # noqa: ANN401 - a value of LLVM, here and below
        """Return the address of the numbers of the array that is argument ``at``."""
        return self.context.make_array(self.signature.args[at])(self.context, self.builder, self.args[at]).data

    def integer(self, at: int) -> Any:  # noqa: ANN401
        """Return argument ``at`` as an integer of 64 bits."""
        return self.context.cast(self.builder, self.args[at], self.signature.args[at], types.intp)

    def vector(self, pointer: Any) -> Any:  # noqa: ANN401
        """Return an address as the address of a vector."""
        return self.builder.bitcast(pointer, VECTOR.as_pointer())

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Write a loop over the entries of a row; yield the value in all lanes, and its row of the table."""
        builder, data, indices, table = self.builder, self.data(0), self.data(1), self.data(4)
        start, stop = self.integer(2), self.integer(3)
        none, first = ir.Constant(VECTOR, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        with cgutils.for_range_slice(builder, start, stop, ir.Constant(start.type, 1)) as (at, _):
            index = builder.zext(builder.load(builder.gep(indices, [at])), at.type)
            row = builder.gep(table, [builder.mul(index, ir.Constant(at.type, LANES))])
            value = builder.insert_element(none, builder.load(builder.gep(data, [at])), ir.Constant(ir.IntType(32), 0))
            yield builder.shuffle_vector(value, none, first), self.vector(row)


def _row_products(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
    call = _Call(context, builder, signature, args)
    out = call.vector(call.data(5))
    total = cgutils.alloca_once_value(builder, builder.load(out, align=UNALIGNED))  # type: ignore[no-untyped-call]
    for x, row in call.entries():
        product = builder.fmul(x, builder.load(row, align=UNALIGNED))
        builder.store(builder.fadd(builder.load(total), product), total)
    builder.store(builder.load(total), out, align=UNALIGNED)
    return context.get_dummy_value()


def _rows_changed(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ANN401
    call = _Call(context, builder, signature, args)
    steps = builder.load(call.vector(call.data(5)), align=UNALIGNED)
    for x, row in call.entries():
        changed = builder.fadd(builder.load(row, align=UNALIGNED), builder.fmul(x, steps))
        builder.store(changed, row, align=UNALIGNED)
    return context.get_dummy_value()


def _of_row(code: Any) -> Any:  # noqa: ANN401
    """Return a function for kernels, with its code in LLVM."""

    def typed(typing: Any, data: Any, indices: Any, start: Any, stop: Any, table: Any, own: Any) -> Any:  # noqa: ANN401, ARG001
        return types.void(data, indices, start, stop, table, own), code

    return intrinsic(typed)


add_row_products, add_to_rows = _of_row(_row_products), _of_row(_rows_changed)
