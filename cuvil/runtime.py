"""Devices and threads."""

from __future__ import annotations

from typing import NamedTuple

from cuvil import _cuvil

__all__ = ["Device", "list_devices", "num_threads", "set_num_threads", "wait_for_compilation"]


class Device(NamedTuple):
    """Something that can run compiled code.

    Attributes
    ----------
    kind : {"cpu", "cuda"}
    index : int
        Number among the devices of its kind.
    name : str
        What the maker calls it.
    cores : int
        Physical cores of a CPU that this process may use; 0 for others.
    threads : int
        Hardware threads of a CPU that this process may use; 0 for others.
    vector_extensions : tuple of str
        Of a CPU, narrow to wide.
    l1_data_bytes, l2_bytes, l3_bytes : int
        Caches of a CPU, in bytes; 0 where unknown.
    memory_bytes : int
    sm : int
        Compute capability of a CUDA device, 90 for sm_90; 0 for others.
    """

    kind: str
    index: int  # type: ignore[assignment]  # instead of tuple's method
    name: str
    cores: int = 0
    threads: int = 0
    vector_extensions: tuple[str, ...] = ()
    l1_data_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    memory_bytes: int = 0
    sm: int = 0

    def __str__(self) -> str:
        memory = f"{self.memory_bytes / 2**30:.1f} GiB"
        if self.kind == "cuda":
            return f"cuda:{self.index}  {self.name}, sm_{self.sm}, {memory}"
        caches = ", ".join(
            f"{level} {size >> 10} KiB"
            for level, size in (("L1d", self.l1_data_bytes), ("L2", self.l2_bytes), ("L3", self.l3_bytes))
            if size
        )
        parts = [self.name, f"{self.cores} cores, {self.threads} threads"]
        parts += [" ".join(self.vector_extensions), caches, memory]
        return "cpu  " + "; ".join(part for part in parts if part)


def list_devices() -> list[Device]:
    """All devices of this machine: the CPU, then CUDA devices if there is a driver.

    Examples
    --------
    >>> import cuvil
    >>> cuvil.runtime.list_devices()[0].kind
    'cpu'
    """
    cpu = _cuvil.cpu()
    devices = [
        Device(
            kind="cpu",
            index=0,
            name=cpu["name"],
            cores=cpu["cores"],
            threads=cpu["threads"],
            vector_extensions=tuple(cpu["vector_extensions"]),
            l1_data_bytes=cpu["l1_data_bytes"],
            l2_bytes=cpu["l2_bytes"],
            l3_bytes=cpu["l3_bytes"],
            memory_bytes=cpu["memory_bytes"],
        )
    ]
    devices += [
        Device(kind="cuda", index=d["index"], name=d["name"], memory_bytes=d["memory_bytes"], sm=d["sm"])
        for d in _cuvil.cuda()
    ]
    return devices


def set_num_threads(n: int) -> None:
    """Let one call use up to ``n`` threads, the calling one included.

    The default is the number of CPUs that the process may use, or ``CUVIL_NUM_THREADS``. Results do
    not depend on it.

    Raises
    ------
    ValueError
        If ``n`` is no int from 1 to 1024.
    """
    _cuvil.set_num_threads(n)


def num_threads() -> int:
    """How many threads one call may use."""
    return _cuvil.num_threads()


def wait_for_compilation() -> None:
    """Return when all functions that have been called have their machine code.

    A first call is interpreted while its machine code is made on another thread, and later calls are until
    that is there. Timings of a function that is ready start behind this. At exit Cuvil waits by itself, so
    that later processes find the code in the cache; a process that leaves by ``os._exit`` must ask for it.

    Examples
    --------
    >>> import cuvil, numpy as np
    >>> f = cuvil.jit(lambda x: x * 2)
    >>> f(np.arange(3.0))
    array([0., 2., 4.])
    >>> cuvil.runtime.wait_for_compilation()
    """
    _cuvil.settle()
