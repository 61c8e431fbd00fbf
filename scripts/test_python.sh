#!/usr/bin/env bash
# test_python.sh DIRECTORY: makes a virtual environment there with what test_requirements.txt lists, unless it
# is there already. For tests alone: they read dtrain's files with the programs that its users have.
set -euo pipefail
directory=$1
requirements=$(dirname "$0")/test_requirements.txt

cmp -s "$requirements" "$directory/installed.txt" && exit 0
# The system's certificates: behind a proxy with its own, pip's would not do.
if [ -z "${PIP_CERT:-}" ] && [ -r /etc/ssl/certs/ca-certificates.crt ]; then
  export PIP_CERT=/etc/ssl/certs/ca-certificates.crt
fi
python3 -m venv --clear "$directory"
"$directory/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --retries 1 -r "$requirements"
cp "$requirements" "$directory/installed.txt"
