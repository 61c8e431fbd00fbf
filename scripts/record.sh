#!/usr/bin/env bash
# Compares two binaries in disturbed runs; see scripts/record/record.py.
# scripts/record.sh OLD_BINARY NEW_BINARY [--quick] [--only PATTERN] [--jobs N] [--keep]
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
exec python3 scripts/record/record.py "$@"
