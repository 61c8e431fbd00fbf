#!/usr/bin/env bash
# Global steps per second of the jobs, beside what plain ZeroMQ does with the same bytes, peers and open
# exchanges. Both run in turns, and medians are compared: these machines are noisy.
#   bench/run.sh [ROUNDS]        5 rounds by default, about two minutes
# MNIST is needed for its row (../shared/data/mnist); without it the row is left out, with a line that says so.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}

bazel build //cmd:dtrain //bench:raw_exchange </dev/null
dtrain=$PWD/bazel-bin/cmd/dtrain
raw=$PWD/bazel-bin/bench/raw_exchange
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

median() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

# steps_per_s CONFIG FLAGS...
steps_per_s() {
  "$dtrain" local --config "$1" --set log.level=warning --result "$scratch/result.json" "${@:2}" 2>/dev/null
  sed -n 's/^ *"steps_per_s": \([0-9.]*\).*/\1/p' "$scratch/result.json"
}

# row NAME CLIENTS HEADER PAYLOAD EXCHANGES CONFIG FLAGS...
row() {
  : >"$scratch/ours"
  : >"$scratch/limit"
  for ((i = 0; i < rounds; ++i)); do
    steps_per_s "${@:6}" >>"$scratch/ours"
    "$raw" "$2" "$3" "$4" "$5" >>"$scratch/limit"
  done
  ours=$(median <"$scratch/ours")
  limit=$(median <"$scratch/limit")
  awk -v name="$1" -v a="$ours" -v b="$limit" \
    'BEGIN {printf "| %-44s | %9.0f | %9.0f | %5.2f |\n", name, a, b, a / b}'
}

echo "$(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs), $(nproc) cores; median of $rounds rounds"
echo
echo "| global steps/s                               |    dtrain | plain ZMQ | ratio |"
echo "|----------------------------------------------|-----------|-----------|-------|"
row "linear_regression.yaml, 1 ps + 2 workers" 2 120 0 40000 \
  configs/linear_regression.yaml --set train.steps=80000
mnist=../shared/data/mnist/train-images-idx3-ubyte.gz
if [ -f "$mnist" ]; then
  row "mnist_softmax.yaml, 1 ps + 3 workers" 3 120 31400 8000 \
    configs/mnist_softmax.yaml --set train.epochs=15 --set eval.at_end=false
else
  echo "(mnist_softmax.yaml is left out: $mnist is not there)"
fi
echo
echo "plain ZMQ: bench/raw_exchange.cc; it moves the same bytes and computes nothing."
