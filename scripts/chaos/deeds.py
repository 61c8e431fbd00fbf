"""The disturbances of a run. Each is a function of the Chaos state and returns what it did."""
import os
import shutil
import signal
import time

from cluster import Failed

DETECT_S = 1.0


def kill(state):
    task = state.pick()
    state.tell("SIGKILL to %s" % task.name)
    task.signal(signal.SIGKILL)


def kill_two(state):
    kill(state)
    kill(state)


def sleep(state):
    """SIGSTOP for longer than any task waits, then SIGCONT."""
    task, length = state.pick(), state.random.uniform(1.2, 3) * DETECT_S
    state.tell("SIGSTOP to %s for %.1f s" % (task.name, length))
    task.signal(signal.SIGSTOP)
    state.later(length, lambda: task.signal(signal.SIGCONT))


def nap(state):
    """SIGSTOP for a time too short to be noticed."""
    task, length = state.pick(), state.random.uniform(0.1, 0.6) * DETECT_S
    state.tell("SIGSTOP to %s for %.1f s" % (task.name, length))
    task.signal(signal.SIGSTOP)
    state.later(length, lambda: task.signal(signal.SIGCONT))


def terminate(state):
    """Asks the run to end at one task; when all have ended, everything is started again."""
    task = state.pick()
    name, number = state.random.choice([("SIGTERM", signal.SIGTERM), ("SIGINT", signal.SIGINT)])
    state.tell("%s to %s" % (name, task.name))
    state.settle()
    task.signal(number)
    if not state.wait_all_ended(state.grace_s):
        living = [one for one in state.cluster.tasks if one.alive()]
        if task.name == "ps 0" and task.code() == 128 + number:
            raise Failed("ps 0 has ended the run, and %s do not know it" % ", ".join(one.name for one in living))
        # A task that has not joined yet ends alone.
        state.tell("%s to %s too" % (name, ", ".join(one.name for one in living)))
        for one in living:
            one.signal(number)
        if not state.wait_all_ended(state.grace_s + 15):
            raise Failed("%s still there after the signal" % ", ".join(
                one.name for one in state.cluster.tasks if one.alive()))
    codes = [one.code() for one in state.cluster.tasks]
    state.tell("all have ended, with %s; everything starts again" % codes)
    if not set(codes) <= {0, 1, 4, 128 + number, -number, -signal.SIGKILL} | ({2} if state.removed else set()):
        raise Failed("exit codes after the signal: %s" % codes)
    if set(codes) != {0}:
        state.start_again()


def cut(state):
    which = state.random.randrange(len(state.cluster.proxies))
    state.tell("cuts all connections to ps %d" % which)
    state.cluster.proxies[which].cut()


def silence(state):
    which = state.random.randrange(len(state.cluster.proxies))
    length = state.random.uniform(0.3, 3) * DETECT_S
    proxy = state.cluster.proxies[which]
    state.tell("nothing reaches ps %d, or comes from it, for %.1f s" % (which, length))
    proxy.hold(True)
    state.later(length, lambda: proxy.hold(False))


def fill_disk(state):
    if not state.small_disk:
        return state.tell("no full disk: no file system of its own here")
    length = state.random.uniform(0.5, 4)
    ballast = os.path.join(state.disk, "ballast")
    state.tell("the disk of the checkpoints is full for %.1f s" % length)
    state.note_full(length)
    with open(ballast, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65536))
        except OSError:
            pass

    def make_room():
        if os.path.exists(ballast):
            os.remove(ballast)
    state.later(length, make_room)


def damage(state):
    """Flips a byte of the newest checkpoint, or cuts one of its files, and kills a ps so that it is read."""
    newest = state.newest_checkpoint()
    if newest is None:
        return
    # A run all of whose checkpoints are damaged ends, and says so.
    if not state.whole_checkpoints() - {newest}:
        return state.tell("no damage: %s is the only whole checkpoint" % os.path.basename(newest))
    try:
        path = os.path.join(newest, state.random.choice(sorted(os.listdir(newest))))
        size = os.path.getsize(path)
        at, flips = state.random.randrange(size), state.random.random() < 0.5
        with open(path, "r+b") as file:
            if flips:
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ (1 << state.random.randrange(8))]))
            else:
                file.truncate(at)
        state.damaged.add(newest)
    except (OSError, ValueError):
        return state.tell("the newest checkpoint went away meanwhile")
    task = state.pick("ps")
    state.tell("%s byte %d of %s/%s; SIGKILL to %s" % ("flips" if flips else "cuts from", at,
               os.path.basename(newest), os.path.basename(path), task.name))
    task.signal(signal.SIGKILL)


def lose(state):
    """Kills a task, or stops it for longer than any task waits, and waits for a part of the time until that is told."""
    state.random.choice([kill, sleep])(state)
    time.sleep(state.random.uniform(0, 1.5) * DETECT_S)


def terminate_without_one(state):
    lose(state)
    terminate(state)


def change_data(state):
    """A worker comes back with other rows: fewer, with other labels or with other features."""
    task = state.pick("worker")
    how = state.random.choice(["rows", "labels", "features"])
    state.tell("SIGKILL to %s, which gets other %s" % (task.name, how))
    task.signal(signal.SIGKILL)
    state.data.change(int(task.name.split()[1]), how)
    state.changed = True


def change_data_without_one(state):
    lose(state)
    change_data(state)


def remove_directory(state):
    """Removes checkpoint.dir while a task is lost: without it the run goes on, or ends and says what is missing."""
    lose(state)
    state.tell("removes %s" % state.checkpoints)
    shutil.rmtree(state.checkpoints, ignore_errors=True)
    state.removed = True
    state.anew |= state.changed


ALL = [(kill, 5), (kill_two, 1), (sleep, 2), (nap, 1), (terminate, 2), (cut, 2), (silence, 2), (fill_disk, 1),
       (damage, 2), (terminate_without_one, 1), (change_data_without_one, 1), (remove_directory, 1)]
