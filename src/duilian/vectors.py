"""What kernels ask of the processor by name: ``multiply``, ``prefetch`` and ``count_bits``.

Numba turns loops into vector code, but a product of a row and a table, written as a loop, loads and stores the result
once per few rows, and checks for each of them whether arrays overlap. ``multiply`` keeps the result in registers.
Additions keep a fixed order: the same numbers give the same bits (docs/decisions/0002-sums-keep-their-order.md).
With the compiler off both are plain NumPy.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

LANES = 16
"""Numbers in a vector. A table whose width is a multiple of it is multiplied fastest: the rest goes one by one."""

_BIG = ir.IntType(64)
_CHAINS = 2
"""Running sums of each vector of the result: an addition need not wait for the one before."""


def _multiply(_: Any, a: Any, b: Any, out: Any) -> Any:
    """out += a @ b as LLVM code: strips of up to four vectors of a row of the result, all of the inner products."""
    if b.layout != "C" or out.layout != "C":
        raise TypingError(f"multiply: the rows of b and out have to be contiguous, found {b} and {out}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, result = (
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, arguments, strict=True)
        )
        number = context.get_value_type(signature.args[2].dtype)
        vector = ir.VectorType(number, LANES)
        sum_of = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector] * 3), f"llvm.fmuladd.v{LANES}{_suffix(number)}"
        )

        def constant(value: int) -> Any:
            return ir.Constant(_BIG, value)

        def at(array: Any, row: Any, column: Any) -> Any:
            """The address of array[row, column]."""
            steps = cgutils.unpack_tuple(builder, array.strides, 2)
            bytes_ = builder.add(builder.mul(row, steps[0]), builder.mul(column, steps[1]))
            place = builder.gep(builder.bitcast(array.data, cgutils.voidptr_t), [bytes_])
            return builder.bitcast(place, number.as_pointer())

        def vector_at(array: Any, row: Any, column: Any) -> Any:
            return builder.bitcast(at(array, row, column), vector.as_pointer())

        n_rows, width = cgutils.unpack_tuple(builder, result.shape, 2)
        inner = cgutils.unpack_tuple(builder, right.shape, 2)[0]
        size = number.get_abi_size(context.target_data)
        column = cgutils.alloca_once_value(builder, constant(0))

        def strip(row: Any, vectors: int) -> None:
            """out[row, column : column + vectors * LANES], while the row has room for it."""
            first = builder.load(column)
            sums = [[cgutils.alloca_once(builder, vector) for _ in range(_CHAINS)] for _ in range(vectors)]
            places = [builder.add(first, constant(v * LANES)) for v in range(vectors)]
            for chains, place in zip(sums, places, strict=True):
                builder.store(builder.load(vector_at(result, row, place), align=size), chains[0])
                for one in chains[1:]:
                    builder.store(ir.Constant(vector, [0.0] * LANES), one)

            def term(k: Any, chain: int) -> None:
                factor = builder.load(at(left, row, k))
                single = builder.insert_element(
                    ir.Constant(vector, ir.Undefined), factor, ir.Constant(ir.IntType(32), 0)
                )
                wide = builder.shuffle_vector(
                    single,
                    ir.Constant(vector, ir.Undefined),
                    ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES),
                )
                for chains, place in zip(sums, places, strict=True):
                    there = builder.load(vector_at(right, k, place), align=size)
                    builder.store(builder.call(sum_of, [wide, there, builder.load(chains[chain])]), chains[chain])

            whole = builder.mul(builder.udiv(inner, constant(_CHAINS)), constant(_CHAINS))
            with cgutils.for_range_slice(builder, constant(0), whole, constant(_CHAINS), _BIG) as (k, _):
                for chain in range(_CHAINS):
                    term(builder.add(k, constant(chain)), chain)
            with cgutils.for_range_slice(builder, whole, inner, constant(1), _BIG) as (k, _):
                term(k, 0)
            for chains, place in zip(sums, places, strict=True):
                total = builder.load(chains[0])
                for one in chains[1:]:
                    total = builder.fadd(total, builder.load(one))
                builder.store(total, vector_at(result, row, place), align=size)
            builder.store(builder.add(first, constant(vectors * LANES)), column)

        with cgutils.for_range(builder, n_rows) as rows:
            builder.store(constant(0), column)
            for vectors in (4, 3, 2, 1):
                head = builder.append_basic_block(f"strips{vectors}")
                body = builder.append_basic_block(f"strip{vectors}")
                done = builder.append_basic_block(f"done{vectors}")
                builder.branch(head)
                builder.position_at_end(head)
                end = builder.add(builder.load(column), constant(vectors * LANES))
                builder.cbranch(builder.icmp_signed("<=", end, width), body, done)
                builder.position_at_end(body)
                strip(rows.index, vectors)
                builder.branch(head)
                builder.position_at_end(done)
            rest = builder.load(column)
            with cgutils.for_range_slice(builder, rest, width, constant(1), _BIG) as (place, _):
                total = cgutils.alloca_once_value(builder, builder.load(at(result, rows.index, place)))
                with cgutils.for_range(builder, inner) as inside:
                    factor, there = (
                        builder.load(at(left, rows.index, inside.index)),
                        builder.load(at(right, inside.index, place)),
                    )
                    builder.store(builder.fadd(builder.load(total), builder.fmul(factor, there)), total)
                builder.store(builder.load(total), at(result, rows.index, place))
        return context.get_dummy_value()

    return types.none(a, b, out), generate


def _suffix(number: Any) -> str:
    return "f32" if isinstance(number, ir.FloatType) else "f64"


def _plain_multiply(a: Any, b: Any, out: Any) -> None:
    out += a @ b


multiply: Any = _plain_multiply if config.DISABLE_JIT else intrinsic(_multiply)
"""out += a @ b: a (I, K), b (K, J), out (I, J) of one float type, the rows of b and out contiguous."""


def _prefetch(_: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(ask, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(array, index), generate


def _plain_prefetch(array: Any, index: Any) -> None:
    """There is nothing to ask for."""


prefetch: Any = _plain_prefetch if config.DISABLE_JIT else intrinsic(_prefetch)
"""Ask for the memory of array[index], a contiguous array, without waiting for it."""


def _count_bits(_: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_BIG, [_BIG])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.ctpop.i64"), arguments)

    return types.int64(types.uint64), generate


def _plain_count_bits(word: Any) -> int:
    return int(word).bit_count()


count_bits: Any = _plain_count_bits if config.DISABLE_JIT else intrinsic(_count_bits)
"""How many bits of a uint64 are set."""
