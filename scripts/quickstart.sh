#!/usr/bin/env bash
# One command from a fresh checkout to a trained model: installs what is missing, builds, trains a classifier
# of drawn digits on a cluster of 1 ps and 2 workers on this machine, prints its accuracy.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install.sh
# Without standard input, from which a shell may be reading this script.
bazel build //cmd:dtrain </dev/null
mkdir -p run
bazel-bin/cmd/dtrain local --config configs/quickstart_digits.yaml --result run/quickstart.json

accuracy=$(sed -n 's/^ *"test_accuracy": \(.*\),$/\1/p' run/quickstart.json)
echo
echo "Test accuracy on held-out digits: $accuracy"
echo "The job:           configs/quickstart_digits.yaml"
echo "The result:        run/quickstart.json"
echo "The program:       bazel-bin/cmd/dtrain (try: bazel-bin/cmd/dtrain --help)"
echo "Next:              README.md, configs/mnist_softmax.yaml, docs/config.md"
