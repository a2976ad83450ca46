"""Counts what ran outside this process: the native tests, and the quick run under another Python.

tests/run.sh runs them, leaves their reports in $CUVIL_TEST_REPORTS, and writes the names of the runs
it started into files called `expected`, so that a run that crashed is a failure and not a gap.
"""

from __future__ import annotations

import json
import os
import pathlib
import xml.etree.ElementTree as ElementTree

import pytest

REPORTS = pathlib.Path(os.environ["CUVIL_TEST_REPORTS"])

# (name, outcome, text); outcome is "passed", "failed" or "skipped".
Case = tuple[str, str, str]


def native_cases(folder: str) -> list[Case]:
    report = REPORTS / "native" / f"test_{folder}.json"
    if not report.exists():
        return [(f"native/{folder}", "failed", f"test_{folder} ended without a report: run it by itself")]
    cases = []
    for suite in json.loads(report.read_text())["testsuites"]:
        for case in suite["testsuite"]:
            name = f"native/{folder}/{case['classname']}.{case['name']}"
            failures = "\n".join(f["failure"] for f in case.get("failures", []))
            ran = case["status"] == "RUN" and case["result"] == "COMPLETED"
            outcome = "failed" if failures else "passed" if ran else "skipped"
            cases.append((name, outcome, failures or "skipped by the test"))
    return cases


def python_cases(tag: str) -> list[Case]:
    report = REPORTS / f"{tag}.xml"
    if not report.exists():
        return [(tag, "failed", f"the run under {tag} ended without a report")]
    cases = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{tag}/{case.get('classname')}.{case.get('name')}"
        bad = [part for part in case if part.tag in ("failure", "error")]
        skipped = [part for part in case if part.tag == "skipped"]
        outcome = "failed" if bad else "skipped" if skipped else "passed"
        text = "\n".join(part.text or part.get("message", "") for part in bad + skipped)
        cases.append((name, outcome, text))
    return cases or [(tag, "failed", f"the run under {tag} ran no test")]


def expected(path: pathlib.Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


CASES = [case for folder in expected(REPORTS / "native/expected") for case in native_cases(folder)]
CASES += [case for tag in expected(REPORTS / "expected") for case in python_cases(tag)]


@pytest.mark.parametrize(("outcome", "text"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_reported(outcome: str, text: str) -> None:
    if outcome == "skipped":
        pytest.skip(text)
    if outcome == "failed":
        pytest.fail(text, pytrace=False)
