"""The ways in which `dtrain launch` loses a machine: a cut ssh connection, a launcher that is killed, a frozen machine.
The machines are an sshd on this one, with keys of its own; nothing of the user's ~/.ssh is read or written."""
import collections
import getpass
import os
import signal
import subprocess
import time
import uuid

import moments
import outcome
from cluster import Task, reserve_port

SSHD = "/usr/sbin/sshd"
Scenario = collections.namedtuple("Scenario", "way machine mode")
SILENCE_S = 2
FROZEN_S = 8.0
GOES_ON_S = 7.0  # after it a run that was not ended by the disturbance is asked to end
GONE_S = 20.0
# Addresses of this machine: ps 0 and worker 0 are on the first, worker 1 on the second.
ADDRESSES = {"ps": "127.0.0.2", "worker": "127.0.0.3"}
JOB = """
model: {kind: linear, inputs: 2}
data: {train: {format: synthetic, name: linear}}
train: {batch_size: 4000, steps: 1000000000, mode: %(mode)s}
cluster: {ps: ["%(ps)s:%(port)d"], worker: ["%(ps)s:1", "%(worker)s:2"]}
checkpoint: {dir: %(folder)s/ckpt, every_secs: 0}
failure: {detect_s: 2, wait_s: 3, startup_timeout_s: 20, grace_s: 5}
security: {insecure: true}
launch:
  silence_s: %(silence)d
  ssh_config: %(folder)s/client
  hosts:
    %(ps)s: {directory: %(folder)s, address: ps-machine, environment: {RECORD_MACHINE: ps-%(mark)s}}
    %(worker)s: {directory: %(folder)s, address: worker-machine, environment: {RECORD_MACHINE: worker-%(mark)s}}
"""


def all_scenarios(quick):
    modes = ("async",) if quick else ("async", "sync")
    if not os.access(SSHD, os.X_OK):
        print("SKIPPED: the ways in which launching ends: no %s here; install openssh-server" % SSHD)
        return []
    machines = ("worker",) if quick else ("worker", "ps")
    return [Scenario("launcher killed", "here", mode) for mode in modes] + [
        Scenario(way, machine, mode) for mode in modes for machine in machines for way in ("ssh cut", "host frozen")]


def name_of(scenario):
    return "launch %s: %s (%s)" % (scenario.mode, scenario.way, scenario.machine)


class Sshd:
    """An sshd to which every name leads. close() ends its process and its sessions."""

    def __init__(self, folder):
        self.port = reserve_port()
        number = self.port.getsockname()[1]
        for name in ("machine", "user"):
            path = os.path.join(folder, name)
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        write(folder, "authorized", read(folder, "user.pub"))
        write(folder, "known", "machine " + read(folder, "machine.pub"))
        write(folder, "client", "Host *\nHostName 127.0.0.1\nPort %d\nIdentityFile %s/user\nIdentitiesOnly yes\n"
              "HostKeyAlias machine\nUserKnownHostsFile %s/known\nGlobalKnownHostsFile /dev/null\nUser %s\n" % (
                  number, folder, folder, getpass.getuser()))
        write(folder, "server", "ListenAddress 127.0.0.1\nPort %d\nHostKey %s/machine\nAuthorizedKeysFile "
              "%s/authorized\nStrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n"
              "KbdInteractiveAuthentication no\nMaxStartups 100\n" % (number, folder, folder))
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)  # which an installed service has made
        self.task = Task("sshd", [SSHD, "-D", "-e", "-f", os.path.join(folder, "server")],
                         os.path.join(folder, "sshd.log"))
        self.task.start()
        deadline = time.monotonic() + 10
        while "Server listening" not in read(folder, "sshd.log"):
            if time.monotonic() > deadline or not self.task.alive():
                raise RuntimeError("sshd does not run here: " + read(folder, "sshd.log"))
            time.sleep(moments.POLL_S)

    def sessions(self, machine_mark):
        """Returns all processes of the sessions with a marked process, sshd's own included."""
        parents = {pid: parent_of(pid) for pid in pids()}
        found = set()
        for pid in marked(machine_mark):
            while pid and pid != self.task.process.pid:
                found.add(pid)
                pid = parents.get(pid, 0)
                if pid <= 1:
                    break
        return found

    def close(self):
        below = {pid for pid in pids() if self.task.process.pid in ancestors(pid)}
        self.task.signal(signal.SIGKILL)
        self.task.process.wait()
        for pid in below:
            send(pid, signal.SIGKILL)
        self.port.close()


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def read(folder, name):
    with open(os.path.join(folder, name), errors="replace") as file:
        return file.read()


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def proc(pid, name):
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as file:
            return file.read()
    except OSError:
        return b""


def parent_of(pid):
    words = proc(pid, "stat").rpartition(b")")[2].split()
    return int(words[1]) if len(words) > 1 else 0


def ancestors(pid):
    found = []
    while (pid := parent_of(pid)) > 1:
        found.append(pid)
    return found


def marked(mark):
    """Returns the running processes with this in their environment."""
    return [pid for pid in pids() if mark.encode() in proc(pid, "environ")]


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def ssh_clients(mark, machine):
    name = (machine + "-machine").encode()
    return [pid for pid in marked(mark) if proc(pid, "comm").strip() == b"ssh" and name in proc(pid, "cmdline")]


class Launch:
    """The launcher and everything that it starts. Moments use `tasks` and `ended`."""

    def __init__(self, binary, folder, mode):
        self.folder, self.mark = folder, "record-" + uuid.uuid4().hex
        self.checkpoints = os.path.join(folder, "ckpt")
        self.result = os.path.join(folder, "result.json")
        self.port = reserve_port()
        write(folder, "job.yaml", JOB % dict(
            ADDRESSES, mode=mode, folder=folder, mark=self.mark, silence=SILENCE_S, port=self.port.getsockname()[1]))
        self.launcher = Task("launch", ["env", "RECORD_RUN=" + self.mark, binary, "launch", "--config",
                                        os.path.join(folder, "job.yaml"), "--result", self.result],
                             os.path.join(folder, "launch.log"))

    def ended(self):
        return not self.launcher.alive()

    def everything(self):
        return marked(self.mark)

    def close(self):
        for pid in self.everything():
            send(pid, signal.SIGKILL)
        self.launcher.process.wait()
        self.port.close()


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def disturb(launch, sshd, scenario):
    """Disturbs the run. Returns the processes to be continued later."""
    if scenario.way == "launcher killed":
        launch.launcher.signal(signal.SIGKILL)
        return []
    if scenario.way == "ssh cut":
        clients = ssh_clients(launch.mark, scenario.machine)
        if not clients:
            raise RuntimeError("no ssh to %s" % scenario.machine)
        for pid in clients:
            send(pid, signal.SIGKILL)
        return []
    frozen = sshd.sessions(scenario.machine + "-" + launch.mark)
    if not frozen:
        raise RuntimeError("nothing runs on %s" % scenario.machine)
    for pid in frozen:
        send(pid, signal.SIGSTOP)
    return frozen


def watch(launch, frozen):
    """Waits until the run has ended, by the disturbance or on request. Returns whether it went on."""
    begun = time.monotonic()
    ended = wait_until(launch.ended, FROZEN_S if frozen else GOES_ON_S)
    if frozen:
        time.sleep(max(0.0, begun + FROZEN_S - time.monotonic()))
        for pid in frozen:
            send(pid, signal.SIGCONT)
    if not ended:
        launch.launcher.signal(signal.SIGTERM)
        wait_until(launch.ended, GONE_S)
    return not ended


def play(binary, scenario, folder):
    """Returns the outcome of one launch, by facet."""
    os.makedirs(folder)
    sshd, launch = Sshd(folder), None
    try:
        launch = Launch(binary, folder, scenario.mode)
        launch.launcher.start()
        # The first checkpoint is written before the first step, and all tasks are there then.
        reached = moments.until(lambda: moments.steps_in(launch.checkpoints), launch, 40)
        time.sleep(0.5)
        saved = len(moments.steps_in(launch.checkpoints))
        went_on = watch(launch, disturb(launch, sshd, scenario))
        gone = wait_until(lambda: not launch.everything(), GONE_S)
        return facets(launch, went_on, dict(
            moment="reached" if reached else "missed",
            saved="yes" if len(moments.steps_in(launch.checkpoints)) > saved else "no",
            **{"left behind": "nothing" if gone else "processes"}))
    finally:
        if launch:
            launch.close()
        sshd.close()


def facets(launch, went_on, more):
    result = outcome.read_result(launch.result)
    found = outcome.result_facets("launch", result)
    found["codes of launch"] = str(launch.launcher.code())
    found["went on"] = "yes" if went_on else "no"
    if launch.launcher.code() != -signal.SIGKILL:
        found["last line of launch"] = outcome.last_line(launch.launcher.log, launch.folder)
    return dict(found, **more)
