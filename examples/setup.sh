# Set-up shared by examples/run.sh, tests/run.sh and tests/check_wheel.sh; sourced, not run.
#
#   source examples/setup.sh
#   setup_system build|tests Debian packages that are missing
#   setup_venv <extra>...    .venv with the build requirements and the named extras of pyproject.toml
#   setup_package            dist/<wheel> from the sources, installed into .venv; skipped if unchanged
#
# CUVIL_PYTHON chooses the interpreter (default python3), CUVIL_WERROR=ON makes warnings errors (the
# default where CI=true).
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
python=${CUVIL_PYTHON:-python3}
venv=$root/.venv
logs=$root/build/logs
dist=$root/dist
if [[ ${CI:-} == true ]]; then
  export CUVIL_WERROR=${CUVIL_WERROR:-ON}
fi

# Nothing of the caller's environment may put another cuvil before the one that is installed.
unset PYTHONPATH PYTHONHOME

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# progress <process> <log>: while it runs, how far the build is ("[57/153]" in its log) at the cursor.
progress() {
  local at
  while kill -0 "$1" 2>/dev/null; do
    at=$(grep -oE '\[[0-9]+/[0-9]+\]' "$2" 2>/dev/null | tail -n 1)
    printf '%9s\033[9D' "$at"
    sleep 0.5
  done
  printf '%9s\033[9D' ''
}

# step <title> <command>...: runs it with its output in build/logs and prints one line with the time
# it took; when it fails, the end of its output. Never called in a condition (`step ... || ...`): the
# shell would then ignore `set -e` inside the step, and a failure in its middle.
step() {
  local title=$1 log start end status=0
  shift
  mkdir -p "$logs"
  log=$logs/${title//[^A-Za-z0-9.]/-}.log
  printf '%-58s' "$title"
  start=${EPOCHREALTIME/[^0-9]/}
  set +e
  if [[ -t 1 ]]; then
    (set -e; "$@") >"$log" 2>&1 &
    progress $! "$log"
    wait $!
  else
    (set -e; "$@") >"$log" 2>&1
  fi
  status=$?
  set -e
  end=${EPOCHREALTIME/[^0-9]/}
  printf '%7d.%d s' $(((end - start) / 1000000)) $(((end - start) / 100000 % 10))
  if ((status == 0)); then
    printf '\n'
  else
    printf '  failed\n'
    tail -n 60 "$log"
    printf 'The whole output is in %s\n' "$log"
  fi
  return "$status"
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "Cannot install packages: neither root nor sudo. By hand: $*"
  fi
}

# missing_packages build|tests: one a line. Each is known by what it brings, so that what a user has
# from elsewhere counts too.
missing_packages() {
  command -v g++ >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v llvm-config-19 >/dev/null || [[ -n ${CUVIL_LLVM_CONFIG:-} ]] || echo llvm-19-dev
  command -v ld.lld-19 >/dev/null || command -v ld.lld >/dev/null || echo lld-19
  [[ -e /usr/include/xxhash.h || -e /usr/local/include/xxhash.h ]] || echo libxxhash-dev
  if [[ $(command -v "$python") == /usr/bin/* || $(readlink -f "$(command -v "$python")") == /usr/bin/* ]]; then
    "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || echo python3-dev
  fi
  if [[ ${1:-} == tests ]]; then
    [[ -e /usr/include/gtest/gtest.h || -e /usr/local/include/gtest/gtest.h ]] || echo libgtest-dev
    command -v valgrind >/dev/null || echo valgrind
    [[ -e /usr/include/mpfr.h || -e /usr/local/include/mpfr.h ]] || echo libmpfr-dev
  fi
}

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

setup_system() {
  command -v "$python" >/dev/null || die "No $python found. Install Python 3.10 or newer, or set CUVIL_PYTHON."
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "$python is older than 3.10; set CUVIL_PYTHON to a newer one."
  local packages
  mapfile -t packages < <(missing_packages "$@")
  ((${#packages[@]})) || return 0
  command -v apt-get >/dev/null ||
    die "These are missing, and there is no apt-get to install them: ${packages[*]}"
  step "Install ${#packages[@]} Debian packages" install_packages "${packages[@]}"
}

# requirements <extra>...: what pyproject.toml asks for, one a line. The reader of TOML is pip's own
# where Python has none.
requirements() {
  "$venv/bin/python" - "$@" <<'PY'
import sys

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)
wanted = project["build-system"]["requires"] + project["project"]["dependencies"]
for extra in sys.argv[1:]:
    wanted += project["project"]["optional-dependencies"][extra]
print("\n".join(wanted))
PY
}

# identity <interpreter>: changes when another Python takes its place.
identity() {
  "$1" -c 'import sys; print(sys.version, sys.base_prefix)'
}

setup_venv() {
  local have="" wanted
  if [[ -x $venv/bin/python ]]; then
    have=$(identity "$venv/bin/python" 2>/dev/null) || true
  fi
  if [[ $have != "$(identity "$python")" ]]; then
    rm -rf "$venv"
    step "Create .venv ($("$python" -V))" "$python" -m venv "$venv"
  fi
  wanted=$(requirements "$@" | sort -u)
  # What an earlier call has installed may be more than is wanted now.
  touch "$venv/cuvil-requirements"
  if [[ -n $(comm -23 <(printf '%s\n' "$wanted") "$venv/cuvil-requirements") ]]; then
    mapfile -t wanted_list <<<"$wanted"
    step "Install the Python requirements" "$venv/bin/python" -m pip install -q "${wanted_list[@]}"
    sort -u -o "$venv/cuvil-requirements" - "$venv/cuvil-requirements" <<<"$wanted"
  fi
}

python_tag() {
  "$1" -c 'import sys; print("cp%d%d" % sys.version_info[:2])'
}

# The build folder of the package is kept, so that a rebuild compiles what changed.
package_build() {
  printf 'build/package-%s' "$(python_tag "$venv/bin/python")"
}

package_state() {
  identity "$venv/bin/python"
  echo "${CUVIL_WERROR:-OFF}"
  find cuvil native CMakeLists.txt pyproject.toml README.md LICENSE -type f \
    -not -path '*/__pycache__/*' -not -name '*.so' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
}

build_package() {
  mkdir -p "$dist"
  rm -f "$dist"/cuvil-*-"$(python_tag "$venv/bin/python")"-*.whl
  # The active environment is the one whose cmake, ninja and NumPy are used.
  PATH=$venv/bin:$PATH "$venv/bin/python" -m pip wheel -v --no-build-isolation --no-deps -w "$dist" \
    --config-settings="build-dir=$(package_build)" \
    --config-settings="cmake.define.CUVIL_WERROR=${CUVIL_WERROR:-OFF}" .
  "$venv/bin/python" -m pip install -q --no-deps --force-reinstall \
    "$dist"/cuvil-*-"$(python_tag "$venv/bin/python")"-*.whl
}

setup_package() {
  local state
  state=$(package_state | sha256sum)
  if [[ -e $venv/cuvil-state && $(<"$venv/cuvil-state") == "$state" ]]; then
    return 0
  fi
  rm -f "$venv/cuvil-state"
  step "Build and install the package" build_package
  printf '%s\n' "$state" >"$venv/cuvil-state"
}
