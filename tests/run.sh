#!/usr/bin/env bash
# Installs what is missing, builds Cuvil and its native tests, and runs every test and check. The last
# line is pytest's count over all of them.
#
#   CUVIL_PYTHON=python3.12   the interpreter to build for (default python3)
#   CUVIL_PYTHONS="..."       further interpreters for the quick run; "" for none (default: one found)
set -euo pipefail
# shellcheck source=examples/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../examples/setup.sh"

reports=$root/build/reports

build_native_tests() {
  PATH=$venv/bin:$PATH cmake "$(package_build)" -DCUVIL_BUILD_TESTS=ON
  PATH=$venv/bin:$PATH cmake --build "$(package_build)" --target cuvil_tests
}

# GoogleTest's reports are read by tests/test_reports.py, which knows what to say about a failure.
run_native_tests() {
  mkdir -p "$reports/native"
  (cd "$(package_build)" && ctest -N | sed -n 's/^ *Test *#[0-9]*: //p') >"$reports/native/expected"
  GTEST_OUTPUT="json:$reports/native/" ctest --test-dir "$(package_build)" -j "$(nproc)" --output-on-failure ||
    true
}

# other_python: the first interpreter found that is neither too old nor the one of .venv.
other_python() {
  local version candidate
  for version in 3.13 3.10 3.12 3.11; do
    for candidate in "$(command -v "python$version" || true)" "$HOME"/.pyenv/versions/"$version".*/bin/python; do
      if [[ -x $candidate && $("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) == "$version" &&
        $(python_tag "$candidate") != "$(python_tag "$venv/bin/python")" ]]; then
        printf '%s\n' "$candidate"
        return 0
      fi
    done
  done
}

# The compiler library serves every Python: only the thin extension is built anew.
thin_build() {
  local other=$1 tag=$2
  local other_venv=$root/build/venv-$tag
  [[ -x $other_venv/bin/python ]] || "$other" -m venv "$other_venv"
  if [[ ! -e $other_venv/ready ]]; then
    "$other_venv/bin/python" -m pip install -q 'numpy>=2.0' pytest hypothesis
    touch "$other_venv/ready"
  fi
  cmake -S . -B "build/thin-$tag" -G Ninja -DCUVIL_COMPILER=OFF -DPython_EXECUTABLE="$other_venv/bin/python"
  cmake --build "build/thin-$tag"
  ln -sf "$root/$(package_build)"/python/cuvil/libcuvil_*.so "build/thin-$tag/python/cuvil/"
}

thin_run() {
  local tag=$1
  PYTHONPATH=$root/build/thin-$tag/python CUVIL_TEST_PROFILE=quick \
    "$root/build/venv-$tag/bin/pytest" tests/python -q -m "not slow" -p no:cacheprovider \
    --junit-xml="$reports/$tag.xml" || true
}

run_other_pythons() {
  local others other tag
  read -ra others <<<"${CUVIL_PYTHONS-$(other_python)}"
  if ((${#others[@]} == 0)); then
    printf 'A second Python: skipped, none found besides %s (set CUVIL_PYTHONS)\n' "$("$venv/bin/python" -V)"
    return 0
  fi
  for other in "${others[@]}"; do
    tag=$(python_tag "$other")
    printf '%s\n' "$tag" >>"$reports/expected"
    step "Build the extension for $("$other" -V)" thin_build "$other" "$tag"
    step "Quick tests under $("$other" -V)" thin_run "$tag"
  done
}

# The interpreter that runs first calls, alone. (What is about the cache and about machine code is left out.)
interpreted_run() {
  CUVIL_INTERPRET=1 "$venv/bin/pytest" tests/python -q -m "not slow" -p no:cacheprovider \
    --ignore=tests/python/test_cache.py --ignore=tests/python/test_start.py --ignore=tests/python/test_api.py \
    --ignore=tests/python/test_pickle.py --ignore=tests/python/test_doctest.py \
    --junit-xml="$reports/interpreted.xml" || true
}

# (Outside of the root, where Python would find the sources first.)
check_instructions() { (cd bench && "$venv/bin/python" instructions.py --check); }

setup_system tests
setup_venv dev examples
setup_package
rm -rf "$reports"
mkdir -p "$reports"
step "Build the native tests" build_native_tests
step "Run the native tests" run_native_tests
run_other_pythons
echo interpreted >>"$reports/expected"
step "Tests with all calls interpreted" interpreted_run

step "Count the instructions of a call" check_instructions

# Machine code from the first call on; the run under another Python has both, as users do.
export CUVIL_INTERPRET=0
export CUVIL_TEST_REPORTS=$reports
PATH=$venv/bin:$PATH exec "$venv/bin/pytest" -q --continue-on-collection-errors "$@"
