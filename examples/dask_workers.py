"""Dask workers: a compiled function runs in other processes, and is compiled once for all of them.

Scores the chunks of a large array on a ``LocalCluster`` of two worker processes. The function travels to them
with its source; the machine code does not, but what one worker compiled the others find in the cache on disk.
"""

from __future__ import annotations

import os
import tempfile

import cuvil
import numpy as np
from distributed import Client, LocalCluster

ROWS, FEATURES, CHUNKS = 4000, 32, 16
weights = np.random.default_rng(0).standard_normal(FEATURES).astype(np.float32)


def load(chunk: int) -> np.ndarray:
    """Stands for reading a part of the data, which is best done where it is used."""
    return np.random.default_rng(chunk).standard_normal((ROWS, FEATURES)).astype(np.float32)


@cuvil.jit(shape_hint={"x": ("rows", FEATURES)})
def score(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-(x @ weights)))


def main() -> None:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        chunks = client.map(load, range(CHUNKS))
        client.submit(score, chunks[0]).result()  # one compiles, before all start at once
        result = np.concatenate(client.gather(client.map(score, chunks, pure=False)))
        caches = client.run(cuvil.cache.info)  # what each worker did with the cache

    expected = score.__wrapped__(np.concatenate([load(k) for k in range(CHUNKS)]))
    difference = np.abs(result - expected).max()
    print(f"{len(result)} rows in {CHUNKS} chunks on {len(caches)} workers")
    print(f"largest difference from NumPy: {difference:.1e}")
    if difference > 1e-6:
        raise SystemExit("the scores differ from NumPy's")
    compiled = sum(cache.misses for cache in caches.values())
    found = sum(cache.hits for cache in caches.values())
    print(f"in the whole cluster: {compiled} compiled, {found} found in the cache")


if __name__ == "__main__":
    # A cache of its own, so that each run shows the same; the workers inherit the variables.
    with tempfile.TemporaryDirectory() as directory:
        os.environ.update(CUVIL_CACHE="1", CUVIL_CACHE_DIR=directory)
        main()
