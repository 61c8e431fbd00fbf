#!/usr/bin/env bash
# Holds two binaries against each other in runs that are disturbed; see scripts/record/record.py.
# scripts/record.sh OLD_BINARY NEW_BINARY [--quick] [--only PATTERN] [--jobs N] [--keep]
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
exec python3 scripts/record/record.py "$@"
