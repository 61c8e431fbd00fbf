#!/usr/bin/env bash
# Before each commit: format, build, unit tests. About a minute when little has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files --cached --others --exclude-standard '*.h' '*.cc' '*.cu')
clang-format --dry-run -Werror "${sources[@]}"
bazel build //... </dev/null
bazel test --test_size_filters=small //... </dev/null
echo "check: fine"
