"""The array functions of a CUDA accelerator, through CuPy, for what is worked out for several groups together."""

from __future__ import annotations

from typing import Any

from prade.estimating.levels.laplace_posterior import Arrays

MOST_SMOOTHED = 64  # groups at a time
MOST_NUMBERS = 2**23  # in their matrices of cells and directions: 64 MB for each of a few
SMALL = 48  # rows of a matrix that the library inverts: for larger ones, products by halves are quicker


def device_arrays() -> Arrays:
    """The accelerator's array functions, for smoothing."""
    import cupy
    from cupyx.scipy.special import erfcx

    return Arrays(cupy, erfcx, gaussian_posteriors, cupy.asnumpy, MOST_SMOOTHED, MOST_NUMBERS)


def gaussian_posteriors(root: Any, noise: Any, told: Any, precision: Any, shift: Any) -> tuple[Any, Any]:
    """`laplace_posterior.gaussian_posteriors` with one call for all groups.

    Directions that are not told are columns of zeros.
    """
    import cupy

    scaled = cupy.where(told[:, None, :], root, 0.0) / noise[:, :, None]
    across = scaled.transpose(0, 2, 1)
    curvature = across @ (precision[:, :, None] * scaled) + cupy.eye(scaled.shape[2])
    spread = scaled @ inverses(curvature, cupy)
    mean = spread @ (across @ shift[:, :, None])
    return mean[:, :, 0], (spread * scaled).sum(axis=2)


def inverses(matrices: Any, module: Any) -> Any:
    """The inverses of symmetric positive definite matrices, [matrices, n, n], by products of their halves.

        [ A   B ]^-1     [ A^-1 + F S^-1 F'   -F S^-1 ]
        [ B'  D ]     =  [ -S^-1 F'            S^-1   ],      F = A^-1 B,  S = D - B' F

    `module` is numpy, or a module with the same functions.
    """
    half = matrices.shape[-1] // 2
    if 2 * half < SMALL:
        return module.linalg.inv(matrices)
    upper = matrices[:, :half, half:]
    first = inverses(matrices[:, :half, :half], module)
    across = first @ upper
    last = inverses(matrices[:, half:, half:] - upper.transpose(0, 2, 1) @ across, module)
    corner = across @ last
    found = module.empty_like(matrices)
    found[:, :half, :half] = first + corner @ across.transpose(0, 2, 1)
    found[:, :half, half:] = -corner
    found[:, half:, :half] = -corner.transpose(0, 2, 1)
    found[:, half:, half:] = last
    return found
