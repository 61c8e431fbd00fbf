#!/usr/bin/env bash
# tensorboard.sh DIRECTORY: makes a virtual environment there with TensorBoard from PyPI, unless it has it
# already. For tests alone: they read event files with it.
set -euo pipefail
directory=$1
version=2.20.0

done=$directory/tensorboard-$version
[ -e "$done" ] && exit 0
# The system's certificates: behind a proxy with its own, pip's would not do.
if [ -z "${PIP_CERT:-}" ] && [ -r /etc/ssl/certs/ca-certificates.crt ]; then
  export PIP_CERT=/etc/ssl/certs/ca-certificates.crt
fi
python3 -m venv --clear "$directory"
"$directory/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --retries 1 "tensorboard==$version"
touch "$done"
