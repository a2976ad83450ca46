"""What becomes one kernel, and that the results stay NumPy's."""

from __future__ import annotations

import cuvil
import differential as d
import numpy as np
import pytest


def array(*shape):
    rng = np.random.default_rng(sum(shape))
    return rng.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5) * g + b


def mlp(x, w, b, v, c):
    return np.maximum(x @ w + b, 0) @ v + c


def bordered(x):
    y = np.zeros((10, 10), x.dtype)
    y[1:-1, 1:-1] = x * 2
    return y


X, V = (8, 8), (8,)
# Name: function, shapes of its arguments, the most kernels it may take.
PROGRAMS = {
    "chain": (lambda x, y: np.tanh(x * y + 1) - np.exp(-x) / 2, (X, X), 1),
    "into a reduction": (lambda x: (x * x + 1).sum(), (X,), 1),
    "out of a reduction": (lambda x: np.sqrt((x * x).sum(axis=1)) + 1, (X,), 1),
    "three reductions of one array": (lambda x: (x.sum(1), x.max(1), x.min(1)), (X,), 1),
    "softmax": (softmax, (X,), 4),
    "layer norm": (layer_norm, (X, V, V), 3),
    "standardisation": (lambda x: (x - x.mean(0)) / x.std(0), (X,), 3),
    "rows of length one": (lambda x: x / np.linalg.norm(x, axis=1, keepdims=True), (X,), 2),
    "into a product": (lambda x, w: np.tanh(x) @ w, (X, X), 2),
    "out of a product": (lambda x, w, b: np.maximum(x @ w + b, 0), (X, X, V), 1),
    "two layers": (mlp, (X, X, V, (8, 4), (4,)), 2),
    "used three times": (lambda x: (x + 1, (x + 1) * 2, np.exp(x + 1)), (X,), 1),
    "movement between": (
        lambda x: (x.T * 2)[1:] + x[:, 1:].T.reshape(7, 8)[::-1],
        (X,),
        1,
    ),
    "where and clip": (lambda x: np.where(x > 0, x, np.clip(x, -1, 0) * 0.1), (X,), 1),
    "concatenation": (lambda x, y: np.concatenate([x * 2, y + 1]), (X, X), 2),
    "into a border": (bordered, (X,), 2),
    "nothing to do": (lambda x: x.T[1:], (X,), 0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels(name):
    function, shapes, most = PROGRAMS[name]
    args = [array(*shape) for shape in shapes]
    compiled = cuvil.jit(function)
    d.check(function, *args, tol=(1e-4, 1e-5), compiled=compiled)
    schedule = cuvil.get_compiled_module(compiled).dump_schedule()
    assert len(schedule.kernels) <= most, str(schedule)


def chain(x, weights):
    for w in weights:
        x = np.maximum(x @ w, 0)
    return x


@pytest.mark.parametrize("depth", [2, 3, 6])
def test_memory_of_a_chain(depth):
    """A chain of layers of one size takes turns between two places in the arena."""
    x, weights = array(32, 64), [array(64, 64) * 0.1 for _ in range(depth)]
    compiled = cuvil.jit(chain)
    d.check(chain, x, weights, tol=(1e-4, 1e-5), compiled=compiled)
    plan = cuvil.get_compiled_module(compiled).memory_plan()
    assert plan.largest_activation_bytes == 32 * 64 * 4
    assert plan.arena_bytes <= 2 * plan.largest_activation_bytes, str(plan)
    assert plan.arena_bytes <= 1.02 * plan.lower_bound_bytes


def test_a_dying_operand_is_written_in_place():
    def fn(x):
        y = np.exp(x - x.max())
        return (y / y.sum()).sum(axis=0), y.max()

    x = array(64, 64)
    compiled = cuvil.jit(fn)
    d.check(fn, x, tol=(1e-4, 1e-5), compiled=compiled)
    plan = cuvil.get_compiled_module(compiled).memory_plan()
    assert plan.arena_bytes <= 1.1 * x.nbytes, str(plan)


def test_plan_is_drawn():
    compiled = cuvil.jit(mlp)
    compiled(array(8, 8), array(8, 8), array(8), array(8, 4), array(4))
    plan = cuvil.get_compiled_module(compiled).memory_plan()
    assert plan.svg().startswith("<svg") and plan.svg().endswith("</svg>")
    placed = [b for b in plan.buffers if b.scope == "arena"]
    assert placed and all(b.name in str(plan) for b in plan.buffers)
    for k, b in enumerate(placed):  # alive at once: apart
        for c in placed[k + 1 :]:
            assert (
                b.end <= c.start
                or c.end <= b.start
                or b.offset + b.size <= c.offset
                or (c.offset + c.size <= b.offset)
            )
