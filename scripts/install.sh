#!/usr/bin/env bash
# Installs the Debian packages that building needs and this machine lacks; with --tests also those of the tests, with
# --fuzz also clang for scripts/fuzz.sh.
# Uses sudo unless it is root. Prints a single line if nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

lists=(scripts/packages.txt)
for option in "$@"; do
  case "$option" in
    --tests) lists+=(scripts/test_packages.txt) ;;
    --fuzz) lists+=(scripts/fuzz_packages.txt) ;;
    *)
      echo "install: $option: the options are --tests and --fuzz" >&2
      exit 2
      ;;
  esac
done

missing=()
while read -r package; do
  case "$package" in '' | '#'*) continue ;; esac
  if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
    missing+=("$package")
  fi
done < <(cat "${lists[@]}")

if [ ${#missing[@]} -eq 0 ]; then
  echo "install: nothing is missing"
  exit 0
fi
echo "install: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "install: neither root nor sudo: ask an administrator to install: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
# Debian starts the services that it installs. sshd, Slurm and munge are here for the tests only.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  "${as_root[@]}" chmod 755 "$policy"
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
