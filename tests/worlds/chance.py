"""Tests of laws of chance: p-values of noise, and what an attacker's observations prove."""

import numpy as np
from scipy import stats

ENOUGH = 100  # expected in a bin; with 5 or 10, chi-square's tail would be left up to four times as often as it should


def masses(law, scale):
    """The whole numbers that matter and their probabilities, from the formula."""
    values = np.arange(-int(60 * scale) - 60, int(60 * scale) + 61)
    exponent = np.abs(values) / float(scale) if law == "laplace" else values**2 / (2 * float(scale) ** 2)
    weights = np.exp(-exponent)
    return values, weights / weights.sum()


def p_value_of_noise(noise, law, scale):
    """Chi-square test of the noise against the law; neighbouring values share a bin until ENOUGH are expected."""
    values, probability = masses(law, scale)
    starts, expected = _bins_of(probability * len(noise))
    place = np.searchsorted(values[starts], noise, side="right") - 1
    observed = np.bincount(np.maximum(place, 0), minlength=len(starts))
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def _bins_of(expected):
    """Where bins begin, and how many are expected in each."""
    starts, sums = [0], [0.0]
    for place, number in enumerate(expected):
        if sums[-1] >= ENOUGH:
            starts.append(place)
            sums.append(0.0)
        sums[-1] += number
    if sums[-1] < ENOUGH:  # the upper end
        starts, sums = starts[:-1], [*sums[:-2], sums[-2] + sums[-1]]
    return starts, np.array(sums)


def p_value_of_uniform(numbers):
    """Chi-square test that numbers between 0 and 1 are uniform, over 10 bins."""
    return float(stats.chisquare(np.bincount(np.minimum((numbers * 10).astype(int), 9), minlength=10)).pvalue)


def proved_epsilon(events, there, delta, alpha):
    """Lower confidence bound on epsilon, wrong with probability alpha at most: the best that any event gives.

    `events` has a row per release and a column per event that an attacker may see; `there` says in which releases the
    person was in the table. Each event has its share of alpha, half of it on either side.
    """
    alpha = alpha / 2 / events.shape[1]
    with_person, without = events[there].sum(axis=0), events[~there].sum(axis=0)
    low = stats.beta.ppf(alpha, with_person, sum(there) - with_person + 1)
    high = stats.beta.isf(alpha, without + 1, sum(~there) - without)
    gain = np.nan_to_num(low) - delta
    return float(np.log(np.maximum(gain, 1e-300) / np.nan_to_num(high, nan=1.0)).max())


def largest_correlation(rows, alpha):
    """Of any two rows, in its standard deviations (about normal when there is none), and how large it may be."""
    correlations = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
    return np.abs(correlations).max() * np.sqrt(len(rows[0])), stats.norm.isf(alpha / 2 / len(correlations))
