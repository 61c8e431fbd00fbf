#!/usr/bin/env bash
# Everything: check.sh, every test, a build without CUDA, every test again under ASan, UBSan and TSan, and
# CHAOS_MINUTES (10) of random disturbances.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/check.sh
scripts/test.sh
echo "check_all: without CUDA"
CUDA_HOME=/nonexistent bazel build //cmd:dtrain </dev/null
for sanitizer in asan ubsan tsan; do
  echo "check_all: $sanitizer"
  scripts/test.sh "--config=$sanitizer"
done
echo "check_all: chaos"
scripts/chaos.sh --minutes "${CHAOS_MINUTES:-10}"
bazel test //cmd/test:recovery_test --test_env=DTRAIN_RECOVERY_ROUNDS=30 </dev/null
echo "check_all: fine"
