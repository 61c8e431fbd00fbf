#!/usr/bin/env bash
# scripts/package.sh [--out DIR] [--built DIR] [--commit HASH]
#
# Makes DIR/dtrain-VERSION-linux-x86_64.tar.zst, which runs on any x86-64-v2 Linux with glibc 2.36 or later, wherever
# it is unpacked:
#   bin/dtrain    stripped, with the commit that `dtrain --version` prints
#   lib/          every shared library that it needs besides glibc's own, found through $ORIGIN
#   configs/ docs/ deploy/ README.md share/ (man page, completions for bash, zsh and fish) licenses/
# cuBLAS is not in it: it is loaded at run time when a GPU is used, and is larger than everything else together.
#
# The same commit gives the same bytes: sorted names, root as the owner, the time of the commit (SOURCE_DATE_EPOCH).
# --out: the destination, by default dist. --built: the directory of Bazel's outputs; nothing is built then. --commit: for
# a tree that is not a git checkout.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "package: $*" >&2
  exit 1
}

out=dist built='' commit=''
while [ $# -gt 0 ]; do
  case "$1" in
    --out) out=${2:?--out: which directory?} ;;
    --built) built=${2:?--built: which directory?} ;;
    --commit) commit=${2:?--commit: which one?} ;;
    *) fail "$1: the options are --out DIR, --built DIR and --commit HASH" ;;
  esac
  shift 2
done
command -v zstd >/dev/null || fail "zstd is missing: run scripts/install.sh"

if [ -z "$commit" ]; then
  commit=$(git rev-parse HEAD) || fail "not a git checkout: name the commit with --commit"
  [ -z "$(git status --porcelain --untracked-files=no)" ] || commit+=-dirty
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git show -s --format=%ct HEAD)}
fi
: "${SOURCE_DATE_EPOCH:?the time of the commit, in seconds since 1970}"
if [ -z "$built" ]; then
  bazel build //cmd:dtrain </dev/null
  built=bazel-bin
fi
program=$built/cmd/dtrain
said=$("$program" --version)
version=$(sed -n 's/^dtrain //p' <<<"$said")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=dtrain-$version
root=$work/$name
mkdir -p "$root"/{bin,lib,docs,configs/data,share/man/man1} \
  "$root"/share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}

strip -o "$root/bin/dtrain" "$program"
# The section has 64 bytes; the program reads up to the first zero.
printf '%s' "$commit" >"$work/commit"
truncate -s 64 "$work/commit"
objcopy --update-section ".dtrain_commit=$work/commit" "$root/bin/dtrain"

# Adds the licence of each bundled library from its Debian package.
copy_licence() { # a file of the package
  local package
  # Tries the path with and without /usr, because a package lists only one of them.
  package=$(dpkg-query -S "$1" "${1#/usr}" 2>/dev/null | head -n 1 | cut -d: -f1) || true
  [ -n "$package" ] || fail "$1: no Debian package has it, so its licence is not known"
  local terms=/usr/share/doc/$package/copyright
  [ -f "$terms" ] || fail "$terms is not there, so the licence of $package is not known"
  mkdir -p "$root/licenses/$package"
  cp -L "$terms" "$root/licenses/$package/copyright"
}

while read -r library _ path _; do
  case "$library" in
    linux-vdso.so.* | /lib64/ld-linux-*) continue ;;
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | libutil.so.*) continue ;;
  esac
  [ -f "$path" ] || fail "$library: not found on this machine"
  cp -L "$path" "$root/lib/$library"
  chmod u+w "$root/lib/$library"
  copy_licence "$(realpath "$path")"
done < <(ldd "$program")
# The libraries that are compiled in.
for header in flatbuffers/base.h CLI/CLI.hpp nlohmann/json.hpp xxhash.h; do
  copy_licence "/usr/include/$header"
done
# The texts to which these licences only refer.
mkdir "$root/licenses/common-licenses"
for text in /usr/share/common-licenses/*; do
  grep -rqF --include=copyright "$text" "$root/licenses" || continue
  cp -L "$text" "$root/licenses/common-licenses/"
done
if grep -q '^with CUDA' <<<"$said"; then
  cuda=${CUDA_HOME:-/usr/local/cuda}
  terms=$(find "$cuda"/EULA.txt "$cuda"/dist-info/nvidia_cuda_runtime-*/licenses/License.txt \
    /usr/share/doc/nvidia-cuda-toolkit/copyright 2>/dev/null | head -n 1) || true
  [ -n "$terms" ] || fail "the CUDA runtime is linked in, and its terms are not found ($cuda/EULA.txt)"
  mkdir -p "$root/licenses/cuda-runtime"
  cp -L "$terms" "$root/licenses/cuda-runtime/EULA.txt"
fi

cp -L README.md "$root/"
cp -L docs/*.md "$root/docs/"
cp -L configs/*.yaml "$root/configs/"
cp -L configs/data/*.csv "$root/configs/data/"
if [ -d deploy ]; then
  cp -rL deploy "$root/deploy"
  find "$root/deploy" -name BUILD -delete
fi
"$program" --generate man >"$root/share/man/man1/dtrain.1"
"$program" --generate bash >"$root/share/bash-completion/completions/dtrain"
"$program" --generate zsh >"$root/share/zsh/site-functions/_dtrain"
"$program" --generate fish >"$root/share/fish/vendor_completions.d/dtrain.fish"

mkdir -p "$out"
archive=$out/$name-linux-x86_64.tar.zst
tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  --mode=u=rwX,go=rX --format=gnu -cf - "$name" | zstd -q -10 -T0 -f -o "$archive"
echo "$archive"
