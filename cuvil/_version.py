"""The one place of the version; CMake and the package metadata read it from here."""

__version__ = "0.1.0"
