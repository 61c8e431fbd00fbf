#!/usr/bin/env bash
# scripts/replica_kills.sh [FIRST LAST]
#
# Runs jobs with failure.replicas that are drawn by the seeds FIRST to LAST (1 to 300), as cmd/test/replica_test.cc does with
# a few: kills ps with kill -9 at random moments, ps 0 in half of the kills, in a third of the jobs a worker too, and checks that no update is lost
# or applied twice. A seed takes about 3 s; 15 that follow each other have each model in each mode. Prints a line for each
# seed; exits non-zero if one is at fault.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == -* ]]; then
  sed -n '2,7s/^# //p' "$0" >&2
  exit 2
fi
export DTRAIN_REPLICA_KILLS="${1:-1} ${2:-300}"
bazel build //cmd/test:replica_test
# Not by bazel run, behind which the last lines may be missing.
cd bazel-bin/cmd/test/replica_test.runfiles/dtrain
TEST_TMPDIR=$(mktemp -d)
export TEST_TMPDIR
trap 'rm -rf "$TEST_TMPDIR"' EXIT
cmd/test/replica_test --test-case='*no update is lost*' </dev/null
