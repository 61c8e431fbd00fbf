"""What `dtrain status` of a run with 3 ps and 20 workers takes on this machine, and what it costs ps 0.

    python bench/status.py [--dtrain PROGRAM] [--asks 100]

Two runs: the workers of the first wait for their rows most of the time, those of the second keep every core busy. Each
answer is timed from the start of the process to its end. The cost is the processor time of all threads of ps 0 while it is
asked, less what it needs in the same time without questions; beside a busy run that difference says nothing.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import time

import race

PS, WORKERS = 3, 20
ROWS = "exec:for i in $(seq 1000); do seq -f 1,%g,3 10000; sleep 1; done"  # a batch each second
WAITING = {"model": {"kind": "linear", "inputs": 2},
           "data": {"train": {"format": "csv", "path": ROWS, "label": 0, "header": False}, "cache": "none", "split": "full"},
           "train": {"batch_size": 10000, "epochs": 1, "optimizer": {"learning_rate": 1e-20}}}
BUSY = {"model": {"kind": "softmax"}, "data": {"train": {"format": "synthetic", "name": "digits", "rows": 10000}},
        "train": {"batch_size": 100, "steps": 100_000_000}}


class Asked:
    def __init__(self, program, work, name, job):
        (work / f"{name}.yaml").write_text(json.dumps({**job, "hooks": {"log_every_steps": 0}}))
        self.ask = [program, "status", "--json", work / name]
        run = race.start([program, "local", "--config", f"{name}.yaml", "--run", name, "--ps", PS, "--workers", WORKERS, "-q"],
                         cwd=work, stdin=subprocess.DEVNULL)
        while True:
            status = self.answer()
            if status.get("phase") == "training" and status["global_step"] > 100:
                break
            if run.poll() is not None:
                raise SystemExit(f"the run ended with exit code {run.returncode}")
            time.sleep(0.1)
        assert status["source"] == "run" and len(status["tasks"]) == PS + WORKERS
        self.leader = int(status["tasks"][0]["process"].split()[-1])
        self.run = run

    def answer(self):
        done = subprocess.run(self.ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def leader_s(self):
        threads = pathlib.Path(f"/proc/{self.leader}/task").glob("*/schedstat")
        return sum(int(thread.read_text().split()[0]) for thread in threads) * 1e-9

    def measure(self, asks):
        """Sorted times of the answers in ms, and the processor time of ps 0 for each of them in ms."""
        begun, before = time.perf_counter(), self.leader_s()
        time.sleep(2)
        idle = (self.leader_s() - before) / (time.perf_counter() - begun)
        times, begun, before = [], time.perf_counter(), self.leader_s()
        for _ in range(asks):
            ask = time.perf_counter()
            subprocess.run(self.ask, stdout=subprocess.DEVNULL, check=True, close_fds=False)
            times.append((time.perf_counter() - ask) * 1e3)
        cost = self.leader_s() - before - idle * (time.perf_counter() - begun)
        self.run.terminate()
        self.run.wait()
        return sorted(times), cost / asks * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dtrain", default=race.DTRAIN)
    parser.add_argument("--asks", type=int, default=100)
    options = parser.parse_args()
    race.print_machine()
    work, rows = race.work_directory(), []
    for name, job in (("waiting", WAITING), ("busy", BUSY)):
        times, cost = Asked(os.path.abspath(options.dtrain), work, name, job).measure(options.asks)
        p99 = times[math.ceil(len(times) * 0.99) - 1]
        rows.append([name, *(round(t, 1) for t in (statistics.median(times), p99, times[-1])),
                     f"{cost:.2f}" if name == "waiting" else "-"])
    race.print_table(["workers", "median ms", "p99", "largest", "ps 0, processor ms"], rows)


if __name__ == "__main__":
    main()
