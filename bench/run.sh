#!/usr/bin/env bash
# Measures dtrain beside its limits, in turns; prints a table and a line that describes the machine.
# docs/performance.md says what each row is and how to read it.
#   bench/run.sh [--rounds 15] [--seconds 1.2] [--only NAME]... [--json FILE] [--beside PROGRAM]
# FILE and PROGRAM, another dtrain in place of the limits, are relative to where it is called.
# --only takes what a row's name begins with, such as softmax, stream or memory_ps; where none does, all
# names are told. MNIST is read from ../shared/data, or from DTRAIN_SHARED_DATA as in the tests; where it is
# not, digits are drawn.
set -euo pipefail
read -r load _ </proc/loadavg # now: building is load, too
caller=$PWD
cd "$(dirname "$0")/.."

bazel build //cmd:dtrain //bench/... </dev/null
data=${DTRAIN_SHARED_DATA:-../shared/data}
if [ -d "$data/mnist" ]; then
  set -- --data "$(cd "$data" && pwd)" "$@"
fi
exec bazel-bin/bench/report/report --load "$load" --directory "$caller" "$@"
