"""Helpers of the races against other programs (sparse_*.py, wide_deep.py): they run a program and say what it took, start
a TensorFlow cluster, run the sides by turns, and print a table.

Whatever was started is ended when the script ends, whichever way; files lie in a directory that is removed then.
"""
import atexit
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

DTRAIN = pathlib.Path(__file__).resolve().parent.parent / "bazel-bin" / "cmd" / "dtrain"

LIMIT_S = 120
LOOPBACK = {"ps": (None, "127.0.0.1"), "worker": (None, "127.0.0.1")}

_running = set()


def _end_all():
    for process in list(_running):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def start(command, **options):
    """subprocess.Popen in a process group of its own, which is killed when this script ends."""
    process = subprocess.Popen([str(part) for part in command], start_new_session=True, **options)
    _running.add(process)
    return process


def work_directory():
    """A directory that is removed when this script ends, also by a signal."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    directory = pathlib.Path(tempfile.mkdtemp(prefix="dtrain-race-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(_end_all)  # the last one registered is the first one called
    return directory


def _tasks(pid):
    """Threads and processes of a process and of those below it, now."""
    threads, processes = 0, 0
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        threads, processes = len(tasks), 1
        for task in tasks:
            for child in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                below = _tasks(child)
                threads, processes = threads + below[0], processes + below[1]
    except OSError:
        pass  # it has ended meanwhile
    return threads, processes


class Run:
    """What a program printed and took: wall_s, processor_s (user and system, with its children), threads and
    processes at the same time at most. The script ends if it fails or takes longer than limit_s."""

    def __init__(self, command, cwd, environment=None, limit_s=LIMIT_S):
        with open(cwd / "stdout", "wb") as out, open(cwd / "stderr", "wb") as err:
            begin = time.perf_counter()
            process = start(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                            env=environment and {**os.environ, **environment})
        over, counts = threading.Event(), []

        def count():
            while not over.wait(0.1):
                counts.append(_tasks(process.pid))
                if time.perf_counter() - begin > limit_s:
                    os.killpg(process.pid, signal.SIGKILL)
                    return

        counter = threading.Thread(target=count, daemon=True)
        counter.start()
        _, status, usage = os.wait4(process.pid, 0)
        self.wall_s = time.perf_counter() - begin
        over.set()
        counter.join()
        process.returncode = os.waitstatus_to_exitcode(status)
        _running.discard(process)
        self.processor_s = usage.ru_utime + usage.ru_stime
        self.threads, self.processes = max(counts, default=(0, 0))
        self.stdout, self.stderr = (cwd / "stdout").read_text(), (cwd / "stderr").read_text()
        if process.returncode != 0:
            said = self.stdout[-2000:] + self.stderr[-2000:]
            sys.exit(f"{' '.join(map(str, command))}: exit {process.returncode} after {self.wall_s:.1f} s\n{said}")


def dtrain_local(program, cwd, config, *arguments, limit_s=LIMIT_S):
    """`dtrain local` with 1 ps and 1 worker: its Run, and in `result` what --result says."""
    (cwd / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    run = Run([program, "local", "--run", "none", "--config", "config.yaml", "--ps", 1, "--workers", 1,
               "--result", "result.json", *arguments], cwd, limit_s=limit_s)
    run.result = json.loads((cwd / "result.json").read_text())
    return run


def tensorflow_server(job, addresses, threads):
    """A task of a TensorFlow cluster, as class TensorFlow starts it: the server and its configuration at a worker; a ps
    serves until its input ends."""
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    ps, worker = addresses.split(",")
    config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    server = v1.train.Server({"ps": [ps], "worker": [worker]}, job_name=job, task_index=0, config=config)
    if job == "ps":
        sys.stdin.read()
        os._exit(0)  # a server has no end of its own
    return server, config


def inside(namespace):
    """What a command that runs in a network namespace begins with; nothing for the host's own."""
    return ["ip", "netns", "exec", namespace] if namespace else []


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class TensorFlow:
    """A cluster of `script --serve JOB ADDRESSES THREADS ...`, 1 ps and 1 worker, that waits for its turns; it takes no
    processor time between them. The worker prints "ready", then reads requests and answers each with its rows a
    second. `hosts` has the network namespace and the address of each."""

    def __init__(self, script, work, threads, *more, hosts=LOOPBACK):
        addresses = ",".join(f"{hosts[job][1]}:{port}" for job, port in zip(("ps", "worker"), free_ports(2)))
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        script = os.path.abspath(script)
        self.tasks = [start([*inside(hosts[job][0]), sys.executable, script, "--serve", job, addresses, threads, *more],
                            env=environment, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            stderr=open(work / f"{job}.{threads}", "w")) for job in ("ps", "worker")]
        if self.tasks[1].stdout.readline() != "ready\n":
            sys.exit((work / f"worker.{threads}").read_text())

    def rate(self, *request):
        self.tasks[1].stdin.write(" ".join(map(str, request)) + "\n")
        self.tasks[1].stdin.flush()
        return float(self.tasks[1].stdout.readline())


def by_turns(sides, rounds):
    """Calls each of `sides` (name -> function) once a round, in the order A B B A, and lists what they return."""
    values = {name: [] for name in sides}
    for turn in range(rounds):
        for name in (sides if turn % 2 == 0 else reversed(sides)):
            label = name if isinstance(name, str) else ", ".join(map(str, name))
            print(f"round {turn + 1} of {rounds}: {label}", file=sys.stderr, flush=True)
            values[name].append(sides[name]())
    return values


def ratios(ours, theirs):
    """The rounds' own ratios: median, smallest, largest."""
    each = sorted(a / b for a, b in zip(ours, theirs))
    return statistics.median(each), each[0], each[-1]


def print_machine():
    processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "?")
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"{cores} cores of {processor}, load {load:.2f} at the start", flush=True)


def print_table(head, rows):
    """Markdown, padded: texts to the left, all else to the right."""
    cells = [list(head)] + [[cell if isinstance(cell, str) else f"{cell:,}" for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    left = [all(isinstance(row[i], str) for row in rows) for i in range(len(head))]
    for number, row in enumerate(cells):
        print("| " + " | ".join(c.ljust(w) if l else c.rjust(w) for c, w, l in zip(row, widths, left)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (w + 2) if l else "-" * (w + 1) + ":" for w, l in zip(widths, left)) + "|")
