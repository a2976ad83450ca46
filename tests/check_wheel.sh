#!/usr/bin/env bash
# Checks the wheel that users get: sizes, symbols, what it needs of the system, and that it works in
# an environment with nothing but NumPy.
set -euo pipefail
# shellcheck source=examples/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../examples/setup.sh"

setup_system build
# shellcheck disable=SC2119
setup_venv
setup_package

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheels=("$dist"/cuvil-*-"$(python_tag "$venv/bin/python")"-*.whl)
if ((${#wheels[@]} != 1)) || [[ ! -e ${wheels[0]} ]]; then
  die "Expected one wheel in dist/, found: ${wheels[*]}"
fi
wheel=${wheels[0]}
"$venv/bin/python" -m zipfile -e "$wheel" "$work/wheel"
extension=$(echo "$work"/wheel/cuvil/_cuvil.*.so)
compiler=$work/wheel/cuvil/libcuvil_compiler.so
backend=$work/wheel/cuvil/libcuvil_backend.so

failed=0
# verdict <ok?> <text>
verdict() {
  if (($1)); then
    printf 'ok      %s\n' "$2"
  else
    printf 'FAILED  %s\n' "$2"
    failed=1
  fi
}

check_size() {
  local bytes
  bytes=$(stat -c %s "$1")
  verdict $((bytes <= $2 * 1000000)) \
    "$(basename "$1"): $((bytes / 1000000)).$(printf '%03d' $((bytes / 1000 % 1000))) MB, at most $2"
}

# check_exports <library> <pattern>: it defines nothing else that others can see.
check_exports() {
  local other
  other=$(nm -D --defined-only "$1" | awk '{print $3}' | grep -Ev "^($2)$" || true)
  verdict $((${#other} == 0)) "$(basename "$1") exports only $2 ${other:+(also: ${other//$'\n'/ })}"
}

# check_imports <library>: all that is undefined is the C library's or Python's. (Weak ones may stay so.)
check_imports() {
  local other
  other=$(nm -D --undefined-only "$1" | awk '$1 == "U" {print $2}' | grep -Ev '@GLIBC_|^_?Py' || true)
  verdict $((${#other} == 0)) "$(basename "$1") needs only libc and Python ${other:+(also: ${other//$'\n'/ })}"
}

# check_glibc <library>: the oldest C library it runs with. The linker binds to the newest symbols of
# the build machine, so this can only hold on one that is not newer than Debian 12.
check_glibc() {
  local newest host
  newest=$(objdump -T "$1" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n 1) || newest=GLIBC_2.0
  host=$(getconf GNU_LIBC_VERSION | cut -d. -f2)
  if ((${newest#GLIBC_2.} <= 35)); then
    verdict 1 "$(basename "$1") runs with glibc ${newest#GLIBC_}"
  elif ((host > 36)); then
    printf 'note    %s\n' "$(basename "$1") built here needs glibc ${newest#GLIBC_}; wheels are built on Debian 12"
  else
    verdict 0 "$(basename "$1") needs $newest, at most 2.35"
  fi
  verdict $(($(readelf -d "$1" | grep -c RELR) == 0)) "$(basename "$1") has no RELR relocations"
}

check_size "$wheel" 20
check_size "$extension" 1
check_size "$compiler" 8
check_size "$backend" 37
check_exports "$extension" 'PyInit__cuvil'
check_exports "$compiler" 'cuvil_compile|cuvil_compiler_[a-z_]+'
check_exports "$backend" 'cuvil_backend_[a-z_]+'
for library in "$extension" "$compiler" "$backend"; do
  check_imports "$library"
  check_glibc "$library"
done

install_empty() {
  "$python" -m venv "$work/venv"
  "$work/venv/bin/python" -m pip install -q "$wheel"
}

smoke() {
  # Two processes: the second is served from the cache that the first one filled.
  cd "$work"
  CUVIL_CACHE_DIR=$work/cache "$work/venv/bin/python" "$root/examples/quickstart.py"
  CUVIL_CACHE_DIR=$work/cache "$work/venv/bin/python" "$root/examples/quickstart.py"
  "$work/venv/bin/python" -m pip list --format=freeze
}

# The oldest NumPy that is promised, where there are wheels of it.
old_numpy() {
  "$work/venv/bin/python" -m pip install -q --only-binary=:all: 'numpy==1.23.5'
  cd "$work"
  "$work/venv/bin/python" "$root/examples/quickstart.py"
}

((failed == 0)) || die "The wheel is not as it should be."
step "Install the wheel beside NumPy alone" install_empty
step "Run the quick start there, twice" smoke
if "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 12))'; then
  step "Run it with NumPy 1.23" old_numpy
else
  printf 'NumPy 1.23: skipped, it has no wheels for %s\n' "$("$python" -V)"
fi
echo "The wheel is as it should be."
