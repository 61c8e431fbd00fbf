#!/usr/bin/env python3
"""Runs an old and a new binary through the same disturbances and compares what a user sees:
exit codes, the last line of each log, results, weights that are deterministic, and files. Ends with 0 when nothing
differs; ends only processes that it started."""
import argparse
import collections
import concurrent.futures
import ctypes
import fnmatch
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "chaos"))

import launching  # noqa: E402
import outcome  # noqa: E402
import scenarios  # noqa: E402

TRIES = 4  # of a scenario whose outcomes differ: what time decides comes out in one way and in the other
PR_SET_PDEATHSIG = 1


def play(binary, scenario, folder):
    module = launching if isinstance(scenario, launching.Scenario) else scenarios
    return module.play(binary, scenario, folder)


def name_of(scenario):
    module = launching if isinstance(scenario, launching.Scenario) else scenarios
    return module.name_of(scenario)


def compare(scenario, binaries, root, tries):
    """Runs both until they agree, at most `tries` times. Returns (scenario, outcomes, differences after each try)."""
    seen, different = ({}, {}), []
    folder = tempfile.mkdtemp(prefix=re.sub(r"[^a-z0-9]+", "-", name_of(scenario)) + "-", dir=root)
    try:
        while len(different) < tries and (not different or different[-1]):
            for which, binary in enumerate(binaries):
                place = os.path.join(folder, "%s-%d" % (("old", "new")[which], len(different) + 1))
                outcome.add(seen[which], play(binary, scenario, place))
            different.append(outcome.differences(*seen))
        if not different[-1]:
            shutil.rmtree(folder, ignore_errors=True)
    except Exception:  # a scenario that breaks is a difference, and the others go on
        traceback.print_exc()
        different.append(["error"])
    return scenario, seen, different


def brief(values):
    return " or ".join(sorted(values)) if values else "none"


def codes(seen):
    """Returns all exit codes, by task."""
    found = [brief(values) for key, values in sorted(seen.items()) if key.startswith("codes of ")]
    return " / ".join(found) if found else "none"


def tell(scenario, seen, different):
    tries = len(different)
    verdict = "NO" if different[-1] else "yes" if tries == 1 else "yes (%d tries)" % tries
    print("%-38s %-24s %-24s %s" % (name_of(scenario), codes(seen[0]), codes(seen[1]), verdict), flush=True)
    for key in different[-1] or outcome.strays(*seen):
        print("    %s%s\n        old: %s\n        new: %s" % (
            key, "" if different[-1] else " (once)", brief(seen[0].get(key)), brief(seen[1].get(key))), flush=True)


def tell_noise(tries):
    """Returns how often a facet differed at first but not in the end."""
    noise = collections.Counter(key for different in tries if not different[-1] for key in set(sum(different, [])))
    for key, times in noise.most_common():
        print("record: %d times another %s at first" % (times, key))


def chosen(arguments):
    found = scenarios.quick_scenarios() if arguments.quick else scenarios.all_scenarios()
    found = launching.all_scenarios(arguments.quick) + found
    if arguments.only:
        found = [one for one in found if fnmatch.fnmatch(name_of(one), "*%s*" % arguments.only)]
    return found


def end_with_parent():
    """Makes this process of the pool die with the program. The tasks that it starts die with it (cluster.Task)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def played(wanted, binaries, root, arguments):
    """Runs the scenarios; those that mostly wait have processes of their own beside those that compute."""
    def pool(jobs):
        return concurrent.futures.ProcessPoolExecutor(jobs, initializer=end_with_parent)

    busy, idle = pool(arguments.jobs), pool(arguments.jobs)
    waiting = [(idle if waits(one) else busy).submit(compare, one, binaries, root, arguments.tries)
               for one in wanted]
    for done in concurrent.futures.as_completed(waiting):
        yield done.result()
    busy.shutdown()
    idle.shutdown()


def waits(scenario):
    return isinstance(scenario, scenarios.Scenario) and scenario.deed == "stop"


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", help="scenarios whose name has this in it, as `sync*worker 0 at save`")
    parser.add_argument("--quick", action="store_true", help="one scenario for each mode and moment")
    parser.add_argument("--list", action="store_true", help="prints the names of the scenarios")
    parser.add_argument("--jobs", type=int, default=3, help="scenarios at once, and as many that mostly wait")
    parser.add_argument("--tries", type=int, default=TRIES, help="of a scenario whose outcomes differ")
    parser.add_argument("--keep", action="store_true", help="keeps logs and files of what differs")
    return parser.parse_args()


def main():
    arguments = parse()
    wanted = chosen(arguments)
    if arguments.list:
        print("\n".join(name_of(one) for one in wanted))
        return 0
    if not wanted:
        print("record: no scenario has %s in its name" % arguments.only)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    binaries = [os.path.abspath(path) for path in (arguments.old, arguments.new)]
    root, begun, tries, different = tempfile.mkdtemp(prefix="record-"), time.monotonic(), [], []
    print("%-38s %-24s %-24s %s" % ("scenario", "exit codes, old", "new", "same?"), flush=True)
    try:
        for scenario, seen, differences in played(wanted, binaries, root, arguments):
            tell(scenario, seen, differences)
            tries.append(differences)
            if differences[-1]:
                different.append(name_of(scenario))
    finally:
        for process in multiprocessing.active_children():  # of what was interrupted
            process.kill()
            process.join()
        if arguments.keep and different:
            print("record: logs and files are in %s" % root)
        else:
            shutil.rmtree(root, ignore_errors=True)
    tell_noise(tries)
    print("record: %d scenarios, %d differ, in %.0f s" % (len(wanted), len(different), time.monotonic() - begun))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
