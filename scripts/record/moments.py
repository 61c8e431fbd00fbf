"""Moments of a run, recognised by its files as any user sees them. No log is read."""
import ctypes
import os
import select
import struct
import time

IN_OPEN, IN_CREATE, IN_MOVED_TO = 0x20, 0x100, 0x80
EVENT = struct.Struct("iIII")
POLL_S = 0.002
libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Names that are opened or made in a directory, as the kernel reports them, so that no moment is missed."""

    def __init__(self, directory, mask):
        self.fd = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0 or libc.inotify_add_watch(self.fd, os.fsencode(directory), mask) < 0:
            raise OSError(ctypes.get_errno(), "inotify: %s" % directory)

    def names(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return []
        data, found = os.read(self.fd, 65536), []
        while data:
            length = EVENT.unpack_from(data)[3]
            found.append(os.fsdecode(data[EVENT.size:EVENT.size + length].rstrip(b"\0")))
            data = data[EVENT.size + length:]
        return found

    def close(self):
        os.close(self.fd)


def steps_in(checkpoints):
    """Returns the steps of the complete checkpoints."""
    try:
        names = os.listdir(checkpoints)
    except OSError:
        return []
    return sorted(int(name[5:]) for name in names if name.startswith("step-") and name[5:].isdigit())


def until(condition, run, seconds):
    """Waits for the condition. Returns False if the run ends or time is up before."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline or run.ended():
            return bool(condition())
        time.sleep(POLL_S)
    return True


def until_named(directory, mask, wanted, run, seconds):
    """Waits for a name for which `wanted` is true."""
    watch, deadline = Watch(directory, mask), time.monotonic() + seconds
    try:
        while time.monotonic() < deadline and not run.ended():
            if any(wanted(name) for name in watch.names(0.05)):
                return True
        return False
    finally:
        watch.close()


class LaterSave:
    """A save after the first one: it begins when a name with a step above 0 appears."""

    def __init__(self):
        self.stepped = False

    def __call__(self, name):
        if name.startswith(".step-"):
            return self.stepped
        self.stepped |= name.startswith("step-") and name[5:].isdigit() and int(name[5:]) > 0
        return False


def wait_for_start(run, seconds):
    """The start: one worker is missing, so the others wait for it."""
    del seconds
    time.sleep(0.6)
    return not run.ended()


def wait_for_step(run, seconds):
    return until_named(run.checkpoints, IN_MOVED_TO, lambda name: name > "step-000000000", run, seconds)


def wait_for_save(run, seconds):
    return until_named(run.checkpoints, IN_MOVED_TO | IN_CREATE, LaterSave(), run, seconds)


def wait_for_restore(run, seconds):
    """A task opens the values of the checkpoint that the run resumes from."""
    newest = "step-%09d" % steps_in(run.checkpoints)[-1]
    return until_named(os.path.join(run.checkpoints, newest), IN_OPEN, lambda name: name.startswith("shard-"), run,
                       seconds)


def wait_for_evaluate(run, seconds):
    """The last step is taken and saved; a large model and many test rows make this moment long."""
    last = "step-%09d" % run.steps
    return until_named(run.checkpoints, IN_MOVED_TO, lambda name: name == last, run, seconds)


def wait_for_end(run, seconds):
    """A task has written its result."""
    return until(lambda: any(run.read_result(task.name) for task in run.tasks), run, seconds)


WAIT_FOR = {"start": wait_for_start, "step": wait_for_step, "save": wait_for_save, "restore": wait_for_restore,
            "evaluate": wait_for_evaluate, "end": wait_for_end}
