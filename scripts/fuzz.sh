#!/usr/bin/env bash
# scripts/fuzz.sh [--minutes N] [--out DIR] [TARGET...]
#
# Runs the fuzz targets (fuzz/), or those that are named, one after the other, each for N minutes (10), by libFuzzer with
# ASan and UBSan. Each begins with its corpus, fuzz/testdata/TARGET. Findings are kept in DIR/findings, inputs that reach
# new code in DIR/TARGET (DIR: fuzz-out). Exits non-zero if anything was found.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=10 out=fuzz-out targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --minutes)
      minutes=${2:?--minutes: how many?}
      shift
      ;;
    --out)
      out=${2:?--out: which directory?}
      shift
      ;;
    -*)
      sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if [ ${#targets[@]} -eq 0 ]; then
  for corpus in fuzz/testdata/*/; do targets+=("$(basename "$corpus")"); done
fi
command -v clang-14 >/dev/null || scripts/install.sh --fuzz

# Outputs of its own, because another compiler would throw away what is built.
bazel=(bazel "--output_base=${XDG_CACHE_HOME:-$HOME/.cache}/dtrain/fuzz" --max_idle_secs=60)
labels=("${targets[@]/#///fuzz:}")
"${bazel[@]}" build --config=fuzz "${labels[@]/%/_fuzzer}" </dev/null
programs=$("${bazel[@]}" info --config=fuzz bazel-bin 2>/dev/null </dev/null)/fuzz

found=()
mkdir -p "$out/findings"
for target in "${targets[@]}"; do
  mkdir -p "$out/$target"
  echo "fuzz: $target, $minutes minutes; log: $out/$target.log"
  "$programs/${target}_fuzzer" -max_total_time=$((60 * minutes)) -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
    -print_final_stats=1 "-artifact_prefix=$out/findings/$target-" "$out/$target" "fuzz/testdata/$target" \
    >"$out/$target.log" 2>&1 </dev/null || found+=("$target")
  grep -a '^stat::number_of_executed_units' "$out/$target.log" || true
done
[ ${#found[@]} -eq 0 ] && echo "fuzz: nothing found" && exit 0
echo "fuzz: findings of ${found[*]}: see $out/findings and the logs" >&2
exit 1
