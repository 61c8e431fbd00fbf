#!/usr/bin/env bash
# Writes compile_commands.json at the top of the checkout, for clangd and editors. Builds first what is generated
# (messages, manifests). Run it again when files have come or gone. Needs python3.
# Usage: scripts/compile_commands.sh [TARGETS]     default: //...
set -euo pipefail
cd "$(dirname "$0")/.."

targets=${1:-//...}
mapfile -t generated < <(bazel query "kind(genrule, deps($targets))" 2>/dev/null </dev/null | grep '^//')
bazel build -- "${generated[@]}" </dev/null
bazel aquery --output=jsonproto --include_artifacts=false "mnemonic(CppCompile, $targets)" 2>/dev/null </dev/null |
  python3 -c '
import json, os, sys

# What GCC alone knows, and what is of no use to a reader of the code.
DROPPED = {"-fno-canonical-system-headers", "-Wno-free-nonheap-object", "-Wunused-but-set-parameter", "-Werror",
           "-MD"}
WITH_VALUE = {"-MF", "-o"}
commands = {}
for action in json.load(sys.stdin)["actions"]:
    given, kept, source = iter(action["arguments"]), [], None
    for word in given:
        if word in WITH_VALUE:
            next(given)
        elif word == "-c":
            source = next(given)
        elif word not in DROPPED and not word.startswith(("--param=", "-frandom-seed=")):
            kept.append(word)
    if source and not source.startswith("bazel-out/"):
        commands[source] = {"directory": os.getcwd(), "file": source, "arguments": kept + ["-c", source]}
with open("compile_commands.json", "w") as file:
    json.dump(list(commands.values()), file, indent=1)
print(len(commands), "sources in compile_commands.json")
'
