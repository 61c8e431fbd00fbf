"""The tasks of a run as processes started by hand, and an outer loop that restarts tasks that died."""
import ctypes
import json
import os
import signal
import socket
import subprocess
import time

from proxy import Proxy

PR_SET_PDEATHSIG = 1
RESTART_AFTER_S = 0.2
libc = ctypes.CDLL(None)


class Failed(Exception):
    """A promise of dtrain was broken."""


def reserve_port():
    """Reserves a port: bound but not listening, so that only dtrain, which may listen at it, gets it."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


class Task:
    """One task of the config, as one process after another."""

    def __init__(self, name, command, log):
        self.name, self.command, self.log = name, command, log
        self.process = None
        self.start_at = 0
        self.stopped = False

    def start(self):
        self.stopped = False
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))

    def code(self):
        """Returns the exit code; None while it runs; minus the signal that killed it."""
        return self.process.poll() if self.process else None

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        if self.alive():
            self.process.send_signal(number)


class Cluster:
    """`sets` are the job, as --set arguments, and `own` one more for each worker. All files are written into `folder`."""

    def __init__(self, binary, config, folder, ps, workers, sets, own, allow):
        self.result = os.path.join(folder, "result.json")
        self.ports = [reserve_port() for _ in range(ps)]
        real = ["127.0.0.1:%d" % port.getsockname()[1] for port in self.ports]
        self.proxies = [Proxy(port.getsockname()) for port in self.ports]
        self.allow = allow
        self.tasks = []
        common = ["cluster.ps=%s" % json.dumps([proxy.address for proxy in self.proxies]),
                  "cluster.worker=%s" % json.dumps(["127.0.0.1:0"] * workers)] + sets
        for role, index in [("ps", i) for i in range(ps)] + [("worker", i) for i in range(workers)]:
            command = [binary, "--config", config, "--run", "none", "--role", role, "--index", str(index)]
            for one in common + ["net.bind=\"%s\"" % real[index] if role == "ps" else own[index]]:
                command += ["--set", one]
            if (role, index) == ("worker", 0):
                command += ["--result", self.result]
            self.tasks.append(Task("%s %d" % (role, index), command,
                                   os.path.join(folder, "%s-%d.log" % (role, index))))

    def start(self):
        for task in self.tasks:
            task.start()

    def begun_ending(self):
        return any(task.code() == 0 for task in self.tasks)

    def done(self):
        return all(task.code() == 0 for task in self.tasks)

    def tend(self):
        """Restarts tasks that died, as systemd's Restart=on-failure does. Fails on an exit code that is not allowed."""
        for task in self.tasks:
            code = task.code()
            if code is None or code == 0:
                continue
            if task.start_at == 0:
                task.start_at = time.monotonic() + RESTART_AFTER_S
                if not self.allow(code):
                    raise Failed("%s ended with %d" % (task.name, code))
            elif time.monotonic() >= task.start_at:
                task.start_at = 0
                task.start()

    def end_all(self):
        for task in self.tasks:
            task.signal(signal.SIGKILL)
        for task in self.tasks:
            if task.process:
                task.process.wait()
            task.start_at = 0

    def close(self):
        self.end_all()
        for proxy in self.proxies:
            proxy.close()
        for port in self.ports:
            port.close()

    def read_result(self):
        try:
            with open(self.result) as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}
