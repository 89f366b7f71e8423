"""How many rows the prior is worth: `n0` by empirical Bayes, on the careful side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prade.estimating.base import Answers

SMALLEST, LARGEST = 1e-2, 1e8  # from a prior that hardly counts to one that outweighs any table
STRIDE = 8  # of the first look at the grid
DOUBT = 3.0  # nats of log-likelihood: evidence of 20 to 1 before the prior is trusted less


def prior_worth(answers: Answers) -> float:
    """The largest n0 that the noisy answers do not contradict.

    n0 KL(q || p) is, to second order, the log density of a q whose cell masses vary by s (1 - s) / n0 around the
    prior's s. The prior's errors are uneven, though: a few cells are far off, most are not. So the
    answers are modelled with a long-tailed deviation of that variance, plus the noise by its own law:

        y_i - s_i = Laplace(a_i) + noise_i,      2 a_i^2 = s_i (1 - s_i) / n0

    The result is not the most likely n0 but the largest within `DOUBT` nats of it: where noise drowns the deviations
    every large n0 fits as well, and the estimate stays the prior.
    """
    s = answers.layout.prior_masses
    used = (s > 0) & (s < 1)
    if not used.any():
        return LARGEST
    x = np.abs(answers.y - s)[used]
    unit = np.sqrt(s * (1 - s) / 2)[used]
    scale = np.concatenate([m.scale for m in answers.measurements])[used] / answers.total
    laws = list(dict.fromkeys(m.law for m in answers.measurements))
    law_of = np.concatenate([np.full(len(m.counts), laws.index(m.law)) for m in answers.measurements])[used]

    def log_likelihood(log_n0: float) -> float:
        a = unit * np.exp(-log_n0 / 2)
        terms = np.choose(law_of, [law.log_density_beside(x, a, scale) for law in laws])
        return float(terms.sum())

    grid = np.linspace(np.log(SMALLEST), np.log(LARGEST), 231)  # steps of ten percent
    careful = grid[last_likely(lambda k: log_likelihood(float(grid[k])), len(grid))]
    return min(float(np.exp(careful)), LARGEST)


def last_likely(log_likelihood: Callable[[int], float], size: int) -> int:
    """The last of `size` numbers whose likelihood is within `DOUBT` of the largest.

    Every eighth is looked at, then all around the largest and after the last that is likely enough: with one hill, the
    result is that of looking at all.
    """
    found: dict[int, float] = {k: log_likelihood(k) for k in (*range(0, size, STRIDE), size - 1)}

    def look_at(first: int, last: int) -> None:
        found.update({k: log_likelihood(k) for k in range(max(first, 0), min(last, size)) if k not in found})

    top = max(found, key=found.__getitem__)
    look_at(top - STRIDE + 1, top + STRIDE)
    least = max(found.values()) - DOUBT
    last = max(k for k, value in found.items() if value >= least)
    look_at(last + 1, last + STRIDE)
    return max(k for k, value in found.items() if value >= least)
