#!/usr/bin/env bash
# Everything: check.sh, every test, a build without CUDA, and every test again under ASan, UBSan and TSan.
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
echo "check_all: fine"
