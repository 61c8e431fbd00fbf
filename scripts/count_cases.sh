#!/usr/bin/env bash
# Counts the test cases in the logs of Bazel's tests: `count_cases.sh LOGS <TARGETS`, LOGS being bazel-testlogs.
# Prints each skipped case with its reason, and at the end `N passed, N failed, N skipped`. A skipped case is a line
# that begins with SKIPPED:. A target without a result counts as one failure.
# Exits non-zero if a case failed or none passed.
set -uo pipefail

logs=$1
passed=0 failed=0 skipped=0
while read -r target; do
  log="$logs/$(printf '%s' "${target#//}" | tr ':' '/')/test.log"
  summary=$(sed 's/\x1b\[[0-9;]*m//g' "$log" 2>/dev/null | grep -a '^\[doctest\] test cases:' | tail -n 1)
  if [ -z "$summary" ]; then  # it crashed, timed out or never ran
    echo "no result: $target" >&2
    failed=$((failed + 1))
    continue
  fi
  skips=$(grep -ac '^SKIPPED:' "$log")
  grep -a '^SKIPPED:' "$log" | sed "s|^|$target: |"
  [[ $summary =~ ([0-9]+)\ passed ]] && passed=$((passed + BASH_REMATCH[1] - skips))
  [[ $summary =~ ([0-9]+)\ failed ]] && failed=$((failed + BASH_REMATCH[1]))
  skipped=$((skipped + skips))
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
