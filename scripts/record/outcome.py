"""Outcomes: what two binaries must not differ in, with everything masked that depends on timing."""
import collections
import json
import os
import re
import socket

# Numbers of tasks and exit codes are compared; all others belong to this run.
NUMBER = re.compile(r"(?<!ps )(?<!worker )(?<!code )(?<![A-Za-z_])\d+(\.\d+)?(e[-+]?\d+)?\b")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d")
HEX = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,}\b")
TEMPORARY = re.compile(r"\.step-\d+\.tmp-[0-9a-f]+")
# Facets in which the frequent values of the new binary must be values of the old one.
STRICT = ("codes of ", "status of ", "moment", "left behind")


def masked(text, folder):
    text = text.replace(folder, "DIR").replace(socket.gethostname(), "HOST")
    text = re.sub(r"(127\.0\.0\.\d+|localhost):\d+", "ADDRESS", text)
    text = TIME.sub("TIME", text)
    text = TEMPORARY.sub(".step-N.tmp-H", text)
    text = HEX.sub("H", text)
    text = NUMBER.sub("N", re.sub(r"(step|pid)[- ]\d+", r"\1 N", text))
    return re.sub(r" {2,}", "  ", text)  # columns are as wide as their numbers


def last_line(path, folder):
    try:
        with open(path, errors="replace") as file:
            lines = [line for line in file.read().splitlines() if line.strip()]
    except OSError:
        return "no log"
    return masked(lines[-1], folder).strip() if lines else "nothing"


def read_result(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def result_facets(task, result):
    if result is None:
        return {"status of " + task: "no result"}
    found = {"status of " + task: result.get("status"), "result keys of " + task: " ".join(sorted(result))}
    if result.get("status") == "done":
        found["step of " + task] = result.get("global_step")
        found["deterministic of " + task] = result.get("deterministic")
        if result.get("deterministic"):
            found["model_crc of " + task] = result.get("model_crc")
    return found


def files(folder):
    """Returns the kinds of files except logs and results, which have facets of their own. The number of checkpoints, and
    the unfinished files of a killed writer, depend on timing and are left out."""
    found = set()
    for path, _, names in os.walk(folder):
        relative = os.path.relpath(path, folder)
        if TEMPORARY.search(relative):
            continue
        for name in names:
            whole = os.path.normpath(os.path.join(relative, name))
            if not TEMPORARY.search(whole) and not whole.endswith((".log", ".json")):
                found.add(re.sub(r"(replaced-)?step-\d+(-\d+)?", "step-N", whole))
    return " ".join(sorted(found))


def add(seen, facets):
    """Adds an outcome. `seen` counts each value by facet."""
    for key, value in facets.items():
        seen.setdefault(key, collections.Counter())[str(value)] += 1


def differences(old, new):
    """Returns the facets in which the binaries disagree: they have no value in common, or the new one has twice shown a
    value that the old one never has. A single time may be chance, and strays() reports it. The content of a result is
    compared if both have one; whether there is a result is a facet of its own."""
    return [key for key in sorted(set(old) & set(new)) if differs(key, old[key], new[key])]


def differs(key, old, new):
    if key == "moment" and not ("reached" in old and "reached" in new):
        return True  # nothing was compared
    again = any(times > 1 and value not in old for value, times in new.items())
    return not set(old) & set(new) or (key.startswith(STRICT) and again)


def strays(old, new):
    """Returns the values that only the new binary has shown and that do not count as a difference."""
    return [key for key in sorted(set(old) & set(new)) if key.startswith(STRICT) and set(new[key]) - set(old[key])]
