#!/usr/bin/env bash
# Real runs with random disturbances; see scripts/chaos/chaos.py.
# scripts/chaos.sh [--seed S] [--minutes M] [--steps N] [--deep] [--replicas] [--binary PATH]; without --binary it builds one.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=()
if [[ " $* " != *" --binary"* ]]; then
  bazel build //cmd:dtrain </dev/null
  binary=(--binary "$(bazel info bazel-bin 2>/dev/null </dev/null)/cmd/dtrain")
fi
export PYTHONDONTWRITEBYTECODE=1
exec python3 scripts/chaos/chaos.py "${binary[@]}" "$@"
