"""One run of real processes on this machine, and what a user sees of it when it has ended."""
import json
import os
import signal
import time

import outcome
from cluster import Task, reserve_port

PS, WORKERS = 2, 2
RESTART_AFTER_S = 0.3
MAX_LIVES = 4
JOB = """
model: %(model)s
data: {train: {format: synthetic, name: digits, rows: 1000}, test: {format: synthetic, name: digits, rows: %(test)d}}
train: {mode: %(mode)s, batch_size: %(batch)d, steps: %(steps)d, optimizer: {kind: momentum, learning_rate: 0.05}}
eval: {on: test}
hooks: {log_every_steps: 1000}
checkpoint: {every_secs: 0, every_steps: 100, keep: 3}
failure: {detect_s: %(detect)g, worker_lost: %(lost)s, wait_s: %(wait)g, startup_timeout_s: %(startup)g, grace_s: 8}
cluster: {ps: %(ps)s, worker: ["localhost:1", "localhost:2"]}
"""


class Run:
    """Owns the processes. They write into `folder`, and checkpoints into `checkpoints`."""

    def __init__(self, binary, folder, settings):
        self.folder, self.steps = folder, settings["steps"]
        self.checkpoints = os.path.join(folder, "ckpt")
        os.makedirs(self.checkpoints, exist_ok=True)
        self.ports = [reserve_port() for _ in range(PS)]
        addresses = ["127.0.0.1:%d" % port.getsockname()[1] for port in self.ports]
        config = os.path.join(folder, "job.yaml")
        with open(config, "w") as file:
            file.write(JOB % dict(settings, ps=json.dumps(addresses)))
        self.tasks, self.codes, self.restart_at = [], {}, {}
        for role, index in [("ps", i) for i in range(PS)] + [("worker", i) for i in range(WORKERS)]:
            name = "%s %d" % (role, index)
            command = [binary, "--config", config, "--run", "none", "--role", role, "--index", str(index), "--result",
                       self.result_path(name), "--set", "checkpoint.dir=" + self.checkpoints]
            self.tasks.append(Task(name, command, self.log_path(name)))
            self.codes[name] = []

    def log_path(self, name):
        return os.path.join(self.folder, name.replace(" ", "-") + ".log")

    def result_path(self, name):
        return os.path.join(self.folder, name.replace(" ", "-") + ".json")

    def task(self, name):
        return next(task for task in self.tasks if task.name == name)

    def read_result(self, name):
        return outcome.read_result(self.result_path(name))

    def ended(self):
        started = [task for task in self.tasks if task.process]
        return not any(task.alive() for task in started)

    def note_ends(self):
        """Records each end of a task once."""
        for task in self.tasks:
            if task.process and task.code() is not None:
                self.codes[task.name].append(task.code())
                task.process = None

    def is_over(self):
        return any(code in (0, 143) for codes in self.codes.values() for code in codes)

    def may_come_back(self, task):
        """Whether a signal or a lost peer has ended it."""
        codes = self.codes[task.name]
        return not task.process and 0 < len(codes) < MAX_LIVES and codes[-1] in (4, -signal.SIGKILL)

    def start_again(self):
        """Restarts tasks as systemd's Restart=on-failure does. Returns True while there is something left to start."""
        waiting = [task for task in self.tasks if not self.is_over() and self.may_come_back(task)]
        for task in waiting:
            life = (task.name, len(self.codes[task.name]))
            if time.monotonic() >= self.restart_at.setdefault(life, time.monotonic() + RESTART_AFTER_S):
                task.start()
        return bool(waiting)

    def wait_for_end(self, seconds, restarts, actions):
        """Waits for the end. `actions` are pairs of a time and a function. Returns False if tasks are left to be killed."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for action in [one for one in actions if one[0] <= time.monotonic()]:
                actions.remove(action)
                action[1]()
            self.note_ends()
            waiting = restarts and self.start_again()
            if not actions and not waiting and not any(task.process for task in self.tasks):
                return True
            time.sleep(0.01)
        return False

    def close(self):
        for task in self.tasks:
            if task.process:
                task.signal(signal.SIGKILL)
                task.process.wait()
        self.note_ends()
        for port in self.ports:
            port.close()

    def facets(self):
        found = {"files": outcome.files(self.folder)}
        for task in self.tasks:
            codes = self.codes[task.name]
            found["codes of " + task.name] = " ".join(str(code) for code in codes)
            if codes[-1:] == [-signal.SIGKILL]:
                continue  # how far it came is for time to say
            found["last line of " + task.name] = outcome.last_line(self.log_path(task.name), self.folder)
            found.update(outcome.result_facets(task.name, self.read_result(task.name)))
        return found
