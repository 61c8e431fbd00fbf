#!/usr/bin/env python3
"""Runs of real processes with random disturbances, compared with an undisturbed run.

In sync the weights must be the same bits; in async the steps exact and the accuracy near. Ends with 0 when all
is well; otherwise keeps the logs and says where. Ends only processes that it started.
"""
import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import data
import deeds
from cluster import Cluster, Failed

WORKERS = 3
GRACE_S = 10
ROUND_LIMIT_S = 240
NEAR = 0.02  # of the accuracy, in async
SMALL = "{kind: softmax, outputs: %d}" % data.CLASSES, "momentum"
DEEP = "{kind: mlp, outputs: %d, hidden: [512, 512, 512], activation: relu, init: {kind: glorot}}" % data.CLASSES, "sgd"
JOB = """
model: %s
data: {train: {format: csv, path: %s, label: y}, test: {format: csv, path: %s, label: y}}
train: {batch_size: 100, optimizer: {kind: %s, learning_rate: 0.05}}
eval: {on: test}
hooks: {log_every_steps: 500}
checkpoint: {every_secs: 0.3, keep: 4}
failure: {detect_s: %g, worker_lost: wait, wait_s: 60, startup_timeout_s: 60, grace_s: %d}
"""


class Chaos:
    def __init__(self, arguments, folder):
        self.seed, self.binary, self.steps = arguments.seed, arguments.binary, arguments.steps
        self.random = random.Random(self.seed)
        self.ps = 3 if arguments.replicas else 2
        self.own_sets = ["failure.replicas=1"] if arguments.replicas else []
        self.folder, self.disk = folder, os.path.join(folder, "disk")
        self.config = os.path.join(folder, "job.yaml")
        self.grace_s = GRACE_S
        self.begun = time.monotonic()
        self.cluster = None
        os.mkdir(self.disk)
        self.small_disk = mount_small(self.disk, 60 if arguments.deep else 4)
        self.data = data.Data(folder, self.random, WORKERS)
        model, optimizer = DEEP if arguments.deep else SMALL
        with open(self.config, "w") as file:
            file.write(JOB % (model, self.data.of_worker(0), self.data.test, optimizer, deeds.DETECT_S, GRACE_S))

    def tell(self, text):
        print("%7.2f s  %s" % (time.monotonic() - self.begun, text), flush=True)

    def later(self, seconds, action):
        self.actions.append((time.monotonic() + seconds, action))

    def pick(self, role=""):
        return self.random.choice([task for task in self.cluster.tasks if task.name.startswith(role)])

    def settle(self):
        """Ends all disturbances: stopped tasks continue, held traffic flows, the disk has room."""
        for _, action in self.actions:
            action()
        self.actions = []

    def wait_all_ended(self, seconds):
        deadline = time.monotonic() + seconds
        while any(task.alive() for task in self.cluster.tasks) and time.monotonic() < deadline:
            time.sleep(0.02)
        return not any(task.alive() for task in self.cluster.tasks)

    def note_full(self, seconds):
        # The end of a disturbance may have been scheduled for later meanwhile.
        self.full_until = time.monotonic() + seconds + 10

    def allow(self, code):
        # Without its checkpoints a run that goes back to one, or that has no place for the last one, ends.
        self.ended |= code in (1, 2) and self.removed
        if code == 1 and time.monotonic() < self.full_until:
            return True
        return code in (4, -signal.SIGKILL) or self.ended

    def list_checkpoints(self):
        return [os.path.join(self.checkpoints, name) for name in os.listdir(self.checkpoints)
                if name.startswith("step-")]

    def newest_checkpoint(self):
        try:
            return max(self.list_checkpoints(), key=os.path.getmtime, default=None)
        except OSError:
            return None

    def whole_checkpoints(self):
        """Returns those that no deed has damaged; one that was written again at the same step counts as damaged."""
        return set(self.list_checkpoints()) - self.damaged

    def open_cluster(self, mode, checkpoints):
        self.actions, self.full_until, self.damaged = [], 0, set()
        self.removed = self.ended = self.changed = False
        self.anew = False  # what begins without checkpoints may have begun with changed rows
        self.data.put_back()
        self.checkpoints = checkpoints
        sets = ["train.mode=" + mode, "train.steps=%d" % self.steps] + self.own_sets
        if checkpoints:
            sets.append("checkpoint.dir=" + checkpoints)
        run = tempfile.mkdtemp(prefix=mode + "-", dir=self.folder)
        own = ["data.train.path=" + self.data.of_worker(worker) for worker in range(WORKERS)]
        self.cluster = Cluster(self.binary, self.config, run, self.ps, WORKERS, sets, own, self.allow)
        self.cluster.start()
        return run

    def undisturbed(self, mode):
        self.open_cluster(mode, None)
        try:
            for task in self.cluster.tasks:
                task.process.wait(ROUND_LIMIT_S)
            if not self.cluster.done():
                raise Failed("the undisturbed run: %s" % [task.code() for task in self.cluster.tasks])
            result = self.cluster.read_result()
            self.tell("undisturbed %s: %s" % (mode, brief(result)))
            return result
        finally:
            self.cluster.close()

    def disturbed(self, mode, expected, until):
        checkpoints = os.path.join(self.disk, "ckpt")
        run = self.open_cluster(mode, checkpoints)
        self.tell("%s begins" % mode)
        try:
            self.disturb(until)
            result = self.cluster.read_result()
            self.tell("%s ended: %s" % (mode, brief(result)))
            self.compare(mode, result, expected, run)
            return recoveries(run)
        finally:
            self.settle()
            self.cluster.close()
            shutil.rmtree(checkpoints, ignore_errors=True)

    def disturb(self, until):
        """Runs until the run is done. There are no disturbances after `until`."""
        limit = time.monotonic() + ROUND_LIMIT_S
        next_deed = time.monotonic() + self.random.uniform(0.3, 3)
        ending = None
        while not self.cluster.done():
            now = time.monotonic()
            if now > limit:
                raise Failed("the run has not ended in %d s; alive: %s" % (
                    ROUND_LIMIT_S, [task.name for task in self.cluster.tasks if task.alive()]))
            due = [action for at, action in self.actions if at <= now]
            self.actions = [one for one in self.actions if one[0] > now]
            for action in due:
                action()
            self.cluster.tend()
            if self.cluster.begun_ending():
                ending = ending or now
                self.settle()
                if now > ending + 10:
                    self.restart_all()
                    ending = None
            elif self.ended:
                self.settle()
                self.restart_all()
            elif now >= next_deed and now < until:
                self.random.choices([deed for deed, _ in deeds.ALL], [share for _, share in deeds.ALL])[0](self)
                next_deed = time.monotonic() + self.random.uniform(0.2, 4)
            time.sleep(0.01)

    def restart_all(self):
        """Restarts the whole run: a task was killed when the others were done and these do not come back for it, or
        the checkpoints are gone."""
        self.tell("ended with %s; everything starts again" % [task.code() for task in self.cluster.tasks])
        self.start_again()

    def start_again(self):
        self.cluster.end_all()
        if self.removed:
            self.data.put_back()  # what begins anew must begin with the rows of the undisturbed run
        self.removed = self.ended = False
        self.cluster.start()

    def compare(self, mode, result, expected, run):
        deterministic = result.get("deterministic")
        same_bits = mode == "sync" and deterministic and not self.anew
        same = ["global_step"] + (["model_crc", "test_accuracy"] if same_bits else [])
        for key in same:
            if result.get(key) != expected.get(key):
                raise Failed("%s: %s, undisturbed %s" % (key, result.get(key), expected.get(key)))
        if result.get("status") == "done" and mode == "sync" and not deterministic:
            if not self.changed:
                raise Failed("deterministic: %s" % deterministic)
            with open(os.path.join(run, "ps-0.log"), errors="replace") as file:
                if not re.search(r"with other rows of data.train|was trained on other data", file.read()):
                    raise Failed("ps 0 does not say which worker came with other rows")
        if mode != "sync" and deterministic:
            raise Failed("deterministic in %s" % mode)
        if not self.changed and abs(result["test_accuracy"] - expected["test_accuracy"]) > NEAR:
            raise Failed("accuracy %s, undisturbed %s" % (result["test_accuracy"], expected["test_accuracy"]))


def brief(result):
    keys = ("status", "global_step", "model_crc", "test_accuracy", "deterministic")
    return ", ".join("%s %s" % (key, result.get(key)) for key in keys)


def recoveries(run):
    """Returns the seconds from each loss of a ps to the next step."""
    with open(os.path.join(run, "ps-0.log"), errors="replace") as file:
        return [float(seconds) for seconds in re.findall(r"stepping again ([0-9.]+) s", file.read())]


def mount_small(path, mib):
    """Mounts a file system of so many MiB that only this process and its children see, if the system allows it."""
    if os.environ.get("CHAOS_OWN_NAMESPACE") != "1":
        return False
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm" % mib, "chaos", path],
                          stderr=subprocess.DEVNULL).returncode == 0


def enter_namespace():
    """Runs this program again in a namespace in which it may mount."""
    if "CHAOS_OWN_NAMESPACE" in os.environ:
        return
    unshare = ["unshare", "--user", "--map-root-user", "--mount"]
    able = shutil.which("unshare") and subprocess.run(unshare + ["true"], stderr=subprocess.DEVNULL).returncode == 0
    os.environ["CHAOS_OWN_NAMESPACE"] = "1" if able else "0"
    if able:
        os.execvp("unshare", unshare + [sys.executable] + sys.argv)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--steps", type=int, default=6000, help="of each run")
    parser.add_argument("--deep", action="store_true", help="a perceptron whose gradients travel layer by layer")
    parser.add_argument("--replicas", action="store_true", help="with failure.replicas: 1")
    parser.add_argument("--binary", required=True)
    arguments = parser.parse_args()
    arguments.binary = os.path.abspath(arguments.binary)
    return arguments


def main():
    arguments = parse()
    enter_namespace()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = tempfile.mkdtemp(prefix="chaos-", dir=os.environ.get("TEST_TMPDIR"))
    print("chaos: seed %d, %g minutes, %s" % (arguments.seed, arguments.minutes, arguments.binary), flush=True)
    keep = False
    try:
        chaos = Chaos(arguments, folder)
        end = time.monotonic() + 60 * arguments.minutes
        expected, seconds, rounds = {}, [], 0
        while rounds < 2 or time.monotonic() < end:
            mode = ("sync", "async")[rounds % 2]
            if mode not in expected:
                expected[mode] = chaos.undisturbed(mode)
            until = time.monotonic() + min(60, 30 * arguments.minutes)
            seconds += chaos.disturbed(mode, expected[mode], until)
            rounds += 1
    except Failed as failure:
        keep = True
        print("chaos: FAILED with seed %d: %s" % (arguments.seed, failure))
        print("chaos: the logs are in %s" % folder)
        return 1
    finally:
        if chaos_disk_is_mounted(folder):
            subprocess.run(["umount", os.path.join(folder, "disk")])
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    seconds.sort()
    slowest = "; stepping again %.2f s (median), %.2f s (most) after the loss of a ps" % (
        seconds[len(seconds) // 2], seconds[-1]) if seconds else ""
    print("chaos: fine, seed %d: %d runs%s" % (arguments.seed, rounds, slowest))
    return 0


def chaos_disk_is_mounted(folder):
    return os.path.ismount(os.path.join(folder, "disk"))


if __name__ == "__main__":
    sys.exit(main())
