#!/usr/bin/env bash
# Builds the programs that scripts/gpu_check.sh runs on a machine with a GPU and without Bazel, and packs them
# into DIR/bundle.tar.xz, with their libraries and, if it is here, MNIST.
#   scripts/gpu_bundle.sh [DIR]        default: gpu-bundle in the repository, which git ignores
# Needs the CUDA toolkit, no GPU. The other machine needs x86-64, glibc and libstdc++ no older than this
# one's, a driver, cuBLAS and python3.
set -euo pipefail
target=$(realpath -m "${1:-$(dirname "$0")/../gpu-bundle}")
cd "$(dirname "$0")/.."
mkdir -p "$target"
most_mib=60

# The targets, and their paths in the bundle.
programs=(
  "cmd/dtrain cmd/dtrain"
  "bench/gpu_bench bench/gpu_bench"
  "gpu/ops_test_on_device tests/ops_test"
  "gpu/cuda/runtime_test tests/runtime_test"
  "trainer/model/device_steps_on_device tests/device_steps_test"
)
# Libraries of the system, whose versions belong together; newer ones work too.
system='/(ld-linux-x86-64|libc|libm|libdl|librt|libpthread|libresolv|libgcc_s|libstdc\+\+)\.so'

labels=()
for program in "${programs[@]}"; do
  read -r built _ <<<"$program"
  labels+=("//${built%/*}:${built##*/}")
done
bazel build "${labels[@]}" </dev/null
bin=$(bazel info bazel-bin 2>/dev/null </dev/null)

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/lib"
for program in "${programs[@]}"; do
  read -r built name <<<"$program"
  mkdir -p "$stage/${name%/*}"
  strip -o "$stage/$name" "$bin/$built"
  ldd "$bin/$built" | awk '/=> \//{print $3}' | grep -Ev "$system" | while read -r library; do
    cp -Lu "$library" "$stage/lib/"
  done
done
data=${DTRAIN_SHARED_DATA:-../shared/data}
if [ -d "$data/mnist" ]; then
  mkdir -p "$stage/data/mnist"
  cp "$data"/mnist/*.gz "$stage/data/mnist/"
fi
chmod -R u+w "$stage"
{
  echo "commit $(git describe --always --dirty 2>/dev/null || echo unknown)"
  ldd --version | sed -n 's/^ldd.* /built with glibc /p'
  "$bin/cmd/dtrain" --version | tr '\n' ' '
  echo
} >"$stage/about"

# The programs must not refer to files of this machine, except to those of the system.
for program in "${programs[@]}"; do
  read -r _ name <<<"$program"
  if env -i LD_LIBRARY_PATH="$stage/lib" ldd "$stage/$name" | grep -Ev "$system|$stage/lib|linux-vdso"; then
    echo "gpu_bundle: $name needs more than the bundle has" >&2
    exit 1
  fi
done

# The programs share most of their bytes, megabytes apart, so the window spans all of them.
tar -C "$stage" --sort=name --owner=0 --group=0 -cf - . |
  xz --threads=1 --lzma2=preset=4,dict=128MiB >"$target/bundle.tar.xz"
size=$(($(stat -c %s "$target/bundle.tar.xz") / 1048576))
echo "gpu_bundle: $target/bundle.tar.xz, $size MiB"
if [ "$size" -ge "$most_mib" ]; then
  echo "gpu_bundle: that is more than $most_mib MiB" >&2
  exit 1
fi
