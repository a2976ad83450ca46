"""Handwritten digits: scikit-learn trains a small network, Cuvil runs it.

Trains scikit-learn's ``MLPClassifier`` on its ``load_digits`` data, writes the forward pass
(standardisation, two dense layers with bias and ReLU, softmax) as one compiled function over the
model's arrays, checks that it predicts exactly what scikit-learn predicts, and prints what a
prediction costs in scikit-learn, NumPy and Cuvil.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import cuvil
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

BATCH = 64


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def make_forward(model) -> tuple[Callable, Callable]:
    """The forward pass of a fitted scaler + MLP pipeline, plain and compiled."""
    scaler, mlp = model[0], model[1]
    mean = scaler.mean_.astype(np.float32)
    scale = scaler.scale_.astype(np.float32)
    w1, w2 = (w.astype(np.float32) for w in mlp.coefs_)
    b1, b2 = (b.astype(np.float32) for b in mlp.intercepts_)

    def forward(x: np.ndarray) -> np.ndarray:
        h = np.maximum(((x - mean) / scale) @ w1 + b1, 0.0)
        return softmax(h @ w2 + b2)

    return forward, cuvil.jit(forward, shape_hint={"x": ("batch", 64)})


def time_us(call: Callable[[], object], repeats: int = 9, seconds: float = 0.02) -> float:
    """Median time of one call in microseconds."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    loops = max(1, int(seconds / once))
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(loops):
            call()
        samples.append((time.perf_counter() - start) / loops * 1e6)
    return statistics.median(samples)


def main() -> None:
    data, labels = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(
        data, labels, test_size=0.25, random_state=0, stratify=labels
    )
    model = make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=400, random_state=0)).fit(
        x_train, y_train
    )
    plain, compiled = make_forward(model)

    x = x_test.astype(np.float32)
    expected = model.predict(x_test)
    batches = [compiled(x[i : i + BATCH]) for i in range(0, len(x), BATCH)]
    in_batches = np.concatenate(batches).argmax(axis=1)
    one_by_one = np.array([compiled(x[i : i + 1]).argmax() for i in range(len(x))])
    for name, predicted in (("in batches", in_batches), ("one by one", one_by_one)):
        if not np.array_equal(predicted, expected):
            raise SystemExit(f"{name}: predictions differ from scikit-learn's")
    print(
        f"{len(x)} test images, accuracy {np.mean(in_batches == y_test):.3f}; "
        "predictions identical to scikit-learn's, in batches and one by one"
    )
    print()

    sample, batch = x[:1], x[:BATCH]
    rows = []
    for size, arg in (("1 image", sample), (f"{BATCH} images", batch)):
        wide = arg.astype(np.float64)
        sklearn_us = time_us(lambda a=wide: model.predict_proba(a))
        numpy_us = time_us(lambda a=arg: plain(a))
        cuvil_us = time_us(lambda a=arg: compiled(a))
        rows.append((size, sklearn_us, numpy_us, cuvil_us))
    print(f"{'latency, us':<12} {'scikit-learn':>12} {'NumPy':>9} {'Cuvil':>9} {'Cuvil / NumPy':>14}")
    for size, s, n, c in rows:
        print(f"{size:<12} {s:>12.1f} {n:>9.1f} {c:>9.1f} {c / n:>14.2f}")
    print()
    print(cuvil.get_compiled_module(compiled).dump_schedule())


if __name__ == "__main__":
    main()
