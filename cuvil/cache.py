"""The cache of compiled code on disk.

What is compiled is kept in a directory of the user's, one file a specialisation, and found there by later
processes. ``CUVIL_CACHE_DIR`` says where, ``CUVIL_CACHE_MB`` how much, ``CUVIL_CACHE=0`` turns it off, and so
does ``cuvil.jit(cache=False)`` for one function.
"""

from __future__ import annotations

from typing import NamedTuple

from cuvil import _cuvil

__all__ = ["CacheInfo", "clear", "dir", "info"]


class CacheInfo(NamedTuple):
    """What the cache holds, and what this process did with it.

    Attributes
    ----------
    dir : str
    enabled : bool
        Whether ``CUVIL_CACHE`` leaves it on.
    entries : int
        Specialisations on disk.
    bytes : int
        What they take.
    max_bytes : int
        What they may take; the ones not used for the longest time go first.
    hits, misses, evictions : int
        Specialisations that this process found, compiled, and removed to keep to ``max_bytes``.
    """

    dir: str
    enabled: bool
    entries: int
    bytes: int
    max_bytes: int
    hits: int
    misses: int
    evictions: int

    def __str__(self) -> str:
        state = "" if self.enabled else " (off: CUVIL_CACHE=0)"
        return (
            f"{self.dir}{state}\n{self.entries} specialisations, {self.bytes / 2**20:.2f} of "
            f"{self.max_bytes / 2**20:.0f} MiB; this process: {self.hits} hits, {self.misses} misses, "
            f"{self.evictions} evictions"
        )


def dir() -> str:
    """The directory, whether it exists yet or not.

    Raises
    ------
    CacheError
        If neither ``CUVIL_CACHE_DIR`` nor a home directory says where.
    """
    return str(_cuvil.cache_state()["dir"])


def info() -> CacheInfo:
    """What the cache holds now. Waits for machine code that is being made.

    Raises
    ------
    CacheError
        As :func:`dir`.

    Examples
    --------
    >>> import cuvil
    >>> cuvil.cache.info().max_bytes
    536870912
    """
    _cuvil.settle()
    state = _cuvil.cache_state()
    files = _cuvil.cache_files(state["dir"])
    return CacheInfo(entries=len(files), bytes=sum(file["bytes"] for file in files), **state)


def clear() -> int:
    """Remove all compiled code from the cache; functions that run keep theirs.

    Returns
    -------
    int
        How many specialisations were removed.

    Raises
    ------
    CacheError
        If the directory belongs to someone else or others may write to it.
    """
    _cuvil.settle()
    return _cuvil.cache_clear(dir())
