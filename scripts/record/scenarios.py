"""The scenarios: a disturbance of a task, at a moment of a run, in a mode."""
import collections
import os
import shutil
import signal
import time

import moments
from run import Run

Scenario = collections.namedtuple("Scenario", "mode deed task moment")
MODES = ("async", "sync", "ssp")
MOMENTS = ("start", "step", "save", "restore", "evaluate", "end")
TASKS = ("ps 0", "ps 1", "worker 0", "worker 1")
# An outer loop restarts tasks that died, but not after `lose`. SIGTERM and SIGSTOP go to another task at each
# moment.
DEEDS = ("kill", "lose", "term", "stop")
DETECT_S = 2  # a machine that is busy may silence a task for a second
STOP_S = 15.0
MOMENT_TRIES = 3  # of a run that was over before its moment was seen
LIMIT_S = 75


def all_scenarios():
    found = [Scenario(mode, "leave", "all", "start") for mode in MODES]
    for which, mode in enumerate(MODES):
        for number, moment in enumerate(MOMENTS):
            turn = TASKS[(which + number) % len(TASKS)]
            found += [Scenario(mode, "stop", turn, moment), Scenario(mode, "term", turn, moment)]
            found += [Scenario(mode, deed, task, moment) for task in TASKS for deed in ("kill", "lose")]
    return found


def quick_scenarios():
    """Returns one scenario for each mode and moment; every deed and every task occurs."""
    chosen = []
    for which, mode in enumerate(MODES):
        for number, moment in enumerate(MOMENTS):
            deed = ("kill", "lose", "kill", "term")[(which + number) % 4]
            chosen.append(Scenario(mode, deed, TASKS[(which + number) % len(TASKS)], moment))
    return [one for one in all_scenarios() if one in chosen or one.deed == "leave"]


def name_of(scenario):
    return "%s: %s %s at %s" % scenario


def settings_of(scenario):
    waits = {"kill": ("wait", 20, 30), "stop": ("wait", 40, 30), "lose": ("continue", 2, 5)}
    lost, wait, startup = waits.get(scenario.deed, ("continue", 10, 20))
    # For evaluate the model is large and the steps are few, so that the run mostly evaluates.
    large = scenario.moment == "evaluate"
    steps = 20 if large else 1000
    return {"mode": scenario.mode, "steps": steps if scenario.mode == "sync" else 2 * steps, "lost": lost, "wait": wait,
            "startup": startup, "detect": DETECT_S, "batch": 10 if large else 50, "test": 8000 if large else 500,
            "model": "{kind: mlp, hidden: [2000]}" if large else "{kind: softmax}"}


def prepare(binary, scenario, folder):
    """Makes a checkpoint in the middle of such a run, from which `restore` begins."""
    settings = dict(settings_of(Scenario(scenario.mode, "leave", "all", "start")), steps=200)
    run = Run(binary, folder, settings)
    try:
        for task in run.tasks:
            task.start()
        if not run.wait_for_end(LIMIT_S, False, []):
            raise RuntimeError("no checkpoint to begin with: %s" % run.codes)
    finally:
        run.close()
    return run.checkpoints


def do(run, scenario, actions):
    """Disturbs the task. Returns False if it had ended before."""
    task = run.task(scenario.task)
    in_time = task.alive()
    number = {"kill": signal.SIGKILL, "lose": signal.SIGKILL, "term": signal.SIGTERM, "stop": signal.SIGSTOP}
    task.signal(number[scenario.deed])
    if scenario.deed == "stop":
        actions.append((time.monotonic() + STOP_S, lambda: task.signal(signal.SIGCONT)))
    return in_time


def play(binary, scenario, folder):
    """Returns the outcome of one run, by facet."""
    for attempt in range(1, MOMENT_TRIES + 1):
        found = play_once(binary, scenario, "%s-%d" % (folder, attempt))
        if found["moment"] == "reached":
            break
    return found


def play_once(binary, scenario, folder):
    os.makedirs(folder)
    if scenario.moment == "restore":
        saved = prepare(binary, scenario, os.path.join(folder, "before"))
        shutil.copytree(saved, os.path.join(folder, "ckpt"), ignore=shutil.ignore_patterns(".*"))
        shutil.rmtree(os.path.join(folder, "before"))
    run = Run(binary, folder, settings_of(scenario))
    actions, reached = [], True
    # The run cannot begin without this one.
    late = "worker 0" if scenario.task == "worker 1" else "worker 1"
    try:
        for task in run.tasks:
            if scenario.moment != "start" or task.name != late:
                task.start()
        if scenario.deed != "leave":
            reached = moments.WAIT_FOR[scenario.moment](run, LIMIT_S)
            reached = do(run, scenario, actions) and reached
        if scenario.moment == "start":
            run.task(late).start()
        in_time = run.wait_for_end(LIMIT_S, scenario.deed in ("kill", "stop"), actions)
    finally:
        run.close()
    return dict(run.facets(), moment="reached" if reached else "missed",
                **{"left behind": "nothing" if in_time else "tasks that do not end"})
