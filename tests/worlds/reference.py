"""Second opinions: the paper's definitions in dense numpy, and its convex problems given to an interior-point solver.

Nothing here uses the package's own layouts, kernels or projections: a part's 0/1 matrix is written out row by row from
its meaning, and optima come from Clarabel (exponential cones for KL) and HiGHS (linear programmes).
"""

import itertools
from dataclasses import dataclass, field

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from prade import Schema
from prade.data.public.joint import Prior
from prade.queries.parts import Cells, Marginal, Predicate
from prade.queries.query import parse
from prade.release.release import Measurement

NAMES = ("a", "b", "c")


@dataclass
class Case:
    """A small problem twice: as the package sees it, and as dense matrices."""

    schema: Schema
    prior: Prior
    parts: list
    matrices: list  # per part, cells x rows of the prior
    rows: np.ndarray  # codes of the prior's rows
    total: float
    counts: list = field(default_factory=list)
    scales: list = field(default_factory=list)
    laws: list = field(default_factory=list)
    # the truth lives on the whole domain, so that cells which the support does not reach get answers too
    domain_matrices: list = field(default_factory=list)
    truth: np.ndarray | None = None

    @property
    def p(self):
        return self.prior.weights

    @property
    def W(self):
        return np.vstack(self.matrices)

    @property
    def y(self):
        return np.concatenate(self.counts) / self.total

    def measurements(self):
        scales = self.scales or [1.0] * len(self.parts)
        laws = self.laws or ["laplace"] * len(self.parts)
        return [Measurement(*each) for each in zip(self.parts, self.counts, scales, laws, strict=True)]


def grid(sizes):
    """Every row of the domain, the last column fastest."""
    return np.array(list(itertools.product(*(range(size) for size in sizes))))


def dense(cell, n_cells):
    """The 0/1 matrix of a part from the cell of each row; -1 is none."""
    matrix = np.zeros((n_cells, len(cell)))
    for j, i in enumerate(cell):
        if i >= 0:
            matrix[i, j] = 1.0
    return matrix


def random_part(rng, schema, sizes, kind):
    """A part, and a function that says which of its cells a row is in (-1 for none)."""
    width = len(sizes)
    if kind == "marginal":
        chosen = sorted(rng.choice(width, size=rng.integers(1, 3), replace=False))

        def cell(row):
            number = 0
            for c in chosen:
                number = number * sizes[c] + row[c]
            return number

        return Marginal.of(schema, [NAMES[c] for c in chosen]), cell
    if kind == "cells":
        c, d = sorted(rng.choice(width, size=2, replace=False))
        n_cells = int(rng.integers(1, 5))
        table = rng.integers(0, n_cells + 1, size=(sizes[c], sizes[d]))

        def cell(row):
            found = table[row[c], row[d]]
            return -1 if found == n_cells else int(found)

        return Cells([NAMES[c], NAMES[d]], table, n_cells), cell
    c, d = rng.integers(0, width, size=2)
    v, w = int(rng.integers(0, sizes[c])), int(rng.integers(0, sizes[d]))
    first = parse(f"{NAMES[c]} == {v} and {NAMES[d]} <= {w}", schema)
    second = parse(f"{NAMES[c]} != {v}", schema)
    if rng.random() < 0.5:
        return Predicate(first), lambda row: 0 if row[c] == v and row[d] <= w else -1
    return Predicate(first, second), lambda row: 1 if row[c] != v else (0 if row[d] <= w else -1)


def random_case(rng, *, complete=False):
    """A random prior on part of a small domain (or on all of it, some rows with no mass) and random parts."""
    sizes = [int(n) for n in rng.integers(2, 5, size=rng.integers(2, 4))]
    schema = Schema.from_mbi(dict(zip(NAMES, sizes, strict=False)))
    rows = grid(sizes)
    weights = rng.dirichlet(np.full(len(rows), 0.8)) + 1e-4
    kept = rng.random(len(rows)) < 0.65
    if not kept.any():
        kept[0] = True
    if complete:
        weights[~kept] = 0.0
    else:
        rows, weights = rows[kept], weights[kept]
    codes = {name: rows[:, c].astype(np.uint8) for c, name in enumerate(NAMES[: len(sizes)])}
    prior = Prior(schema, codes, weights, complete=complete)
    case = Case(schema, prior, [], [], rows, float(rng.integers(40, 2000)))
    domain = grid(sizes)
    for _ in range(rng.integers(1, 5)):
        kind = rng.choice(["marginal", "marginal", "cells", "predicate"])
        part, cell = random_part(rng, schema, sizes, kind)
        case.parts.append(part)
        case.matrices.append(dense([cell(row) for row in rows], part.n_cells))
        case.domain_matrices.append(dense([cell(row) for row in domain], part.n_cells))
    if rng.random() < 0.3:  # the same part twice
        for listed in (case.parts, case.matrices, case.domain_matrices):
            listed.append(listed[0])
    case.truth = rng.dirichlet(np.full(len(domain), 0.5))
    return case


def add_noise(rng, case, size):
    """Integer counts of the truth with Laplace noise of that size: inconsistent, some negative."""
    case.counts = [
        np.rint(case.total * matrix @ case.truth + rng.laplace(scale=size, size=len(matrix)))
        for matrix in case.domain_matrices
    ]
    return case


def solve_monotone(function, low, high):
    """The root of an increasing function by bisection, to the last digit."""
    for _ in range(300):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return 0.5 * (low + high)


def project_least_kl(y, r, covers):
    """Of the L1-nearest distributions to y (sum 1, at most 1 unless `covers`), the one of least KL from r."""
    positive = np.maximum(y, 0.0)
    if positive.sum() > 1:
        if positive[r > 0].sum() <= 1:
            # every member of the optimal set needs cells without current mass: as little as possible, in proportion
            missing = 1 - positive[r > 0].sum()
            z = positive.copy()
            z[r <= 0] *= missing / positive[r <= 0].sum()
            return z
        top = max(positive[i] / r[i] for i in range(len(y)) if r[i] > 0) + 1
        c = solve_monotone(lambda c: np.minimum(positive, c * r).sum() - 1, 0.0, top)
        return np.minimum(positive, c * r)
    if positive.sum() < 1 and covers:
        c = solve_monotone(lambda c: np.maximum(positive, c * r).sum() - 1, 0.0, 1 / r.max() + 1)
        return np.maximum(positive, c * r)
    return positive


def project_euclidean(y, r, covers):
    """The Euclidean-nearest distribution to y."""
    positive = np.maximum(y, 0.0)
    if not covers and positive.sum() <= 1:
        return positive
    shift = solve_monotone(lambda t: 1 - np.maximum(y - t, 0.0).sum(), y.min() - 1.0, y.max())
    return np.maximum(y - shift, 0.0)


PROJECTIONS = {"least-kl": project_least_kl, "euclidean": project_euclidean}


def definition_1(q, matrix, y):
    """The update f row by row, in the paper's four cases, on the full domain."""
    s = matrix @ q
    covered = matrix.sum(axis=0) > 0
    outside = q[~covered].sum()
    new = np.zeros(len(q))
    for j in range(len(q)):
        if covered[j]:
            i = int(np.argmax(matrix[:, j]))
            new[j] = q[j] * y[i] / s[i] if s[i] > 0 else y[i] / matrix[i].sum()
        elif outside > 0:
            new[j] = q[j] * (1 - y.sum()) / outside
        else:
            new[j] = (1 - y.sum()) / np.sum(~covered)
    return new


def algorithm_1(case, order, steps, projection, *, complete):
    """T steps of project and update. On a support, cells without mass cannot be given any: they are left out."""
    project = PROJECTIONS[projection]
    q = case.p.copy()
    for t in range(steps):
        k = order[t % len(order)]
        matrix, y = case.matrices[k], case.counts[k] / case.total
        covered = matrix.sum(axis=0) > 0
        if complete:
            possible = matrix.sum(axis=1) > 0
            somewhere_else = bool((~covered).any())
        else:
            possible = matrix @ q > 0
            somewhere_else = bool((q[~covered] > 0).any())
        goal = np.zeros(len(y))
        if possible.any():
            goal[possible] = project(y[possible], (matrix @ q)[possible], not somewhere_else)
        if complete:
            q = definition_1(q, matrix, goal)
        else:
            s = matrix @ q
            ratio = np.where(s > 0, goal / np.where(s > 0, s, 1.0), 0.0)
            outside = q[~covered].sum()
            q = q * np.where(covered, ratio @ matrix, (1 - goal.sum()) / outside if outside > 0 else 0.0)
        q = q / q.sum()  # against rounding only: each step keeps the sum
    return q


def kl(q, p):
    """KL(q || p), with 0 log 0 = 0."""
    held = q > 0
    if (p[held] <= 0).any():
        return np.inf
    return float(np.sum(q[held] * np.log(q[held] / p[held])))


def costs(case, n0):
    """Per query of MAP's objective over n0: (L1 price, quadratic price), infinite price for an exact answer."""
    prices = []
    for scale, law, part in zip(case.scales, case.laws, case.parts, strict=True):
        for s in np.broadcast_to(scale, part.n_cells):
            if s == 0:
                prices.append((np.inf, 0.0))
            elif law == "gaussian":
                prices.append((0.0, case.total**2 / (2 * s**2) / n0))
            else:
                prices.append((case.total / s / n0, 0.0))
    return np.array(prices).T


def map_objective(case, q, n0):
    """MAP's objective as the design writes it; exact answers cost nothing here, their misfit is looked at apart."""
    linear, square = costs(case, n0)
    r = np.abs(case.W @ q - case.y)
    soft = np.isfinite(linear)
    return n0 * (kl(q, case.p) + float(linear[soft] @ r[soft] + square @ r**2))


def possible_support(A, b, n):
    """Which of x_1..n can be positive on {x >= 0, A x = b}: the union of supports, by a few linear programmes."""
    total = A.shape[1]
    found = np.zeros(n, bool)
    while not found.all():
        wanted = np.flatnonzero(~found)
        # maximise the sum of caps t_j <= x_j, t_j <= 1, over the variables not yet seen positive
        m = len(wanted)
        cap = sparse.hstack([sparse.csr_array((-np.ones(m), (np.arange(m), wanted)), shape=(m, total)), sparse.eye(m)])
        result = linprog(
            np.concatenate([np.zeros(total), -np.ones(m)]),
            A_ub=cap,
            b_ub=np.zeros(m),
            A_eq=sparse.hstack([sparse.csr_array(A), sparse.csr_array((A.shape[0], m))]),
            b_eq=b,
            bounds=[(0, None)] * total + [(0, 1)] * m,
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.status == 2:
            return None
        assert result.status == 0, result.message
        now = result.x[:n] > 1e-7
        if not (now & ~found).any():
            break
        found |= now
    return found


def conic_least_kl(p, A_eq, b_eq, W, y, linear, square, free=None):
    """min KL(q||p) + sum_i linear_i |Wq - y|_i + square_i (Wq - y)_i^2 with A_eq (q, e) = b_eq, by Clarabel.

    `free` gives further non-negative variables e that occur in A_eq only. Returns (objective, q).
    """
    n, extra = len(p), 0 if free is None else free
    absolute = np.flatnonzero(linear > 0)
    squared = np.flatnonzero(square > 0)
    m, s = len(absolute), len(squared)
    # variables: q (n), t (n) with t >= q log(q / p), e (extra), u (m) >= |.|, v (s) = (Wq - y)
    width = 2 * n + extra + m + s

    def block(q=None, t=None, e=None, u=None, v=None):
        """Rows of the constraints, dense: these problems are small, and sparse blocks take long to put together."""
        height = next(len(x) for x in (q, t, e, u, v) if x is not None)
        columns = zip((q, t, e, u, v), (n, n, extra, m, s), strict=True)
        return np.hstack([np.zeros((height, w)) if x is None else x for x, w in columns])

    eye = np.eye
    rows, right = [block(q=np.ones((1, n)))], [np.ones(1)]
    if len(b_eq):
        rows.append(block(q=A_eq[:, :n], e=A_eq[:, n:] if extra else None))
        right.append(b_eq)
    if s:
        rows.append(block(q=W[squared], v=-eye(s)))
        right.append(y[squared])
    cones = [clarabel.ZeroConeT(sum(len(x) for x in right))]
    if extra:
        rows.append(block(e=-eye(extra)))
        right.append(np.zeros(extra))
        cones.append(clarabel.NonnegativeConeT(extra))
    if m:
        rows += [block(q=W[absolute], u=-eye(m)), block(q=-W[absolute], u=-eye(m))]
        right += [y[absolute], -y[absolute]]
        cones.append(clarabel.NonnegativeConeT(2 * m))
    # the cone is {(x, y, z): y exp(x / y) <= z}: with x = -t, y = q, z = p that is t >= q log(q / p)
    for j in range(n):
        unit = eye(1, n, j)
        rows += [block(t=unit), block(q=-unit), np.zeros((1, width))]
        right += [np.zeros(1), np.zeros(1), np.array([p[j]])]
        cones.append(clarabel.ExponentialConeT())
    quadratic = np.concatenate([np.zeros(2 * n + extra + m), 2 * square[squared]])
    price = np.concatenate([np.zeros(n), np.ones(n), np.zeros(extra), linear[absolute], np.zeros(s)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = 1e-10
    settings.tol_feas = 1e-10
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = 1e-7
    settings.reduced_tol_feas = 1e-7
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.diags(quadratic)),
        price,
        sparse.csc_matrix(np.vstack(rows)),
        np.concatenate(right),
        cones,
        settings,
    ).solve()
    assert str(solution.status) in ("Solved", "AlmostSolved"), solution.status
    x = np.array(solution.x)
    return float(solution.obj_val), np.maximum(x[:n], 0.0)


def oracle_map(case, n0):
    """The optimum of MAP's objective, or None when the exact answers cannot all hold. Returns (objective, q)."""
    linear, square = costs(case, n0)
    rigid = np.isinf(linear)
    held = case.p > 0
    W, y = case.W, case.y
    A, b = W[rigid], y[rigid]
    if rigid.any():
        ones = np.ones((1, held.sum()))
        allowed = possible_support(np.vstack([A[:, held], ones]), np.append(b, 1.0), int(held.sum()))
        if allowed is None:
            return None
        held[np.flatnonzero(held)[~allowed]] = False
        # rows that the others imply make an interior-point method stumble
        A, b = independent(np.vstack([np.ones((1, held.sum())), A[:, held]]), np.append(1.0, b))
        A, b = A[1:], b[1:]
    else:
        A = A[:, held]
    # what no row can reach is a constant; the solver is not bothered with it
    reach = (W[:, held].sum(axis=1) > 0) & ~rigid
    value, q_held = conic_least_kl(case.p[held], A, b, W[reach][:, held], y[reach], linear[reach], square[reach])
    alone = ~reach & ~rigid
    constant = float(linear[alone] @ np.abs(y[alone]) + square[alone] @ y[alone] ** 2)
    q = np.zeros(len(case.p))
    q[held] = q_held / q_held.sum()
    return n0 * (value + constant), q


def independent(A, b):
    """Rows of A that are no combination of earlier ones; the dropped ones must agree with b."""
    kept = []
    for i in range(len(A)):
        if np.linalg.matrix_rank(A[[*kept, i]]) > len(kept):
            kept.append(i)
        else:
            combination = np.linalg.lstsq(A[kept].T, A[i], rcond=None)[0]
            assert abs(combination @ b[kept] - b[i]) < 1e-9, "contradicting equations passed the feasibility check"
    return A[kept], b[kept]


def oracle_radius(case):
    """min |Wz - y|_1 in its dual form: max lam.y - mu with (W' lam)_j <= mu and |lam| <= 1."""
    held = case.p > 0
    W, y = case.W[:, held], case.y
    result = linprog(
        np.append(-y, 1.0),
        A_ub=np.hstack([W.T, -np.ones((int(held.sum()), 1))]),
        b_ub=np.zeros(int(held.sum())),
        bounds=[(-1, 1)] * len(y) + [(None, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert result.status == 0
    return -float(result.fun)


def oracle_two_stage(case):
    """(r*, least KL within r*, q). The optimal set of stage 1 is a face of the polyhedron
    {(z, below, above) >= 0: Wz + below - above = y, sum z = 1}, given by the variables that are zero all over it.
    """
    radius = oracle_radius(case)
    held = np.flatnonzero(case.p > 0)
    W, y = case.W[:, held], case.y
    n, m = len(held), len(y)
    A = np.vstack(
        [
            np.hstack([W, np.eye(m), -np.eye(m), np.zeros((m, 1))]),
            np.concatenate([np.ones(n), np.zeros(2 * m + 1)]),
            np.concatenate([np.zeros(n), np.ones(2 * m + 1)]),  # the last variable is what is left of the radius
        ]
    )
    allowed = possible_support(A, np.concatenate([y, [1.0, radius + 1e-10]]), n + 2 * m)
    rows, slack = allowed[:n], np.flatnonzero(allowed[n:])
    signs = np.hstack([np.eye(m), -np.eye(m)])[:, slack]
    equations = np.hstack([W[:, rows], signs])
    # sum q = 1 comes first and is put in by the cone programme itself
    first = np.concatenate([np.ones(rows.sum()), np.zeros(len(slack))])
    used = np.abs(equations).sum(axis=1) > 0
    A_eq, b_eq = independent(np.vstack([first, equations[used]]), np.append(1.0, y[used]))
    nothing = np.zeros(0)
    value, q_rows = conic_least_kl(
        case.p[held[rows]], A_eq[1:], b_eq[1:], np.zeros((0, rows.sum())), nothing, nothing, nothing, free=len(slack)
    )
    q = np.zeros(len(case.p))
    q[held[rows]] = q_rows / q_rows.sum()
    return radius, value, q


def pair_distances(p, q, pairs=None):
    """Distances between the two-way tables of two distributions, table by table; of all pairs that both have."""
    pairs = pairs or list(
        itertools.combinations([name for name in p.schema.coded if name in p.codes and name in q.codes], 2)
    )
    return np.array([np.abs(p.project(pair) - q.project(pair)).sum() for pair in pairs])
