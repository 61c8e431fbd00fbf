#!/usr/bin/env bash
# For Bazel's --workspace_status_command: the commit that `dtrain --version` shows in a stamped build.
set -euo pipefail
commit=$(git rev-parse HEAD 2>/dev/null) || exit 0
if [[ -n $(git status --porcelain --untracked-files=no 2>/dev/null) ]]; then
  commit+=-dirty
fi
echo "STABLE_GIT_COMMIT $commit"
