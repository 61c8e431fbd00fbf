#!/usr/bin/env bash
# Checks dtrain on the GPU of this machine, without Bazel: every operation against the oracle, the same under
# compute-sanitizer, training jobs against the processor, and speeds beside their limits. docs/gpu.md has the
# details. Needs a bundle of scripts/gpu_bundle.sh, python3 and cuBLAS.
#   scripts/gpu_check.sh [BUNDLE] [--only ops|sanitizer|jobs|bench]... [--out DIR] [--minutes 9.5]
# Run it in the repository's root. BUNDLE is gpu-bundle by default. DIR is run/gpu-check by default;
# gpu_check.json, gpu_check.txt and logs.tar.gz are written there. Ends with `N passed, N failed, N skipped`;
# exits non-zero if something failed or if there is no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v python3 >/dev/null; then
  echo "gpu_check: there is no python3" >&2
  exit 1
fi
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
exec python3 scripts/gpu_check/gpu_check.py "$@"
