"""The climb of many duals at once on a CUDA accelerator, through CuPy (`prade[cuda]`), which is loaded only for it.

All groups of a level share the rows and cells of one layout and differ in their prior, answers and noise. One launch of
`tilt` makes the pass for all of them: a block of threads takes some rows of one group, with the logits and the masses
of all bundle cells in its shared memory. Weights are single precision; a mass is the exact sum of weights rounded to
2^-31 of the largest one in the block, in whole numbers, so it does not depend on the order of additions, and blocks are
added up in double precision. A Newton step takes its curvature from one sample of rows, drawn by leverage and weighted
for each group.

Values, slopes and certificates are those of `prade.estimating.dual`, computed from the masses as on the processor. A
group whose climb does not end here is left to the processor (None).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import Any

import numpy as np

from prade.core.arrays import Floats
from prade.core.compiled import systematic
from prade.core.errors import EstimationError
from prade.estimating.bundles import NEGLIGIBLE
from prade.estimating.dual import Certificate, Dual
from prade.estimating.layout import Layout
from prade.estimating.solvers import MOST_CELLS_FOR_NEWTON, Tolerance
from prade.estimating.tilted import Tilted

OF_MEMORY = 0.5  # that is free on the device, for the groups that are climbed together
BUSY = 16  # processes: 24 made no more rehearsals a second than 16
BYTES_OF_PROCESS = 3 * 2**30  # of memory on the device that a process should have: its libraries, rows, many groups
MOST_LAYOUTS = 8  # on the device: rehearsals come back to a few
THREADS = 1024  # of a block
BYTES_OF_CELL = 12  # of its shared memory
OTHER_BYTES = 1024  # of it, at most
ROWS_OF_BLOCK = 32_768
SAMPLE = 16_384  # rows for the curvature, at least
SAMPLE_PER_CELL = 64
MOST_STEPS = 20  # those few that need more are climbed on the processor, while these would wait for them
REACH = 3.0  # how far the first step may move a multiplier
ROUNDING = 4e-6  # of a dual value: single precision tells no smaller gain
ROUNDS = 2  # of finding out which bounds hold
# Of the slope, this much may be left by a Newton step, whose curvature is that of a sample: with a twentieth of it, the
# groups of an invented nation took as many steps, and four times the products.
NEAR = 0.2
LOOK_EVERY = 10  # products: to look is to wait for the device
MOST_PRODUCTS = 20  # with the curvature, for one Newton step
TINY = np.float32(1e-30)

SOURCE = r"""
#define NOTHING __int_as_float(0xff800000)  // minus infinity
extern "C" __global__ void tilt(
    const unsigned short* codes, const int* start, const int bundles, const long long rows, const int cells,
    const float* log_base, const float* logits, unsigned long long* masses, float* tops)
{
    extern __shared__ unsigned int shared[];
    float* logit = (float*)shared;
    unsigned int* low = shared + cells;      // a mass is low + 2^32 high
    unsigned int* high = shared + 2 * cells;
    __shared__ float largest[32];
    const long long group = blockIdx.y;
    for (int c = threadIdx.x; c < cells; c += blockDim.x) {
        logit[c] = logits[group * cells + c];
        low[c] = 0u;
        high[c] = 0u;
    }
    __syncthreads();
    const long long first = (long long)blockIdx.x * ROWS_OF_BLOCK;
    const long long last = min(first + (long long)ROWS_OF_BLOCK, rows);
    const float* base = log_base + group * rows;
    float top = NOTHING;
    for (long long j = first + threadIdx.x; j < last; j += blockDim.x) {
        float eta = base[j];
        for (int b = 0; b < bundles; b++) eta += logit[start[b] + codes[b * rows + j]];
        top = fmaxf(top, eta);
    }
    for (int offset = 16; offset; offset >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
    if ((threadIdx.x & 31) == 0) largest[threadIdx.x >> 5] = top;
    __syncthreads();
    top = largest[0];
    for (int warp = 1; warp < blockDim.x >> 5; warp++) top = fmaxf(top, largest[warp]);
    for (long long j = first + threadIdx.x; j < last && top > NOTHING; j += blockDim.x) {
        float eta = base[j];
        for (int b = 0; b < bundles; b++) eta += logit[start[b] + codes[b * rows + j]];
        const unsigned int weight = __float2uint_rn(expf(eta - top) * 2147483648.0f);
        if (weight) for (int b = 0; b < bundles; b++) {
            const int c = start[b] + codes[b * rows + j];
            if (atomicAdd(&low[c], weight) > 0xffffffffu - weight) atomicAdd(&high[c], 1u);
        }
    }
    __syncthreads();
    const long long block = group * gridDim.x + blockIdx.x;
    for (int c = threadIdx.x; c < cells; c += blockDim.x)
        masses[block * cells + c] = ((unsigned long long)high[c] << 32) + low[c];
    if (threadIdx.x == 0) tops[block] = top;
}
""".replace("ROWS_OF_BLOCK", f"{ROWS_OF_BLOCK}LL")


def why_not() -> str:
    """Why this process has no accelerator that it can use; empty if it has one."""
    try:
        import cupy
    except ImportError:
        return "CuPy is not installed (prade[cuda] has it)"
    try:
        cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as error:
        return f"CUDA finds no accelerator ({error})"
    return ""


def most_processes() -> int:
    """How many processes may share the accelerator: as many as keep it busy and have enough of its free memory."""
    if why_not():
        return 1
    import cupy

    free, _ = cupy.cuda.Device().mem_info
    return max(1, min(BUSY, int(free) // BYTES_OF_PROCESS))


def need_accelerator() -> None:
    """Refuse to go on without an accelerator."""
    if reason := why_not():
        raise EstimationError(f"there is no accelerator to estimate on, because {reason}", remedy="no_cuda")


@dataclass(frozen=True, eq=False)
class Reached:
    """Where the climb of one group ended."""

    multipliers: Floats
    masses: Floats
    certificate: Certificate
    steps: int


class Device:
    """A layout's rows on the accelerator."""

    def __init__(self, layout: Layout) -> None:
        import cupy

        self.cupy: Any = cupy
        self.layout = layout
        bundles = layout.bundles
        self.cells = int(bundles.start[-1])
        self.codes = cupy.asarray(bundles.codes.astype(np.uint16))
        self.start = cupy.asarray(bundles.start.astype(np.int32))
        self.kind = None if layout.kind is None else cupy.asarray(layout.kind.astype(np.int32))
        self.membership = cupy.asarray(bundles.membership.toarray(), np.float64)
        self.tilt = cupy.RawKernel(SOURCE, "tilt")
        self.tilt.max_dynamic_shared_size_bytes = shared_memory()  # of the kernel, whatever the layout
        self.blocks = -(-bundles.rows // ROWS_OF_BLOCK)
        self._draw()

    @property
    def at_once(self) -> int:
        """How many groups there is room for: their priors, masses and drawn rows."""
        free, _ = self.cupy.cuda.Device().mem_info
        each = 4 * self.layout.rows + 16 * self.blocks * self.cells + 40 * len(self.drawn)
        return max(1, int(OF_MEMORY * free) // each)

    def _draw(self) -> None:
        """The rows of the curvature, by leverage under the layout's own prior (see `Bundles.covariance`)."""
        cupy, layout, bundles = self.cupy, self.layout, self.layout.bundles
        self.within = np.flatnonzero(layout.reachable)
        tilted = layout.evaluate(np.zeros(layout.n_cells))
        masses = tilted.masses
        rarity = bundles.logits(np.divide(1.0, masses, out=np.zeros(len(masses)), where=masses > NEGLIGIBLE))
        score = np.zeros(layout.rows)
        for b, code in enumerate(bundles.codes):
            score += rarity[bundles.start[b] : bundles.start[b + 1]][code]
        chance = tilted.normalised() * score
        sample = min(layout.rows, max(SAMPLE, SAMPLE_PER_CELL * len(self.within)))
        rows, number = np.unique(systematic(chance, sample, 0.5), return_counts=True)
        self.drawn = cupy.asarray(rows)
        self.inverse_chance = cupy.asarray(number / chance[rows])
        self.indicators = cupy.asarray(bundles.cells_of(rows).toarray()[:, self.within], np.float32)

    def log_bases(self, bases: Iterable[Floats], groups: int, rows: int | None = None) -> Any:
        """The logarithms of the priors of several groups: [groups, rows]; `rows` are by default the collapsed ones."""
        cupy = self.cupy
        found, before = cupy.empty((groups, self.layout.rows if rows is None else rows), np.float32), None
        for k, base in enumerate(bases):
            if base is before:
                found[k] = found[k - 1]
            else:
                found[k] = cupy.log(cupy.asarray(base.astype(np.float32)))  # that of 0 is not raised by any logit
            before = base
        return found

    def evaluate(self, log_bases: Any, multipliers: Floats) -> list[Tilted]:
        """One pass for several groups; the weights of rows stay on the device."""
        cupy, groups = self.cupy, len(multipliers)
        logits = (cupy.asarray(multipliers) @ self.membership.T).astype(np.float32)
        masses = cupy.empty((groups, self.blocks, self.cells), np.uint64)
        tops = cupy.empty((groups, self.blocks), np.float32)
        rows = self.layout.rows
        arguments = (
            self.codes, self.start, np.int32(len(self.layout.bundles)), np.int64(rows), np.int32(self.cells),
            log_bases, logits, masses, tops,
        )  # fmt: skip
        self.tilt((self.blocks, groups), (THREADS,), arguments, shared_mem=BYTES_OF_CELL * self.cells)
        top = tops.max(axis=1).astype(np.float64)
        scale = cupy.exp(tops.astype(np.float64) - top[:, None]) / 2.0**31
        summed = cupy.einsum("gbc,gb->gc", masses.astype(np.float64), scale)
        total = summed[:, : int(self.layout.bundles.start[1])].sum(axis=1)
        cells = cupy.asnumpy(summed @ self.membership / total[:, None])
        log_z, tops_of = cupy.asnumpy(cupy.log(total) + top), cupy.asnumpy(top)
        nothing = np.empty(0)
        return [Tilted(cells[k], float(log_z[k]), float(tops_of[k]), nothing, nothing) for k in range(groups)]

    def directions(
        self, log_bases: Any, multipliers: Floats, masses: Floats, variance: Floats, slope: Floats, box: Floats
    ) -> Floats:
        """The Newton steps of several groups, in the part of the box [2, groups, cells] that they may reach.

        No curvature matrix is made: conjugate gradients need only its products with steps, and these are two products
        with the 0/1 matrix of the drawn rows, for all groups at once.
        """
        cupy, within, (bent, _, _) = self.cupy, self.within, _fused()
        share = self._shares(log_bases, multipliers)
        mean = share @ self.indicators
        mass = cupy.asarray(masses[:, within], np.float32)
        unseen = cupy.where(mean > 0, np.float32(0), mass)
        noise = cupy.asarray(variance[:, within], np.float32) + unseen

        def curved(steps: Any) -> Any:
            seen = ((steps @ self.indicators.T) * share) @ self.indicators
            return bent(seen, mean, (mean * steps).sum(axis=1, keepdims=True), noise, steps)

        scale = 1 / (mean * (1 - mean) + noise + TINY)
        gain, (low, high) = cupy.asarray(slope[:, within], np.float32), cupy.asarray(box[:, :, within], np.float32)
        steps = cupy.zeros_like(gain)
        left = gain
        for _ in range(ROUNDS):
            free = ~(((steps >= high) & (left > 0)) | ((steps <= low) & (left < 0)))
            steps = cupy.clip(steps + self._conjugate_gradients(curved, left * free, free, scale), low, high)
            if not bool(((steps <= low) | (steps >= high)).any()):
                break
            left = gain - curved(steps)
        found = np.zeros_like(slope)
        found[:, within] = cupy.asnumpy(steps)
        return found

    def _shares(self, log_bases: Any, multipliers: Floats) -> Any:
        """The weights of the drawn rows in several groups, each divided by its chance to be drawn: [groups, rows]."""
        eta = log_bases[:, self.drawn] + self._raised(multipliers, self.codes[:, self.drawn])
        share = self.cupy.exp(eta - eta.max(axis=1, keepdims=True)) * self.inverse_chance
        return (share / share.sum(axis=1, keepdims=True)).astype(np.float32)

    def weights(self, priors: Sequence[Floats], multipliers: Floats) -> Any:
        """The weights of the prior's own rows in several groups: [groups, rows], each group's add up to 1."""
        raised = self._raised(multipliers, self.codes)
        eta = self.log_bases(priors, len(priors), len(priors[0]))
        eta = eta + (raised if self.kind is None else raised[:, self.kind])
        weight = self.cupy.exp(eta - eta.max(axis=1, keepdims=True))
        return (weight / weight.sum(axis=1, keepdims=True)).astype(np.float32)

    def _raised(self, multipliers: Floats, codes: Any) -> Any:
        """By how much the multipliers raise the logarithms of rows with these codes: [groups, rows]."""
        start, logits = self.layout.bundles.start, self.cupy.asarray(multipliers) @ self.membership.T
        return sum(logits[:, int(start[b]) + code.astype(np.int64)] for b, code in enumerate(codes))

    def _conjugate_gradients(self, curved: Callable[[Any], Any], right: Any, free: Any, scale: Any) -> Any:
        """x with curved(x) = right in the free cells and x = 0 in the others, near enough for a Newton step."""
        cupy = self.cupy
        x, left = cupy.zeros_like(right), right
        towards = scale * left
        size = (left * towards).sum(axis=1, keepdims=True)
        goal = NEAR**2 * size
        _, step, turn = _fused()
        for product in range(MOST_PRODUCTS):
            if product % LOOK_EVERY == 0 and not bool((size > goal).any()):
                break
            bent = curved(towards) * free
            along = size / cupy.maximum((towards * bent).sum(axis=1, keepdims=True), TINY)
            along *= size > goal  # those that are near enough stay
            x, left, scaled, squares = step(x, left, towards, bent, along, scale)
            new = squares.sum(axis=1, keepdims=True)
            towards = turn(towards, scaled, size, new, goal)
            size = cupy.where(size > goal, new, size)
        return x


@cache
def _fused() -> tuple[Callable[..., Any], ...]:
    """`_bent`, `_step` and `_turn` with one launch each, where they would take twenty: most of a small climb's time."""
    import cupy

    return tuple(cupy.fuse(each) for each in (_bent, _step, _turn))


def _bent(seen: Any, mean: Any, along: Any, noise: Any, steps: Any) -> Any:
    """A product with the curvature, from that with the second moments of the drawn rows."""
    return seen - mean * along + noise * steps


def _step(x: Any, left: Any, towards: Any, bent: Any, along: Any, scale: Any) -> tuple[Any, Any, Any, Any]:
    """A step of conjugate gradients: where it leads, what is left, the same scaled, and their products."""
    left = left - along * bent
    scaled = scale * left
    return x + along * towards, left, scaled, left * scaled


def _turn(towards: Any, scaled: Any, size: Any, new: Any, goal: Any) -> Any:
    """The next direction; that of groups which are near enough stays."""
    import cupy

    return cupy.where(size > goal, scaled + new / cupy.maximum(size, TINY) * towards, towards)


def shared_memory() -> int:
    """How many bytes a block of threads can share."""
    import cupy

    return int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]) - OTHER_BYTES


def suits(layout: Layout) -> bool:
    """Whether the accelerator can climb on a layout: it has not too many cells."""
    few = int(layout.reachable.sum()) <= MOST_CELLS_FOR_NEWTON
    return few and BYTES_OF_CELL * int(layout.bundles.start[-1]) <= shared_memory()


@lru_cache(maxsize=MOST_LAYOUTS)
def device_of(layout: Layout) -> Device:
    """A layout's rows on the accelerator, those used lately."""
    return Device(layout)


def let_go() -> None:
    """Give back what layouts and finished work keep of the accelerator's memory in this process."""
    import cupy

    device_of.cache_clear()
    cupy.get_default_memory_pool().free_all_blocks()


def climb_together(
    duals: Sequence[Dual], bases: Iterable[Floats], tolerance: Tolerance, max_steps: int = MOST_STEPS
) -> Iterator[Reached | None]:
    """Climb the duals of groups that share a layout; None where the processor must climb.

    `bases` are the groups' priors on the layout's collapsed rows, used one after the other: they take the place of the
    layout's own, and have mass in the same rows.
    """
    layout = duals[0].layout
    if not suits(layout):
        yield from (None for _ in duals)
        return
    device, remaining = device_of(layout), iter(bases)
    together = device.at_once
    for first in range(0, len(duals), together):
        some = duals[first : first + together]
        yield from _climb(device, some, device.log_bases(islice(remaining, len(some)), len(some)), tolerance, max_steps)


def _climb(
    device: Device, duals: Sequence[Dual], log_bases: Any, tolerance: Tolerance, max_steps: int
) -> list[Reached | None]:
    multipliers = np.stack([dual.start() for dual in duals])
    variance = np.stack([dual.variance for dual in duals])
    low, high = (np.stack(bounds) for bounds in zip(*(dual.box for dual in duals), strict=True))
    tilted = device.evaluate(log_bases, multipliers)
    certified = [dual.certify(lam, at) for dual, lam, at in zip(duals, multipliers, tilted, strict=True)]
    reach, steps = np.full(len(duals), REACH), np.zeros(len(duals), np.int64)
    for _ in range(max_steps):
        going = [k for k, each in enumerate(certified) if not tolerance.met(each)]
        if not going:
            break
        some = log_bases if len(going) == len(duals) else log_bases[device.cupy.asarray(going)]
        now = multipliers[going]
        slope = np.stack([duals[k].slope(multipliers[k], tilted[k]) for k in going])
        near = np.maximum(low[going] - now, -reach[going, None])
        far = np.minimum(high[going] - now, reach[going, None])
        masses = np.stack([tilted[k].masses for k in going])
        way = device.directions(some, now, masses, variance[going], slope, np.stack([near, far]))
        trials = np.clip(now + way, low[going], high[going])
        for at, k, trial, found in zip(range(len(going)), going, trials, device.evaluate(some, trials), strict=True):
            new, old = duals[k].certify(trial, found), certified[k]
            rounding = ROUNDING * (1 + abs(old.value))
            steps[k] += 1
            if new.value >= old.value + 0.1 * float(slope[at] @ way[at]) - rounding:
                multipliers[k], tilted[k], certified[k], reach[k] = trial, found, new, 2 * reach[k]
            else:
                reach[k] = min(reach[k], float(np.abs(way[at]).max())) / 4
    return [
        Reached(multipliers[k], tilted[k].masses, certified[k], int(steps[k])) if tolerance.met(certified[k]) else None
        for k in range(len(duals))
    ]
