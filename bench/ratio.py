"""Interleaved timing of peers: A B A B ..., medians, and ratios within one run.

Machines are shared and change speed from minute to minute; only ratios between peers that took turns in
the same run mean something. (pytest-benchmark times each test on its own, one after the other.)
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping


def interleaved_us(
    peers: Mapping[str, Callable[[], object]], repeats: int = 15, seconds: float = 0.01
) -> dict[str, float]:
    """Median time of one call of each peer, in microseconds.

    Each of ``repeats`` rounds gives every peer a slice of about ``seconds``.
    """
    loops = {}
    for call in peers.values():
        call()
    if "cuvil" in sys.modules:  # which interprets first calls
        sys.modules["cuvil"].runtime.wait_for_compilation()
    for name, call in peers.items():
        call()
        start = time.perf_counter()
        call()
        call()
        loops[name] = max(1, int(seconds / max((time.perf_counter() - start) / 2, 1e-8)))
    samples: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(repeats):
        for name, call in peers.items():
            n = loops[name]
            start = time.perf_counter()
            for _ in range(n):
                call()
            samples[name].append((time.perf_counter() - start) / n * 1e6)
    return {name: statistics.median(s) for name, s in samples.items()}


def print_table(title: str, rows: Mapping[str, Mapping[str, float]], of: str = "cuvil") -> None:
    """A table of microseconds a call and of ``of``'s time relative to each peer's."""
    peers = list(next(iter(rows.values())))
    others = [p for p in peers if p != of]
    print(title)
    print(
        f"{'':<28}"
        + "".join(f"{p + ', us':>14}" for p in peers)
        + "".join(f"{of + ' / ' + p:>16}" for p in others)
    )
    for name, times in rows.items():
        print(
            f"{name:<28}"
            + "".join(f"{times[p]:>14.2f}" for p in peers)
            + "".join(f"{times[of] / times[p]:>16.2f}" for p in others)
        )
    print()
