#!/usr/bin/env bash
# scripts/fetch_mnist.sh [DIR]
#
# Fetches the four files of MNIST, 11 MB, into DIR and checks what is in them. A file that is there and good stays.
# Without DIR they go where the configs look for them: into $DTRAIN_DATA/mnist if DTRAIN_DATA is set, else into
# shared/data/mnist beside the checkout.
# MNIST_MIRROR names another place to fetch from, one that curl or wget knows: MNIST_MIRROR=http://mirror.example/mnist
set -euo pipefail

fail() {
  echo "fetch_mnist: $*" >&2
  exit 1
}

[ $# -le 1 ] || fail "the only argument is the directory"
mirror=${MNIST_MIRROR:-https://storage.googleapis.com/cvdf-datasets/mnist}
home=$(realpath "$(dirname "$0")/..")
directory=${1:-${DTRAIN_DATA:-$(dirname "$home")/shared/data}/mnist}

# Of the unpacked files: mirrors have packed them differently.
checksums="\
ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5 train-labels-idx1-ubyte
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7 t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2 t10k-labels-idx1-ubyte"

fetch() { # URL FILE
  if command -v curl >/dev/null; then
    curl --fail --location --silent --show-error --retry 3 --connect-timeout 20 --speed-time 60 --speed-limit 1 -o "$2" "$1"
  elif command -v wget >/dev/null; then
    wget --quiet --tries=3 --timeout=60 -O "$2" "$1"
  else
    fail "neither curl nor wget is here: install one of them"
  fi
}

is_good() { # FILE SHA256
  [ -f "$1" ] && [ "$(gzip -dc "$1" 2>/dev/null | sha256sum | cut -d ' ' -f 1)" = "$2" ]
}

mkdir -p "$directory" || fail "$directory cannot be made: name another directory, and set DTRAIN_DATA to the one above it"
while read -r checksum name; do
  file=$directory/$name.gz
  if is_good "$file" "$checksum"; then
    echo "fetch_mnist: $file is there"
    continue
  fi
  part=$(mktemp "$file.XXXXXX") || fail "$directory cannot be written to: name another directory"
  trap 'rm -f "$part"' EXIT
  fetch "$mirror/$name.gz" "$part" ||
    fail "$mirror/$name.gz cannot be fetched. Set MNIST_MIRROR to another place, or copy the file to $directory by hand"
  is_good "$part" "$checksum" ||
    fail "what $mirror/$name.gz sent is not MNIST's $name: a broken download, or an error page. Try again, or set MNIST_MIRROR"
  chmod 644 "$part"
  mv "$part" "$file"
  echo "fetch_mnist: $file"
done <<<"$checksums"
