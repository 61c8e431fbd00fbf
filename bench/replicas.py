"""What replicas cost (failure.replicas), and how soon a run steps again behind the loss of a ps.

    python bench/replicas.py rate    [--rounds 5] [--seconds 3] [--jobs mlp softmax sparse hash async linear] [--nets unix tcp]
    python bench/replicas.py cost    [--rounds 5] [--seconds 3] [--jobs mlp softmax sparse hash 1GiB]
    python bench/replicas.py recover [--rounds 3] [--sizes softmax 64MiB 1GiB hash] [--ps 1]
    [--dtrain bazel-bin/cmd/dtrain] [--beside PROGRAM]

rate: 2 ps and 2 workers, steps/s with replicas: 1 beside replicas: 0, by turns; over Unix sockets by `dtrain local`, over TCP
by tasks of role and index on 127.0.0.1. The jobs async and linear have all parameters on ps 0. With --beside the sides are replicas: 0 of this program and of another one.
cost: the same over TCP, the processor time of both ps for a step, and the MiB of the larger one.
recover: 2 ps and 1 worker by tasks; the ps is killed by SIGKILL and started again at once: the seconds until the worker's next step.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import time

import race
import scale
import slow_worker

SPARSE_ROWS, SPARSE_FEATURES, WIDTH = 20000, 39, 10_000_000
HASH_ROWS = 10_000_000  # of each ps


def write_rows(work):
    """Rows of 39 features of 10 million, drawn evenly."""
    import random
    draw = random.Random(1)
    with open(work / "rows.svm", "w") as out:
        for row in range(SPARSE_ROWS):
            features = sorted(draw.sample(range(1, WIDTH), SPARSE_FEATURES))
            out.write(f"{row % 2} " + " ".join(f"{feature}:1" for feature in features) + "\n")


def jobs(work):
    mnist = {"train": {"format": "idx", "images": slow_worker.copy(work, "train-images-idx3-ubyte.gz", 0),
                       "labels": slow_worker.copy(work, "train-labels-idx1-ubyte.gz", 0)}}
    sparse = {"train": {"format": "libsvm", "path": str(work / "rows.svm")}, "shuffle": False}
    sgd = {"kind": "sgd", "learning_rate": 0.01}
    on_ps_0 = {"policy": "pin", "pin": ["weights/*=0", "biases/*=0"]}
    return {
        "mlp": {"model": {"kind": "mlp", "inputs": 784, "hidden": [100], "outputs": 10}, "data": mnist,
                "train": {"batch_size": 100, "in_flight": 2, "optimizer": sgd}},
        "softmax": {"model": {"kind": "softmax"}, "data": mnist,
                    "train": {"mode": "sync", "batch_size": 100, "optimizer": sgd}},
        "async": {"model": {"kind": "softmax"}, "data": mnist, "train": {"batch_size": 100, "optimizer": sgd}, "placement": on_ps_0},
        "linear": {"model": {"kind": "linear", "inputs": 1}, "data": {"train": {"format": "synthetic", "name": "linear"}},
                   "train": {"batch_size": 1, "in_flight": 16, "optimizer": sgd}, "placement": on_ps_0},
        "sparse": {"model": {"kind": "logistic", "inputs": WIDTH}, "data": sparse,
                   "train": {"batch_size": 128, "in_flight": 2, "optimizer": {"kind": "adagrad", "learning_rate": 0.02}}},
        "hash": {"model": {"kind": "logistic", "table": "hash"}, "data": sparse,
                 "train": {"batch_size": 128, "in_flight": 2, "optimizer": {"kind": "adagrad", "learning_rate": 0.02}}}}


def prepared(job, options, replicas):
    job = json.loads(json.dumps(job))
    job["train"]["max_secs"] = options.seconds
    job.update({"eval": {"at_end": False}, "hooks": {"log_every_steps": 0, "progressive": False}})
    if replicas is not None:
        job["failure"] = {"replicas": replicas}
    return job


def rate(options, work, program, job, net):
    if net == "tcp":
        return scale.Cluster(program, work, job, 2, 2, None, {}).rate
    (work / "config.yaml").write_text(json.dumps(job))
    race.Run([program, "local", "--run", "none", "--config", "config.yaml", "--ps", 2, "--workers", 2, "--result",
              "result.json"], work)
    return json.loads((work / "result.json").read_text())["steps_per_s"]


def rates(options, work):
    table = []
    for name in options.jobs:
        job = jobs(work)[name]
        for net in options.nets:
            other = options.beside or options.dtrain
            ours = 0 if options.beside else 1
            measured = race.by_turns({
                f"{name}, {net}, ours": lambda: rate(options, work, options.dtrain, prepared(job, options, ours), net),
                f"{name}, {net}, other": lambda: rate(options, work, other, prepared(job, options, None), net)}, options.rounds)
            first, second = measured.values()
            ratio, low, high = race.ratios(first, second)
            table.append([name, net, round(statistics.median(first)), round(statistics.median(second)), f"{ratio:.2f}",
                          f"{low:.2f} to {high:.2f}"])
            print(table[-1], file=sys.stderr, flush=True)
    race.print_table(["job", "net", "replicas: 0" if options.beside else "replicas: 1",
                      "the other program" if options.beside else "replicas: 0", "ratio", "of the rounds"], table)


def cost(options, work):
    table = []
    for name in options.jobs:
        job = jobs(work)[name] if name in jobs(work) else sized(work, name)

        def run(replicas):
            cluster = scale.Cluster(options.dtrain, work, prepared(job, options, replicas), 2, 2, None, {})
            return cluster.processor_s["ps"] / cluster.steps * 1e6, cluster.max_mib["ps"]

        measured = race.by_turns({f"{name}, {count}": lambda count=count: run(count) for count in (0, 1)}, options.rounds)
        (us0, mib0), (us1, mib1) = ([round(statistics.median(of)) for of in zip(*runs)] for runs in measured.values())
        table.append([name, us0, us1, mib0, mib1])
    race.print_table(["job", "us of the ps a step, replicas: 0", "replicas: 1", "MiB of the larger ps, replicas: 0",
                      "replicas: 1"], table)


def sized(work, size):
    """A job whose ps have so much each, weights and slots together."""
    if size == "softmax":
        return {"model": {"kind": "softmax", "inputs": 784, "outputs": 10},
                "data": {"train": {"format": "synthetic", "name": "digits", "rows": 1000}},
                "train": {"batch_size": 100, "optimizer": {"kind": "sgd", "learning_rate": 0.01}}}
    if size == "hash":
        rows = work / "wide.svm"
        if not rows.exists():
            with open(rows, "w") as out:
                for first in range(1, 2 * HASH_ROWS, 100):
                    out.write("1 " + " ".join(f"{feature}:1" for feature in range(first, first + 100)) + "\n")
        return {"model": {"kind": "logistic", "table": "hash"},
                "data": {"train": {"format": "libsvm", "path": str(rows)}, "shuffle": False},
                "train": {"batch_size": 1000, "optimizer": {"kind": "sgd", "learning_rate": 0.01}}}
    # Half of it are weights, half the momentum of them; each of two ps has a half of both.
    first, second = {"64MiB": (4096, 3300), "1GiB": (16384, 15500)}[size]
    return {"model": {"kind": "mlp", "inputs": 784, "hidden": [first, second], "outputs": 10},
            "data": {"train": {"format": "synthetic", "name": "digits", "rows": 100}},
            "train": {"batch_size": 1, "optimizer": {"kind": "momentum", "learning_rate": 0.0001}}}


class Recovery:
    """Tasks by role over TCP; counts the worker's steps by ps 0's status in its log."""

    def __init__(self, options, work, size):
        job = sized(work, size)
        ports = race.free_ports(2)
        config = {"cluster": {"ps": [f"127.0.0.1:{port}" for port in ports], "worker": ["127.0.0.1:1"]},
                  "eval": {"at_end": False}, "hooks": {"log_every_steps": 1, "progressive": False},
                  "failure": {"replicas": 1, "replica_check": 0}, **job}
        config["train"]["steps"] = 1_000_000
        (work / "cluster.yaml").write_text(json.dumps(config))
        self.work, self.program = work, options.dtrain
        self.tasks = {task: self.start(*task) for task in (("ps", 0), ("ps", 1), ("worker", 0))}
        self.killed = "ps", options.ps
        self.wait_for(f"ps{options.ps}", "has a replica of this ps", 600)

    def start(self, role, index):
        command = [self.program, "--config", "cluster.yaml", "--run", "none", "--role", role, "--index", index]
        return race.start(command, cwd=self.work, stdout=subprocess.DEVNULL, stderr=open(self.work / f"{role}{index}", "a"))

    def wait_for(self, log, text, limit_s):
        end = time.monotonic() + limit_s
        while text not in (said := (self.work / log).read_text()):
            if time.monotonic() > end:
                sys.exit(f"{log}: no '{text}' in {limit_s} s\n{said[-3000:]}")
            time.sleep(0.002)
        return said

    def step_s(self):
        """Seconds of the latest step, as the worker tells."""
        return float(re.findall(r"ms/step ([\d.]+)", (self.work / "worker0").read_text())[-1]) / 1000

    def kill(self):
        """Seconds until the next step, as ps 0 and the worker tell."""
        killed = time.time()
        self.tasks[self.killed].send_signal(signal.SIGKILL)
        self.tasks[self.killed].wait()
        race._running.discard(self.tasks[self.killed])
        self.tasks[self.killed] = self.start(*self.killed)
        said = self.wait_for("ps0", "stepping again", 120)
        return time.time() - killed, re.findall(r"stepping again.*", said)[-1]

    def end(self):
        for task in self.tasks.values():
            task.send_signal(signal.SIGKILL)
            task.wait()
            race._running.discard(task)


def recover(options, work):
    table = []
    for size in options.sizes:
        times, steps = [], []
        for _ in range(options.rounds):
            for log in ("ps0", "ps1", "worker0"):
                (work / log).unlink(missing_ok=True)
            cluster = Recovery(options, work, size)
            if size == "hash":
                cluster.wait_for("worker0", "epoch    2", 300)
            time.sleep(options.seconds)
            steps.append(cluster.step_s())
            times.append(cluster.kill())
            cluster.end()
            print(size, times[-1], file=sys.stderr, flush=True)
        seconds = sorted(time for time, _ in times)
        table.append([size, f"{statistics.median(seconds):.2f}", f"{seconds[0]:.2f} to {seconds[-1]:.2f}",
                      f"{statistics.median(steps):.2f}"])
    race.print_table([f"ps {options.ps} has", "s until the next step", "of the rounds", "s of another step"], table)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rate", "cost", "recover"])
    parser.add_argument("--jobs", nargs="+", default=["mlp", "softmax", "sparse", "hash"])
    parser.add_argument("--nets", nargs="+", default=["unix", "tcp"])
    parser.add_argument("--sizes", nargs="+", default=["64MiB", "1GiB", "hash"])
    parser.add_argument("--ps", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--dtrain", type=pathlib.Path, default=race.DTRAIN)
    parser.add_argument("--beside", type=pathlib.Path)
    options = parser.parse_args()
    options.dtrain = options.dtrain.resolve()
    options.beside = options.beside and options.beside.resolve()
    race.print_machine()
    work = race.work_directory()
    if options.what != "recover":
        write_rows(work)
    {"rate": rates, "cost": cost, "recover": recover}[options.what](options, work)


if __name__ == "__main__":
    main()
