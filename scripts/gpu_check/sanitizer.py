"""The operations' tests again under compute-sanitizer. It makes each launch many times slower, so the quickest
cases are taken, as many as fit: that leaves out large shapes, and no operation."""
import glob
import math
import os
import shutil
import subprocess

from bundle import last_words
from ops import run_cases

ERROR_EXIT = 97
# How many times longer a case takes under the sanitizer.
SLOWDOWN = 40
TOOLS = {"memcheck": 60, "racecheck": 60}
PROGRAM = "tests/ops_test"


def find():
    for candidate in [shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer"] + sorted(
            glob.glob("/usr/local/cuda*/compute-sanitizer/compute-sanitizer")):
        if candidate and os.path.exists(candidate):
            return candidate
    return None


def choose(cases, seconds):
    """Returns the quickest cases that take `seconds` together."""
    chosen, total = [], 0.0
    for name, taken, _ in sorted(cases, key=lambda case: case[1]):
        total += SLOWDOWN * max(taken, 0.001)
        if chosen and total > seconds:
            break
        chosen.append(name)
    return chosen


def pattern(names):
    """Returns a filter for doctest, in which commas separate names: a comma in a name becomes a wildcard."""
    return ",".join(name.replace(",", "?").replace("\\", "?") for name in names)


def run_tool(bundle, results, sanitizer, tool, names, total, seconds):
    what = "%s of %d of %d test cases" % (tool, len(names), total)
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(ERROR_EXIT), bundle.path(PROGRAM),
               "--test-case=" + pattern(names)]
    try:
        done = bundle.run(command, seconds, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as late:
        text = late.stdout if isinstance(late.stdout, str) else (late.stdout or b"").decode(errors="replace")
        results.add(what, "failed", "not done in time: %s" % last_words(text, 4))
        return
    with open(results.path(tool + ".txt"), "w") as file:
        file.write(done.stdout)
    if "Device not supported" in done.stdout:
        results.add(what, "skipped", "compute-sanitizer does not support this device or machine")
        return
    summary = [line for line in done.stdout.splitlines() if "SUMMARY" in line]
    good = done.returncode == 0 and summary and " 0 errors" in summary[-1].replace("0 hazards", "0 errors")
    results.check(what, good, summary[-1].strip("= ") if summary else last_words(done.stdout))


def check(bundle, results):
    sanitizer = find()
    if sanitizer is None:
        for tool in TOOLS:
            results.add(tool, "skipped", "compute-sanitizer is not there")
        return
    cases = run_cases(bundle, results, PROGRAM)
    if cases is None:
        return
    for i, (tool, seconds) in enumerate(TOOLS.items()):
        names = choose(cases, math.inf if results.smoke else seconds)
        share = results.seconds_left() / (len(TOOLS) - i)
        run_tool(bundle, results, sanitizer, tool, names, len(cases), share)
