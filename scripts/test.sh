#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test, and ends with `N passed, N failed, N skipped`
# (test cases). Flags are Bazel's: `scripts/test.sh --config=asan`.
# Exits non-zero when a test failed, the build failed, or no test ran.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

scripts/install.sh --tests || exit 1

# Tests on MNIST run if the data is beside the checkout; otherwise they report why they are skipped.
if [ -d ../shared/data ]; then
  DTRAIN_SHARED_DATA=$(cd ../shared/data && pwd)
  export DTRAIN_SHARED_DATA
fi

# Kept between runs; a test that does not find it installs its own.
if [ -n "${HOME:-}" ]; then
  DTRAIN_TEST_PYTHON=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/test_python
  scripts/test_python.sh "$DTRAIN_TEST_PYTHON" && export DTRAIN_TEST_PYTHON
fi

# Tests wait more than they compute: two of them share a processor, and they begin while others are compiled.
bazel test --keep_going '--jobs=HOST_CPUS*2' '--local_cpu_resources=HOST_CPUS*2' "$@" //... </dev/null
bazel_status=$?
if [ "$bazel_status" -eq 1 ]; then
  echo "the build failed" >&2
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi

# Those that .bazelrc leaves out have no result.
tests='tests(//...)'
[[ " $* " == *" --config=tsan "* ]] && tests+=' except attr(tags, no_tsan, tests(//...))'
logs=$(bazel info "$@" bazel-testlogs 2>/dev/null </dev/null)
bazel query "$tests" 2>/dev/null </dev/null | scripts/count_cases.sh "$logs" && [ "$bazel_status" -eq 0 ]
