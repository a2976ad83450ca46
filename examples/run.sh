#!/usr/bin/env bash
# Installs what is missing, builds Cuvil, and runs the examples.
set -euo pipefail
# shellcheck source=examples/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

setup_system build
setup_venv examples
setup_package

for example in quickstart digits dask_workers; do
  printf '\n== examples/%s.py\n' "$example"
  "$venv/bin/python" "examples/$example.py"
done
