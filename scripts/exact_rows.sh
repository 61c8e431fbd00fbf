#!/usr/bin/env bash
# scripts/exact_rows.sh [--split SPLIT] [--undisturbed] [FIRST LAST]
#
# Runs jobs that are drawn by the seeds FIRST to LAST (1 to 1000), as cmd/test/exact_rows_test.cc does with a few: kills and
# stops tasks, and checks that each row of each epoch was applied once on every ps. Two seeds take about a second. SPLIT is
# data.split (dynamic). --undisturbed: nobody is killed. With shard only such runs are exact. Prints a line for each seed, and
# of one at fault its job; exits non-zero if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

split=dynamic harm=harm
while [[ ${1:-} == --* ]]; do
  case $1 in
    --split) split=${2:?--split: which?} && shift ;;
    --undisturbed) harm=none ;;
    *)
      sed -n '2,7s/^# //p' "$0" >&2
      exit 2
      ;;
  esac
  shift
done
export DTRAIN_EXACT_ROWS="${1:-1} ${2:-1000} $split $harm"
exec bazel run //cmd/test:exact_rows_test -- --test-case='*of every epoch*' </dev/null
