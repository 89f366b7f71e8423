"""GEM^Pub: a neural network that generates products of distributions, trained on public rows, then on noisy answers."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from compare.asking import TOTAL_SHARE, Table, misfit
from prade import Part, Workload
from prade.core.arrays import Ints
from prade.core.execution import single_threaded_blas
from prade.core.numbers import exact
from prade.data.public.joint import Coded, Prior
from prade.release.release import Measurement

Singles = NDArray[np.float32]
MEMORY = 0.5  # of the largest error: its moving average keeps this share of itself
ABOVE = 0.5  # of that average: cells with smaller errors are not learnt
MOST_CELLS = 100  # learnt in a step, those with the largest errors
KEPT = 0.9  # of themselves, by the network's average weights in each of the last half of the rounds
DECAY, SQUARES_DECAY, TINY = 0.9, 0.999, 1e-8  # of Adam
NORM = 1e-5  # added to variances by the batch normalisation


@dataclass(frozen=True)
class GEMPub:
    """A generator G of `products` product distributions, whose mixture is the estimate; it starts from public rows.

    G is a network with fixed random inputs z, two hidden layers (linear, batch normalisation, ReLU; each hands on its
    own input as well) and one softmax per column. A table of two columns is the mean over k of p_k(a) p_k(b), so it
    has derivatives, and Adam reduces its errors.

    First G learns all tables of the public rows, in `public_steps` steps, from errors weighted by their size. Then each
    of T rounds privately chooses a table that was not asked yet, by how far G is from the truth (`Misfit`, less the
    noise that an answer would have), asks for it with Laplace noise, and takes up to `steps` steps on the mean absolute
    error of the cells whose error is at least half of a moving average of the largest error, at most 100 of them.
    Choosing costs `choosing_share` of a round's epsilon. The result has the moving average of G's weights over the last
    half of the rounds; without `average`, which is better after few rounds, the last weights. It has `draws` rows of
    each product.

    Liu, Vietri, Wu: Iterative Methods for Private Synthetic Data (2021). There, queries are single cells of three-way
    tables, noise is Gaussian, and the number of rows is known. Here tables of one or two columns are chosen and asked
    as a whole, for a pure budget, and the number of rows is measured.
    """

    workload: Workload
    rounds: int = 20
    steps: int = 100
    public_steps: int = 1000
    products: int = 1000
    inputs: int = 128
    hidden: int = 256
    rate: float = 1e-4
    public_rate: float = 1e-3
    choosing_share: float = 0.67
    total_share: float = TOTAL_SHARE
    average: bool = True
    draws: int = 100
    seed: int = 0

    @single_threaded_blas()  # so that the estimate does not depend on the number of cores
    def ask(self, prior: Prior, table: Table) -> tuple[Prior, float]:
        """Choose, ask and learn in T rounds; then learn all answers again with the final total."""
        table.ask_total(self.total_share)
        open_parts = list(self.workload)
        rounds = min(self.rounds, len(open_parts))
        choosing = table.left * exact(self.choosing_share, "choosing_share") / rounds
        asking = table.left / rounds - choosing
        noise = math.ceil(table.noise(asking))
        learner = _Learner(self, prior, rounds)
        for _ in range(rounds):
            counts = table.total * learner.tables.of(learner.network.products())
            guesses = [np.rint(counts[learner.tables.cells(part)]).astype(np.int64) for part in open_parts]
            scores = [
                misfit(part, guess, part.n_cells * noise) for part, guess in zip(open_parts, guesses, strict=True)
            ]
            chosen = open_parts.pop(table.choose(scores, choosing))
            learner.learn(table.answer(chosen, asking), table.total)
        return self.learnt(prior, table.answers[1:], table.total), table.total

    def learnt(self, prior: Prior, answers: Sequence[Measurement], total: float) -> Prior:
        """What the rounds learn from these answers, one per round, in this order."""
        learner = _Learner(self, prior, len(answers))
        for measurement in answers:
            learner.learn(measurement, total)
        return self._drawn(prior, learner)

    def _drawn(self, prior: Prior, learner: _Learner) -> Prior:
        """The same number of rows of each product."""
        generator, codes = np.random.default_rng(self.seed), {}
        if self.average:
            learner.network.weights = learner.average
        products = learner.network.products()
        for name, at in learner.tables.at.items():
            edges = np.cumsum(products[:, at], axis=1, dtype=np.float64)
            edges[:, -1] = np.inf
            drawn = [np.searchsorted(line, generator.random(self.draws), side="right") for line in edges]
            codes[name] = np.concatenate(drawn).astype(np.min_scalar_type(at.stop - at.start))
        return Prior.from_joint(Coded(prior.schema, codes))


class _Tables:
    """All one- and two-way tables of a mixture of products at once, as the cells of one square matrix.

    The matrix has a row and a column for each value of each column of the data. With the products P, one in a row, the
    blocks of P' P / K are the two-way tables. The diagonal, which they do not need, has the one-way tables.
    """

    def __init__(self, prior: Prior) -> None:
        sizes = [prior.schema.size(name) for name in prior.columns]
        ends = np.cumsum(sizes)
        self.at = {name: slice(int(e - s), int(e)) for name, s, e in zip(prior.columns, sizes, ends, strict=True)}
        self.size = int(ends[-1])

    def cells(self, part: Part) -> Ints:
        """Where the cells of a part are in the flattened matrix."""
        places = [np.arange(self.size)[self.at[name]] for name in part.columns]
        return places[0] * (self.size + 1) if len(places) == 1 else (places[0][:, None] * self.size + places[1]).ravel()

    def of(self, products: Singles) -> Singles:
        """The masses of all cells, flattened."""
        masses = products.T @ (products / np.float32(len(products)))
        np.fill_diagonal(masses, products.mean(axis=0))
        return masses.ravel()

    def slope(self, products: Singles, signs: Singles) -> Singles:
        """The derivative of sum over cells signs * masses by the products."""
        square = signs.reshape(self.size, self.size)
        single = np.diagonal(square)
        return (products @ (square + square.T - np.diag(2 * single)) + single) / np.float32(len(products))


class _Learner:
    """The network, what it has been told, and the averages that GEM keeps."""

    def __init__(self, settings: GEMPub, prior: Prior, rounds: int) -> None:
        self.settings, self.rounds, self.done = settings, rounds, 0
        self.network = copy.deepcopy(_trained(settings, prior))
        self.tables = self.network.tables
        self.wanted = np.full(self.tables.size**2, np.nan, np.float32)
        self.largest: float | None = None
        self.average: list[Singles] = []

    def learn(self, measurement: Measurement, total: float) -> None:
        """One round: add an answer, then reduce the errors of all answers so far."""
        self.wanted[self.tables.cells(measurement.part)] = np.clip(measurement.counts / total, 0.0, 1.0)
        known = np.flatnonzero(~np.isnan(self.wanted))
        largest = float(np.abs(self.tables.of(self.network.products())[known] - self.wanted[known]).max())
        self.largest = largest if self.largest is None else MEMORY * self.largest + (1 - MEMORY) * largest
        adam = _Adam(self.network)
        for rate in _cosine(self.settings.rate, self.settings.steps):
            products = self.network.products()
            errors = self.tables.of(products)[known] - self.wanted[known]
            worst = np.argsort(np.abs(errors), kind="stable")[-MOST_CELLS:]
            worst = worst[np.abs(errors[worst]) >= ABOVE * self.largest]
            if not len(worst):
                break
            signs = np.zeros(self.wanted.size, np.float32)
            signs[known[worst]] = np.sign(errors[worst]) / np.float32(len(worst))
            adam.step(self.network.slopes(self.tables.slope(products, signs)), rate)
        self.done += 1
        if 2 * self.done > self.rounds:
            pairs = zip(self.average or self.network.weights, self.network.weights, strict=True)
            self.average = [np.float32(KEPT) * old + np.float32(1 - KEPT) * new for old, new in pairs]


@lru_cache(maxsize=2)
def _trained(settings: GEMPub, prior: Prior) -> _Network:
    """The network after its lessons from public rows, for all groups that start from the same ones."""
    tables = _Tables(prior)
    network, wanted = _Network(settings, tables), np.full(tables.size**2, np.nan, np.float32)
    for part in settings.workload:
        wanted[tables.cells(part)] = prior.project(part.columns).ravel()
    adam = _Adam(network)
    for rate in _cosine(settings.public_rate, settings.public_steps):
        products = network.products()
        errors = np.nan_to_num(tables.of(products) - wanted)  # 0 where nothing is wanted
        adam.step(network.slopes(tables.slope(products, errors / np.float32(np.abs(errors).sum() + TINY))), rate)
    return network


def _cosine(rate: float, steps: int) -> Iterator[np.float32]:
    """Rates that fall from the first one to nearly nothing along a cosine."""
    for step in range(steps):
        yield np.float32(rate * (1 + math.cos(math.pi * step / steps)) / 2)


class _Network:
    """The generator and its derivatives by hand: z -> two hidden layers, each with its input beside it -> softmaxes."""

    def __init__(self, settings: GEMPub, tables: _Tables) -> None:
        generator = np.random.default_rng(settings.seed)
        self.tables = tables
        self.inputs = generator.standard_normal((settings.products, settings.inputs), np.float32)
        self.weights: list[Singles] = []
        width = settings.inputs
        for _ in range(2):
            self.weights += _linear(generator, width, settings.hidden)
            self.weights += [np.ones(settings.hidden, np.float32), np.zeros(settings.hidden, np.float32)]
            width += settings.hidden
        self.weights += _linear(generator, width, tables.size)
        self.trail: list[tuple[Singles, Singles, Singles, Singles]] = []
        self.last = self.inputs, self.inputs  # the last hidden layer and the products

    def products(self) -> Singles:
        """One product distribution per row: the probabilities of each column's values."""
        layer, self.trail = self.inputs, []
        for first in (0, 4):
            matrix, bias, gain, shift = self.weights[first : first + 4]
            raw = layer @ matrix + bias
            spread = 1 / np.sqrt(raw.var(axis=0) + np.float32(NORM))
            normed = (raw - raw.mean(axis=0)) * spread
            out = gain * normed + shift
            self.trail.append((layer, normed, spread, out > 0))
            layer = np.concatenate([np.maximum(out, 0), layer], axis=1)
        logits = layer @ self.weights[8] + self.weights[9]
        for at in self.tables.at.values():
            block = np.exp(logits[:, at] - logits[:, at].max(axis=1, keepdims=True))
            logits[:, at] = block / block.sum(axis=1, keepdims=True)
        self.last = layer, logits
        return logits

    def slopes(self, slope: Singles) -> list[Singles]:
        """The derivatives by all weights, given that by the latest products."""
        layer, products = self.last
        back = np.empty_like(slope)
        for at in self.tables.at.values():
            inner = slope[:, at] * products[:, at]
            back[:, at] = inner - products[:, at] * inner.sum(axis=1, keepdims=True)
        found = [layer.T @ back, back.sum(axis=0)]
        back = back @ self.weights[8].T
        for first, (layer, normed, spread, positive) in zip((4, 0), reversed(self.trail), strict=True):
            gain, width = self.weights[first + 2], normed.shape[1]
            out = back[:, :width] * positive
            inner = out * gain
            inner = spread * (inner - inner.mean(axis=0) - normed * (inner * normed).mean(axis=0))
            found = [layer.T @ inner, inner.sum(axis=0), (out * normed).sum(axis=0), out.sum(axis=0), *found]
            back = back[:, width:] + inner @ self.weights[first].T
        return found


def _linear(generator: np.random.Generator, rows: int, columns: int) -> list[Singles]:
    """A layer's matrix and bias, uniform within 1 / sqrt(rows)."""
    shapes = (rows, columns), (columns,)
    return [(generator.uniform(-1, 1, shape) / math.sqrt(rows)).astype(np.float32) for shape in shapes]


class _Adam:
    """Adam (Kingma and Ba, 2015) on a network's weights."""

    def __init__(self, network: _Network) -> None:
        self.network, self.steps = network, 0
        self.means, self.squares = ([np.zeros_like(each) for each in network.weights] for _ in range(2))

    def step(self, slopes: Sequence[Singles], rate: np.float32) -> None:
        """One step against the slopes."""
        self.steps += 1
        first, second = np.float32(1 - DECAY**self.steps), np.float32(1 - SQUARES_DECAY**self.steps)
        for weight, slope, mean, square in zip(self.network.weights, slopes, self.means, self.squares, strict=True):
            mean += np.float32(1 - DECAY) * (slope - mean)
            square += np.float32(1 - SQUARES_DECAY) * (slope * slope - square)
            weight -= rate * (mean / first) / (np.sqrt(square / second) + np.float32(TINY))
