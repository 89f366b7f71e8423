"""Distances between the two-way tables of true rows and of estimates, for many groups at once, on an accelerator.

    mean over pairs of  sum over cells |estimated share - true share|

A block of threads makes one table of one group in its shared memory and compares it with the true shares. Weights are
single precision, rounded to 2^-40 of the whole; they are added up in whole numbers, so that the result does not depend
on the order of additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from prade.core.arrays import Floats
from prade.estimating.cuda import shared_memory
from prade.scoring.distances import Codes, Pair

if TYPE_CHECKING:
    from prade.data.declare.schema import Schema
    from prade.data.joint import Joint

THREADS = 512  # of a block: a power of two
BYTES_OF_CELL = 8

SOURCE = r"""
extern "C" __global__ void distances(
    const unsigned short* codes, const int* first, const int* second, const int* size, const int* start,
    const long long rows, const float* weights, const double* shares, double* found)
{
    extern __shared__ unsigned long long mass[];
    __shared__ double sums[THREADS];
    const int pair = blockIdx.x, begin = start[pair], cells = start[pair + 1] - begin, wide = size[pair];
    const long long group = blockIdx.y;
    for (int c = threadIdx.x; c < cells; c += THREADS) mass[c] = 0ull;
    __syncthreads();
    const unsigned short *one = codes + first[pair] * rows, *other = codes + second[pair] * rows;
    const float* weight = weights + group * rows;
    for (long long j = threadIdx.x; j < rows; j += THREADS) {
        const unsigned long long whole = __float2ull_rn(weight[j] * 1099511627776.0f);
        if (whole) atomicAdd(&mass[one[j] * wide + other[j]], whole);
    }
    __syncthreads();
    double far = 0.0;
    const double* share = shares + group * start[gridDim.x] + begin;
    for (int c = threadIdx.x; c < cells; c += THREADS) far += fabs(mass[c] / 1099511627776.0 - share[c]);
    sums[threadIdx.x] = far;
    for (int half = THREADS / 2; half; half >>= 1) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) found[group * gridDim.x + pair] = sums[0];
}
""".replace("THREADS", str(THREADS))


def true_shares(schema: Schema, truth: Sequence[Codes], pairs: Sequence[Pair]) -> Floats:
    """The two-way tables of the rows of several groups as shares, one pair after the other: [groups, cells]."""
    found = []
    for codes in truth:
        tables = []
        for a, b in pairs:
            cells = codes[a].astype(np.int64) * schema.size(b) + codes[b]
            tables.append(np.bincount(cells, minlength=schema.size(a) * schema.size(b)) / max(len(cells), 1))
        found.append(np.concatenate(tables))
    return np.stack(found)


def fit(schema: Schema, pairs: Sequence[Pair]) -> bool:
    """Whether the tables of all pairs fit into the shared memory of a block."""
    largest = max(schema.size(a) * schema.size(b) for a, b in pairs)
    return BYTES_OF_CELL * (largest + THREADS) <= shared_memory()


class DeviceDistances:
    """The rows of one support on the accelerator, to be scored on some pairs of columns."""

    def __init__(self, joint: Joint, pairs: Sequence[Pair]) -> None:
        import cupy

        self.cupy: Any = cupy
        schema, columns = joint.schema, list(dict.fromkeys(name for pair in pairs for name in pair))
        sizes = [schema.size(a) * schema.size(b) for a, b in pairs]
        self.codes = cupy.asarray(np.stack([joint.codes[name].astype(np.uint16) for name in columns]))
        numbers = ([columns.index(a) for a, _ in pairs], [columns.index(b) for _, b in pairs])
        several = (*numbers, [schema.size(b) for _, b in pairs], [0, *np.cumsum(sizes)])
        self.tables = tuple(cupy.asarray(np.array(each, np.int32)) for each in several)
        self.needed = BYTES_OF_CELL * max(sizes)
        self.kernel = cupy.RawKernel(SOURCE, "distances")
        self.kernel.max_dynamic_shared_size_bytes = shared_memory() - BYTES_OF_CELL * THREADS

    def means(self, weights: Any, shares: Floats) -> Floats:
        """The mean distances of groups whose rows have these weights [groups, rows] from true shares: [groups]."""
        groups, rows = weights.shape
        found = self.cupy.empty((groups, len(self.tables[0])))
        arguments = (self.codes, *self.tables, np.int64(rows), weights, self.cupy.asarray(shares), found)
        self.kernel((found.shape[1], groups), (THREADS,), arguments, shared_mem=self.needed)
        return np.asarray(self.cupy.asnumpy(found.mean(axis=1)), np.float64)
