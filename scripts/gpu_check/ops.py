"""Every operation on the device against the oracle over odd shapes, and models beside the processor's."""
import os
import subprocess
import xml.etree.ElementTree

from bundle import last_words

PROGRAMS = ["tests/ops_test", "tests/device_steps_test", "tests/runtime_test"]


def read_cases(path):
    """Yields (name, seconds, failure) of each test case in doctest's report."""
    cases = []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        wrong = [found.get("message") or (found.text or "").strip()
                 for kind in ("failure", "error") for found in case.findall(kind)]
        cases.append((case.get("name"), float(case.get("time", 0)), wrong))
    return cases


def run_cases(bundle, results, program):
    """Runs all test cases of a program. Returns None if it made no report, which counts as a failed check."""
    report = results.path(os.path.basename(program) + ".xml")
    if os.path.exists(report):
        os.remove(report)
    try:
        done = bundle.run([program, "--reporters=junit", "--out=" + report], results.seconds_left(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        results.add(program, "failed", "not done in time")
        return None
    try:
        return read_cases(report)
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        results.add(program, "failed", "ended with %d and no report (%s): %s"
                    % (done.returncode, error, last_words(done.stdout)))
        return None


def check(bundle, results):
    for program in PROGRAMS:
        if not os.path.exists(bundle.path(program)):
            results.add(program, "skipped", "not in the bundle")
            continue
        for name, seconds, wrong in run_cases(bundle, results, program) or []:
            results.check(name, not wrong, "; ".join(wrong)[:400] if wrong else "%.2f s" % seconds)
