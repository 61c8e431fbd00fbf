"""What a slow worker costs, by data.split, on MNIST with softmax and on rows like Criteo's.

    python bench/slow_worker.py pace     [--shares 0.4 0.4 0.1]    an epoch beside rows / (sum of the rates measured alone)
    python bench/slow_worker.py equal    [--shares 0.3 0.3 0.3]    rates beside the first split's, by turns
    python bench/slow_worker.py quality  [--seeds 5]               means of test accuracy and AUC
    [--splits shard dynamic] [--jobs softmax sparse] [--mode async] [--rounds 3] [--seconds 6] [--dtrain bazel-bin/cmd/dtrain]

MNIST is in shared/data beside the checkout, or where DTRAIN_SHARED_DATA says. A worker is held to its share of the time by
SIGSTOP and SIGCONT. In each period they take turns, so that shares which add up to 1 need one processor, and the ps has the
next: the machine is not what limits the rate, if it has two and nothing else to do.
"""
import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

import race

PERIOD_S = 0.1
MNIST = pathlib.Path(os.environ.get("DTRAIN_SHARED_DATA", race.DTRAIN.parents[2].parent / "shared" / "data")) / "mnist"
MNIST_TIMES, CLICK_ROWS, TEST_CLICKS = 8, 1_000_000, 100_000  # for epochs of about a second
BATCHES = {"softmax": 1000, "sparse": 512}  # of pace and equal: a worker computes for longer than it waits for wake-ups
Run = collections.namedtuple("Run", "rate train_s examples result")


def copy(work, name, number):
    """dtrain refuses a file that is named twice."""
    path = work / f"{number}-{name}"
    if not path.exists():
        shutil.copyfile(MNIST / name, path)
    return str(path)


def jobs(work):
    idx = lambda part, times: {"format": "idx", "images": [copy(work, f"{part}-images-idx3-ubyte.gz", i) for i in range(times)],
                               "labels": [copy(work, f"{part}-labels-idx1-ubyte.gz", i) for i in range(times)]}
    clicks = lambda part: {"format": "criteo", "path": str(work / f"{part}.tsv")}
    return {
        "softmax": {"model": {"kind": "softmax"}, "data": {"train": idx("train", MNIST_TIMES), "test": idx("t10k", 1)},
                    "train": {"batch_size": 100, "optimizer": {"kind": "sgd", "learning_rate": 0.5}}},
        "sparse": {"model": {"kind": "logistic"},
                   "data": {"train": clicks("train"), "test": clicks("test"), "hash_bits": 20},
                   "train": {"batch_size": 128, "reduce": "sum", "optimizer": {"kind": "adagrad", "learning_rate": 0.02}}}}


def write_clicks(program, work):
    for name, first, rows in (("train", 0, CLICK_ROWS), ("test", 1_000_000_000, TEST_CLICKS)):
        subprocess.run([program, "synth", "criteo", "--first", str(first), "--rows", str(rows), "--out",
                        work / f"{name}.tsv"], check=True, stderr=subprocess.DEVNULL)


def worker_pids(parent):
    """Of `dtrain local`, in the order of their index."""
    pids = {}
    for task in os.listdir(f"/proc/{parent}/task"):
        for child in pathlib.Path(f"/proc/{parent}/task/{task}/children").read_text().split():
            words = pathlib.Path(f"/proc/{child}/cmdline").read_text().split("\0")
            if "worker" in words:
                pids[int(words[words.index("--index") + 1])] = int(child)
    return [pids[index] for index in sorted(pids)]


def hold(pid, share, offset, begin, over):
    """Lets a process run from `offset` on for `share` of each period. Thread: its own."""
    for period in range(1 << 62):
        for number, at in ((signal.SIGCONT, offset), (signal.SIGSTOP, offset + share)):
            if over.wait(max(0, begin + (period + at) * PERIOD_S - time.monotonic())):
                return
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return


def run(options, work, job, shares, data=None, train=None):
    """`dtrain local` with a worker for each share."""
    config = {**job, "data": {**job["data"], **(data or {})},
              "train": {**job["train"], "mode": options.mode, **(train or {})},
              "hooks": {"log_every_steps": 0, "progressive": False}}
    (work / "config.yaml").write_text(json.dumps(config))
    (work / "result.json").unlink(missing_ok=True)
    with open(work / "log", "wb") as log:
        local = race.start([options.dtrain, "local", "--run", "none", "--config", "config.yaml", "--ps", options.ps,
                            "--workers", len(shares), "--result", "result.json"], cwd=work, stdout=log, stderr=log,
                           stdin=subprocess.DEVNULL)
    end = time.monotonic() + race.LIMIT_S
    while local.poll() is None and b"tasks are here after" not in (work / "log").read_bytes():
        time.sleep(0.005)
    over, begin, holders = threading.Event(), time.monotonic(), []
    pids = worker_pids(local.pid) if local.poll() is None and min(shares) < 1 else []
    for index, pid in enumerate(pids):
        holders.append(threading.Thread(target=hold, args=(pid, shares[index], sum(shares[:index]) % 1, begin, over)))
        holders[-1].start()
    while local.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    over.set()
    for holder in holders:
        holder.join()
    if local.poll() != 0:
        sys.exit(f"dtrain local: exit {local.poll()}\n{(work / 'log').read_text()[-3000:]}")
    race._running.discard(local)
    result = json.loads((work / "result.json").read_text())
    return Run(result["examples_per_s"], result["train_s"], result["examples"], result)


def timed(name, job):
    """The job without evaluation."""
    data = {key: value for key, value in job["data"].items() if key != "test"}
    return {**job, "data": data, "train": {**job["train"], "batch_size": BATCHES[name]}}


def pace(options, work, name, job):
    job = timed(name, job)
    rows = MNIST_TIMES * 60_000 if name == "softmax" else CLICK_ROWS
    alone = [[] for _ in options.shares]
    sides = {f"worker {i} alone": lambda i=i: alone[i].append(run(options, work, job, [options.shares[i]], {"split": "shard"},
                                                                 {"max_secs": options.seconds}).rate)
             for i in range(len(options.shares))}
    race.by_turns(sides, options.rounds)
    total = sum(map(statistics.median, alone))
    epochs = max(2, round(options.seconds * total / rows))
    measured = race.by_turns({split: lambda split=split: run(options, work, job, options.shares, {"split": split},
                                                             {"epochs": epochs}) for split in options.splits}, options.rounds)
    table = []
    for split, runs in measured.items():
        for one in runs:
            if one.examples != rows * epochs:
                sys.exit(f"{split}: {one.examples} rows in place of {rows * epochs}")
        times = sorted(one.train_s / epochs for one in runs)
        ratios = [t * total / rows for t in times]
        table.append([name, split, ", ".join(f"{statistics.median(r):,.0f}" for r in alone), epochs,
                      f"{rows / total:.3f}", f"{statistics.median(times):.3f}", f"{statistics.median(ratios):.2f}",
                      f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"])
    return table


def equal(options, work, name, job):
    job = timed(name, job)
    rows = MNIST_TIMES * 60_000 if name == "softmax" else CLICK_ROWS
    guess = run(options, work, job, options.shares, {"split": "shard"}, {"max_secs": 2}).rate
    epochs = max(2, round(options.seconds * guess / rows))
    rates = race.by_turns({split: lambda split=split: run(options, work, job, options.shares, {"split": split},
                                                          {"epochs": epochs}).rate for split in options.splits}, options.rounds)
    first, table = rates[options.splits[0]], []
    for split, own in rates.items():
        median, smallest, largest = race.ratios(own, first)
        table.append([name, split, epochs, round(statistics.median(own)), f"{median:.3f}", f"{smallest:.3f}", f"{largest:.3f}"])
    return table


def quality(options, work, name, job):
    figure = "test_accuracy" if name == "softmax" else "test_auc"
    once = {**job, "data": {**job["data"]}}
    if name == "softmax":
        once["data"]["train"] = {key: value[:1] if isinstance(value, list) else value
                                 for key, value in job["data"]["train"].items()}
    train = {"epochs": 5 if name == "softmax" else 1}
    found = race.by_turns({(split, seed): lambda split=split, seed=seed: run(
        options, work, once, [1, 1, 1], {"split": split, "seed": seed}, train).result[figure]
        for seed in range(1, options.seeds + 1) for split in options.splits}, options.rounds)
    means, table = {}, []
    for split in options.splits:
        values = [value for (of, _), own in found.items() if of == split for value in own]
        means[split] = statistics.mean(values)
        table.append([name, split, figure, len(values), f"{means[split]:.5f}", f"{min(values):.5f}", f"{max(values):.5f}",
                      f"{means[split] - means[options.splits[0]]:+.5f}"])
    return table


MEASURES = {
    "pace": (pace, ["job", "split", "rows/s alone", "epochs", "s, as their sum", "s an epoch", "ratio", "smallest", "largest"]),
    "equal": (equal, ["job", "split", "epochs", "rows/s", "ratio", "smallest", "largest"]),
    "quality": (quality, ["job", "split", "figure", "runs", "mean", "smallest", "largest", "beside the first"])}
SHARES = {"pace": [0.4, 0.4, 0.1], "equal": [0.3, 0.3, 0.3], "quality": [1, 1, 1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("--shares", type=float, nargs="+")
    parser.add_argument("--splits", nargs="+", default=["shard", "dynamic"])
    parser.add_argument("--jobs", nargs="+", choices=("softmax", "sparse"), default=["softmax", "sparse"])
    parser.add_argument("--mode", default="async")
    parser.add_argument("--ps", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--dtrain", default=race.DTRAIN)
    options = parser.parse_args()
    options.dtrain = os.path.abspath(options.dtrain)
    options.shares = options.shares or SHARES[options.what]
    race.print_machine()
    work = race.work_directory()
    if "sparse" in options.jobs:
        write_clicks(options.dtrain, work)
    measure, head = MEASURES[options.what]
    all_jobs = jobs(work)
    race.print_table(head, [row for name in options.jobs for row in measure(options, work, name, all_jobs[name])])


if __name__ == "__main__":
    main()
