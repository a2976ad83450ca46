"""The errors a user can meet. All derive from :class:`CuvilError`.

Each names the user's file, line and column, shows the line with a caret, and says what was found and
what to do. Where plain Python would have raised, the class is also that exception's.

Examples
--------
>>> issubclass(ShapeError, ValueError)
True
"""

__all__ = [
    "CacheError",
    "CuvilError",
    "CuvilPerformanceWarning",
    "DTypeError",
    "DeviceError",
    "InternalError",
    "OutOfMemoryError",
    "ShapeError",
    "UnsupportedError",
]


class CuvilError(Exception):
    """Base of all errors of Cuvil."""


class UnsupportedError(CuvilError, NotImplementedError):
    """The function uses something that Cuvil does not compile."""


class ShapeError(CuvilError, ValueError):
    """Shapes that do not fit each other, or an argument that does not fit its hint."""


class DTypeError(CuvilError, TypeError):
    """A dtype that Cuvil does not compute with, or that does not fit."""


class DeviceError(CuvilError, RuntimeError):
    """A device that is not there, or cannot run the code."""


class OutOfMemoryError(CuvilError, MemoryError):
    """No memory for a result or an intermediate."""


class CacheError(CuvilError, ValueError):
    """Bytes that are no artifact of this function and this build."""


class InternalError(CuvilError, RuntimeError):
    """A defect of Cuvil or of its installation."""


class CuvilPerformanceWarning(UserWarning):
    """The result is right, but a call runs slower than compiled code would."""
