#!/usr/bin/env bash
# Runs all checks, or only the named parts: `scripts/check_all.sh tsan`. The parts, in order:
#   check              format, build, unit tests
#   tests              every test
#   no-cuda            a build without CUDA
#   asan, ubsan, tsan  every test again with that sanitizer
#   fuzz               long rounds of the fuzz targets with ASan and UBSan: frames, sequences, checkpoints, texts
#   chaos              CHAOS_MINUTES (10) of random disturbances
# ThreadSanitizer's suppressions and their reasons: base/tsan_suppressions.cc.
set -euo pipefail
cd "$(dirname "$0")/.."

parts=("$@")
((${#parts[@]})) || parts=(check tests no-cuda asan ubsan tsan fuzz chaos)
for part in "${parts[@]}"; do
  echo "check_all: $part"
  case $part in
    check) scripts/check.sh ;;
    tests) scripts/test.sh ;;
    no-cuda) CUDA_HOME=/nonexistent bazel build //cmd:dtrain </dev/null ;;
    asan | ubsan | tsan) scripts/test.sh "--config=$part" ;;
    fuzz)
      bazel build --config=asan --config=ubsan //fuzz:rounds </dev/null
      rounds=$(bazel info --config=asan --config=ubsan bazel-bin 2>/dev/null </dev/null)/fuzz/rounds
      "$rounds" --runs 1000000 fuzz/testdata codec
      "$rounds" --runs 100000 fuzz/testdata
      ;;
    chaos)
      scripts/chaos.sh --minutes "${CHAOS_MINUTES:-10}"
      bazel test //cmd/test:recovery_test --test_env=DTRAIN_RECOVERY_ROUNDS=30 </dev/null
      ;;
    *)
      sed -n '2,8s/^# //p' "$0" >&2
      exit 2
      ;;
  esac
done
echo "check_all: fine"
