"""What every test shares: no cache, and how hard hypothesis tries."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Before cuvil is imported: tests neither read nor fill a cache, but for those that set one up themselves.
os.environ["CUVIL_CACHE"] = "0"
os.environ.pop("CUVIL_CACHE_DIR", None)

# Compiling is part of the first example, so no deadline. "quick" is for a second Python; on CI the
# examples are the same in every run.
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", **_common)
settings.register_profile("quick", max_examples=10, derandomize=True, **_common)
settings.register_profile("ci", derandomize=True, **_common)
settings.load_profile(
    os.environ.get("CUVIL_TEST_PROFILE") or ("ci" if os.environ.get("CI") == "true" else "default")
)

# Made by tests/run.sh; a report left over from an earlier run says nothing about this one.
collect_ignore = [] if os.environ.get("CUVIL_TEST_REPORTS") else ["test_reports.py"]
