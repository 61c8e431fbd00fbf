#!/usr/bin/env bash
# test_python.sh DIRECTORY: makes a virtual environment there with the packages of test_requirements.txt, unless it
# exists. For tests only, which read dtrain's files with the programs of its users.
set -euo pipefail
directory=$1
requirements=$(dirname "$0")/test_requirements.txt

cmp -s "$requirements" "$directory/installed.txt" && exit 0
# The system's certificates, because pip's own do not include those of a local proxy.
if [ -z "${PIP_CERT:-}" ] && [ -r /etc/ssl/certs/ca-certificates.crt ]; then
  export PIP_CERT=/etc/ssl/certs/ca-certificates.crt
fi
python3 -m venv --clear "$directory"
"$directory/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --retries 1 -r "$requirements"
cp "$requirements" "$directory/installed.txt"
