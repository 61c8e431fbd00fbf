#!/usr/bin/env bash
# scripts/drawn_tables.sh [--keep DIR] [FIRST LAST ..]
#
# Tries `dtrain init`, check, local, eval and predict on tables that are drawn by the seeds FIRST to LAST (1 to 3000), as
# cmd/test/drawn_tables_test.cc does with a few. Prints what init refuses and why, then each seed at fault with what was
# seen and what was drawn, then their numbers. --keep copies the files of seeds at fault or refused to DIR/SEED. Exits
# non-zero if a seed is at fault.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --keep ]; then
  mkdir -p "${2:?--keep: which directory?}"
  DTRAIN_DRAWN_KEEP=$(realpath "$2")
  export DTRAIN_DRAWN_KEEP
  shift 2
fi
export DTRAIN_DRAWN_TABLES="${*:-1 3000}"
exec bazel run //cmd/test:drawn_tables_test </dev/null
