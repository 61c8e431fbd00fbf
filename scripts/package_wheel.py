"""package_wheel.py PACKAGE VERSION GLIBC DIRECTORY: the unpacked package as a wheel in DIRECTORY; prints its path.

pip puts data/ into the prefix of the environment and scripts/ into its bin: the program and its libraries lie in
lib/dtrain, and bin/dtrain starts it. Times come from SOURCE_DATE_EPOCH, so the same package gives the same bytes.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile

SUMMARY = "Trains models on one machine or many, with parameter servers. The wheel has the program, no Python."
LAUNCHER = b"""#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/../lib/dtrain/bin/dtrain" "$@"
"""


def contents(package, version, tag):
    """Yields the path in the wheel, the bytes and the mode of each file."""
    name = f"dtrain-{version}"
    yield f"{name}.data/scripts/dtrain", LAUNCHER, 0o755
    for part in ("bin", "lib", "licenses"):
        for folder, _, files in os.walk(os.path.join(package, part)):
            for file in files:
                path = os.path.join(folder, file)
                mode = 0o755 if part == "bin" else 0o644
                with open(path, "rb") as content:
                    yield f"{name}.data/data/lib/dtrain/{os.path.relpath(path, package)}", content.read(), mode
    with open(os.path.join(package, "README.md"), encoding="utf-8") as readme:
        about = f"Metadata-Version: 2.1\nName: dtrain\nVersion: {version}\nSummary: {SUMMARY}\n"
        about += f"Description-Content-Type: text/markdown\n\n{readme.read()}"
    yield f"{name}.dist-info/METADATA", about.encode(), 0o644
    wheel = f"Wheel-Version: 1.0\nGenerator: dtrain\nRoot-Is-Purelib: false\nTag: {tag}\n"
    yield f"{name}.dist-info/WHEEL", wheel.encode(), 0o644


def main():
    package, version, glibc, directory = sys.argv[1:]
    tag = f"py3-none-manylinux_{glibc.replace('.', '_')}_x86_64"
    path = os.path.join(directory, f"dtrain-{version}-{tag}.whl")
    moment = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]  # a zip begins in 1980
    files = sorted(contents(package, version, tag))
    record = f"dtrain-{version}.dist-info/RECORD"
    lines = []
    for name, content, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    files.append((record, "".join(lines + [f"{record},,\n"]).encode(), 0o644))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, content)
    print(path)


main()
