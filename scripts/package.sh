#!/usr/bin/env bash
# scripts/package.sh [--out DIR] [--built DIR] [--commit HASH]
#
# Makes three packages for any x86-64-v2 Linux with the glibc that docs/packages.md names:
#   DIR/dtrain-VERSION-linux-x86_64.tar.zst            runs wherever it is unpacked
#   DIR/dtrain_VERSION_amd64.deb                       the same, where Debian expects each file
#   DIR/dtrain-VERSION-py3-none-manylinux_*.whl        the program alone, for pip
# In the archive are
#   bin/dtrain    stripped, with the commit that `dtrain --version` prints
#   lib/          every shared library that it needs besides those of glibc and libgcc_s, found through $ORIGIN
#   configs/ docs/ deploy/ scripts/ README.md share/ (man page, completions for bash, zsh and fish) licenses/
# cuBLAS is in none: it is loaded at run time when a GPU is used, and is larger than everything else together.
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
export SOURCE_DATE_EPOCH
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
mkdir -p "$root"/{bin,lib,docs,configs/data,scripts,share/man/man1} \
  "$root"/share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}

strip -o "$root/bin/dtrain" "$program"
# The section has 64 bytes; the program reads up to the first zero.
printf '%s' "$commit" >"$work/commit"
truncate -s 64 "$work/commit"
objcopy --update-section ".dtrain_commit=$work/commit" "$root/bin/dtrain"

# The libraries that are compiled in are known by their headers.
headers=(/usr/include/{flatbuffers/base.h,hwy/highway.h,CLI/CLI.hpp,nlohmann/json.hpp,xxhash.h})
# The program loads OpenBLAS by itself when it needs it.
libraries=$(LD_PRELOAD=libopenblas.so.0 ldd "$program")
mapfile -t owned < <(awk '/=> \// { print $3 }' <<<"$libraries" | xargs realpath)
owned+=("${headers[@]}")
# "PACKAGE:amd64: FILE" of each, by one query, which takes as long as one for a single file. A package lists a path with
# or without /usr.
owners=$(dpkg-query -S "${owned[@]}" "${owned[@]#/usr}" 2>/dev/null) || true

# Adds the licence of each bundled library from its Debian package.
copy_licence() { # a file of the package
  local package
  package=$(awk -F ': ' -v file="${1#/usr}" '$2 == file || $2 == "/usr" file { sub(/:.*/, "", $1); print $1; exit }' \
    <<<"$owners")
  [ -n "$package" ] || fail "$1: no Debian package has it, so its licence is not known"
  local terms=/usr/share/doc/$package/copyright
  [ -f "$terms" ] || fail "$terms is not there, so the licence of $package is not known"
  mkdir -p "$root/licenses/$package"
  cp -L "$terms" "$root/licenses/$package/copyright"
}

# Links libstdc++.so.6 from Debian's objects. Its own needs glibc 2.36, for arc4random alone, and std::random_device
# is all that calls that.
link_libstdcxx() { # the file to write
  local objects
  objects=$(gcc -print-file-name=libstdc++_pic.a)
  [ -f "$objects" ] || fail "libstdc++_pic.a is missing: run scripts/install.sh"
  cat >"$work/random.c" <<'END'
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t value;
  if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) abort();
  return value;
}
END
  gcc -O2 -fPIC -fvisibility=hidden -c -o "$work/random.o" "$work/random.c"
  # What libstdc++_pic.a lacks is taken from libstdc++.a.
  gcc -shared -nodefaultlibs -o "$1" -Wl,-soname,libstdc++.so.6 "-Wl,--version-script=${objects%.a}.map" \
    -Wl,-z,relro,-z,defs,--hash-style=gnu "$work/random.o" -Wl,--whole-archive "$objects" -Wl,--no-whole-archive \
    "${objects%_pic.a}.a" -lm -lc -l:ld-linux-x86-64.so.2 -lgcc_s -lgcc
  strip "$1"
}

while read -r library _ path _; do
  case "$library" in
    linux-vdso.so.* | /lib64/ld-linux-*) continue ;;
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | libutil.so.*) continue ;;
    # The glibc packages of all distributions depend on it, and that of Debian 12 needs glibc 2.35.
    libgcc_s.so.*) continue ;;
  esac
  [ -f "$path" ] || fail "$library: not found on this machine"
  copy_licence "$(realpath "$path")"
  case "$library" in
    libstdc++.so.6) link_libstdcxx "$root/lib/$library" ;;
    *) cp -L "$path" "$root/lib/$library" ;;
  esac
  chmod u+w "$root/lib/$library"
done <<<"$libraries"
# The highest version of glibc whose symbols any of these files needs.
glibc=$(objdump -T "$root"/bin/* "$root"/lib/* | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
glibc=${glibc#GLIBC_}
for header in "${headers[@]}"; do
  copy_licence "$header"
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

cp -L README.md README.zh.md CHANGELOG.md "$root/"
cp -L docs/*.md docs/*.py "$root/docs/"
cp -L configs/*.yaml "$root/configs/"
cp -L configs/data/*.csv "$root/configs/data/"
cp -L scripts/fetch_mnist.sh "$root/scripts/"
cp -rL deploy "$root/deploy"
find "$root/deploy" -name BUILD -delete
"$program" --generate man >"$root/share/man/man1/dtrain.1"
"$program" --generate bash >"$root/share/bash-completion/completions/dtrain"
"$program" --generate zsh >"$root/share/zsh/site-functions/_dtrain"
"$program" --generate fish >"$root/share/fish/vendor_completions.d/dtrain.fish"

# The files of the archive where Debian expects them. The program finds its libraries in lib/ beside its own bin/, so
# both stay together and /usr/bin has a link.
debian_root() { # the directory to fill
  local doc=$1/usr/share/doc/dtrain share=$1/usr/share
  mkdir -p "$1"/{DEBIAN,usr/bin,usr/lib/dtrain} "$doc" "$share"/{man/man1,bash-completion,zsh/vendor-completions,fish}
  cp -r "$root"/{bin,lib} "$1/usr/lib/dtrain/"
  ln -s ../lib/dtrain/bin/dtrain "$1/usr/bin/dtrain"
  cp -r "$root"/{README.md,README.zh.md,CHANGELOG.md,configs,deploy,docs,licenses,scripts} "$doc/"
  gzip -9n <"$root/share/man/man1/dtrain.1" >"$share/man/man1/dtrain.1.gz"
  cp -r "$root/share/bash-completion/completions" "$share/bash-completion/"
  cp "$root/share/zsh/site-functions/_dtrain" "$share/zsh/vendor-completions/"
  cp -r "$root/share/fish/vendor_completions.d" "$share/fish/"
  cat >"$1/DEBIAN/control" <<END
Package: dtrain
Version: $version
Architecture: amd64
Maintainer: the owners of dtrain <root@localhost>
Installed-Size: $(du -sk --apparent-size "$1/usr" | cut -f 1)
Depends: libc6 (>= $glibc), libgcc-s1
Section: science
Priority: optional
Description: trains models on one machine or many, with parameter servers
 One YAML file describes model, data and cluster. The package brings all libraries that the program needs besides
 those of glibc and libgcc_s.
END
  chmod -R u=rwX,go=rX "$1"
}

mkdir -p "$out"
archive=$out/$name-linux-x86_64.tar.zst
tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
  --mode=u=rwX,go=rX --format=gnu -cf - "$name" | zstd -q -10 -T0 -f -o "$archive"
echo "$archive"
debian_root "$work/deb"
package=$out/dtrain_${version}_amd64.deb
dpkg-deb --root-owner-group -Zxz -z2 --build "$work/deb" "$package" >/dev/null
echo "$package"
python3 scripts/package_wheel.py "$root" "$version" "$glibc" "$out"
