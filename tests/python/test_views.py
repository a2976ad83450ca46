"""Programs in which views or memory were once taken for something else, each as short as it can be."""

from __future__ import annotations

import cuvil
import differential as d
import numpy as np
import pytest


def write_into_a_concatenation(a, b):
    t = np.concatenate([a, b], axis=1)
    t[0] = t[-1]
    t[::-1] = t
    return t


def view_made_before_a_write(a, b):
    t = b[2:]
    b[:-1] = b[1:]
    return np.flip(t, 1)


def write_into_a_reshape(a, b):
    t = a.reshape(-1, 3)
    t[0] = t[-1]
    return t, t.T


def reshape_of_a_flip(a, b):
    t = np.flip(b, 1)
    s = t.reshape(t.shape[1], t.shape[0])
    b[0, 0] = 7
    return s, s.sum(axis=0)


def reshape_to_sizes_that_may_be_equal(a, b):
    t = b.reshape(b.shape[1], b.shape[0])
    t += 1
    return t


def ravel_of_even_gaps(a, b):
    return a[:, ::2].ravel(), a.ravel(), b.T.ravel()


PROGRAMS = [
    write_into_a_concatenation,
    view_made_before_a_write,
    write_into_a_reshape,
    reshape_of_a_flip,
    reshape_to_sizes_that_may_be_equal,
    ravel_of_even_gaps,
]


@pytest.mark.parametrize("layout", ["c", "f", "negative", "strided"])
@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda f: f.__name__)
def test_views(fn, layout):
    """One function for all sizes: from the second call on they are symbolic."""
    compiled = cuvil.jit(fn)
    rng = np.random.default_rng(5)
    for rows, columns in ((6, 6), (3, 9), (6, 9), (9, 9), (9, 3)):
        base = np.arange(float(rows * columns)).reshape(rows, columns)
        args = [d.laid_out(rng, base, layout), d.laid_out(rng, -base, layout)]
        d.check(fn, *args, compiled=compiled)
