"""The cost model of docs/scale.md: its coefficients from three runs, its predictions, and their measurement.

    python bench/scale.py calibrate [--out scale.json]     three runs of 1 or 2 ps and 1 worker
    python bench/scale.py predict  [--from scale.json]     rows/s of the cases below, and of the large cluster
    python bench/scale.py measure  [--from scale.json]     the cases themselves, beside the predictions

All cases train logistic regression with sgd, asynchronously, on 131,072 rows of 39 uniform features of 10,000,000 in
memory, with in_flight 2. Links are pairs of network devices between two network namespaces, one for the workers and one
for the ps, each way limited by a token bucket (tc tbf); that needs root and iproute2. The part of the processors that is
busy comes from the calibration, so it must have as many processes as there are cores: 2. Exit 1 if the median error of the
predictions is above 20 %, or the largest above 40 %.
"""
import argparse
import atexit
import json
import math
import os
import statistics
import subprocess
import sys
import time

import numpy as np

import race

WIDTH, FEATURES, ROWS, RATE, IN_FLIGHT = 10_000_000, 39, 131_072, 0.1, 2
HEADER = 100          # bytes of a message beside keys and values, with ZMTP's and TCP's own
BLOCK_BYTES, MAX_BLOCKS = 512 << 10, 16  # rows of large batches travel in blocks (trainer/model/layout.cc)
LINKS = {"1 Gbit/s": 125e6, "10 Gbit/s": 1250e6}
# ps, workers, rows of a batch, link
CALIBRATION = ((1, 1, 128, ""), (1, 1, 4096, ""), (2, 1, 128, ""))
CASES = ((1, 1, 1024, ""), (1, 2, 128, ""), (1, 3, 1024, ""), (2, 1, 1024, ""), (2, 2, 128, ""), (2, 2, 4096, ""),
         (3, 1, 512, ""), (1, 1, 4096, "1 Gbit/s"), (1, 2, 1024, "1 Gbit/s"), (2, 2, 1024, "1 Gbit/s"),
         (1, 1, 1024, "10 Gbit/s"), (1, 1, 4096, "10 Gbit/s"))
TOGETHER = ((8, 1, 1024, ""), (4, 4, 512, ""), (8, 8, 128, ""))  # more processes than cores: that they run


def unique(batch, width=WIDTH, features=FEATURES):
    return width * -math.expm1(-batch * features / width) + 1


def there_bytes(ps, batch, keys, width=WIDTH):
    """Of a step's messages to all ps: a value and a packed key of each row."""
    key = (2.85 + math.log2(width / keys)) / 8
    return (key + 4) * keys + HEADER * ps * blocks(ps, batch)


def blocks(ps, batch):
    return min(max(batch * 64 * 8 // ps // BLOCK_BYTES, 1), MAX_BLOCKS)


class Model:
    """Processor seconds of a step, linear in its features, keys and messages; the slowest resource sets the rate."""

    def __init__(self, coefficients):
        self.__dict__.update(coefficients)

    def worker_s(self, ps, batch, features=FEATURES):
        return self.worker_step + self.worker_feature * batch * features + self.worker_message * ps * blocks(ps, batch)

    def ps_s(self, ps, batch, keys):
        return self.ps_message * ps * blocks(ps, batch) + self.ps_key * keys

    def rates(self, ps, workers, batch, link, cores=None, keys=None, features=FEATURES):
        """Steps/s of all workers that each resource allows."""
        keys = keys or unique(batch)
        worker, of_ps = self.worker_s(ps, batch, features), self.ps_s(ps, batch, keys)
        rates = {"workers": workers / worker, "ps": ps / of_ps}
        if cores:
            rates["processors"] = cores * self.busy / (worker + of_ps)
        if link:
            rates["link"] = LINKS[link] / there_bytes(ps, batch, keys)
        return rates


def namespaces(link):
    """Two namespaces with a limited link between them, and the address of each; they go when this script ends."""
    names = [f"dtrain-scale-{os.getpid()}-{link.split()[0]}-{side}" for side in ("ps", "worker")]
    run = lambda *words: subprocess.run(words, check=True)
    for name in names:
        run("ip", "netns", "add", name)
        atexit.register(subprocess.run, ["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)
    run("ip", "link", "add", "link0", "netns", names[0], "type", "veth", "peer", "name", "link0", "netns", names[1])
    for number, name in enumerate(names):
        run("ip", "-n", name, "address", "add", f"10.78.0.{number + 1}/24", "dev", "link0")
        for device in ("lo", "link0"):
            run("ip", "-n", name, "link", "set", device, "up")
        run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "link0", "root", "tbf", "rate",
            f"{int(LINKS[link] * 8)}bit", "burst", "1mb", "latency", "100ms")
    return {"ps": (names[0], "10.78.0.1"), "worker": (names[1], "10.78.0.2")}


class Cluster:
    """One run of a job on a link: its steps/s, the processor seconds of its ps and workers, and the MiB of the largest."""

    def __init__(self, program, work, job, ps, workers, link, hosts):
        where = hosts.get(link, race.LOOPBACK)
        ports = race.free_ports(ps)
        config = {
            "cluster": {"ps": [f"{where['ps'][1]}:{port}" for port in ports],
                        "worker": [f"{where['worker'][1]}:{index + 1}" for index in range(workers)]},
            "eval": {"at_end": False}, "hooks": {"log_every_steps": 0},
            "security": {"insecure": bool(link)},  # nobody else is in the namespaces
            **job}
        (work / "cluster.yaml").write_text(json.dumps(config))
        tasks = {}
        for role, count in (("ps", ps), ("worker", workers)):
            for index in range(count):
                command = [*race.inside(where[role][0]), program, "--config", "cluster.yaml", "--run", "none", "--role", role,
                           "--index", index]
                command += ["--result", "result.json"] if (role, index) == ("worker", 0) else []
                tasks[role, index] = race.start(command, cwd=work, stdout=subprocess.DEVNULL,
                                                stderr=open(work / f"{role}{index}", "w"))
        self.processor_s = {"ps": 0.0, "worker": 0.0}
        self.max_mib = {"ps": 0, "worker": 0}
        for (role, index), task in tasks.items():
            end = time.monotonic() + race.LIMIT_S
            while not (waited := os.wait4(task.pid, os.WNOHANG))[0]:
                if time.monotonic() > end:
                    sys.exit(f"{role} {index}: has not ended in {race.LIMIT_S} s")
                time.sleep(0.01)
            _, status, usage = waited
            task.returncode = os.waitstatus_to_exitcode(status)
            race._running.discard(task)
            if task.returncode != 0:
                sys.exit(f"{role} {index}: exit {task.returncode}\n{(work / f'{role}{index}').read_text()[-2000:]}")
            self.processor_s[role] += usage.ru_utime + usage.ru_stime
            self.max_mib[role] = max(self.max_mib[role], usage.ru_maxrss // 1024)
        result = json.loads((work / "result.json").read_text())
        self.steps, self.rate = result["global_step"], result["steps_per_s"]


def sparse_cluster(program, work, case, seconds, hosts):
    ps, workers, batch, link = case
    job = {"model": {"kind": "logistic", "inputs": WIDTH},
           "data": {"train": {"format": "libsvm", "path": str(work / "rows.svm")}, "shuffle": False},
           "train": {"mode": "async", "batch_size": batch, "in_flight": IN_FLIGHT, "max_secs": seconds,
                     "optimizer": {"kind": "sgd", "learning_rate": RATE}}}
    return Cluster(program, work, job, ps, workers, link, hosts)


def write_rows(work):
    random = np.random.default_rng(1)
    ids, labels = random.integers(0, WIDTH, (ROWS, FEATURES)) + 1, random.integers(0, 2, ROWS)
    with open(work / "rows.svm", "w") as file:
        for label, features in zip(labels.tolist(), ids.tolist()):
            file.write(f"{label} {':1 '.join(map(str, features))}:1\n")


def calibrate(options, work):
    """Solves for the coefficients: the difference of a long run and a short one is free of start and end."""
    cores, cost, rate = len(os.sched_getaffinity(0)), {}, {}
    for case in CALIBRATION:
        costs, rates = [], []
        for _ in range(options.rounds):
            short, long = (sparse_cluster(options.dtrain, work, case, s, {}) for s in (0.5, 0.5 + options.seconds))
            steps = long.steps - short.steps
            costs.append([(long.processor_s[r] - short.processor_s[r]) / steps for r in ("worker", "ps")])
            rates.append(long.rate)
        cost[case], rate[case] = [statistics.median(c) for c in zip(*costs)], statistics.median(rates)
        print(case, "processor us a step, worker and ps:", [round(c * 1e6, 1) for c in cost[case]], "rows/s:",
              round(rate[case] * case[2]), flush=True)
    small, large, two = CALIBRATION
    # worker: step + feature * features + message * messages; the messages of `small` are 1, of `two` 2
    messages = {case: case[0] * blocks(case[0], case[2]) for case in CALIBRATION}
    worker = np.linalg.solve([[1, c[2] * FEATURES, messages[c]] for c in CALIBRATION], [cost[c][0] for c in CALIBRATION])
    ps = np.linalg.lstsq([[messages[c], unique(c[2])] for c in CALIBRATION], [cost[c][1] for c in CALIBRATION],
                         rcond=None)[0]
    busy = min(1, statistics.median(rate[c] * sum(cost[c]) / cores for c in CALIBRATION))
    return {"worker_step": worker[0], "worker_feature": worker[1], "worker_message": worker[2], "ps_message": ps[0],
            "ps_key": ps[1], "busy": busy, "cores": cores}


def predict(model, case):
    rates = model.rates(*case, cores=model.cores)
    limit = min(rates, key=rates.get)
    return rates[limit] * case[2], limit


def print_large(model):
    """10^11 parameters on 200 ps with 800 workers: logistic regression, 100 features a row, 10 Gbit/s each."""
    rows = []
    for batch in (256, 1024, 4096, 16384):
        ps, workers, features = 200, 800, 100
        keys = batch * features * 0.5  # features that come often are in many rows of a batch
        rates = model.rates(ps, workers, batch, None, keys=keys, features=features)
        there = there_bytes(ps, batch, keys, 1e11)
        rates["link of a worker"], rates["link of a ps"] = workers * 1250e6 / there, ps * 1250e6 / there
        limit = min(rates, key=rates.get)
        rows.append([f"{batch:,}", round(rates[limit] * batch), limit]
                    + [round(rates[name] * batch / 1e6, 1) for name in ("workers", "ps", "link of a worker", "link of a ps")])
    race.print_table(["batch", "rows/s of all", "first limit"] + [f"{name}, M rows/s" for name in ("workers", "ps", "links of workers", "links of ps")],
                     rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("calibrate", "predict", "measure"))
    parser.add_argument("--out", default="scale.json")
    parser.add_argument("--from", dest="source", default="scale.json")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--dtrain", default=race.DTRAIN)
    options = parser.parse_args()
    options.dtrain = os.path.abspath(options.dtrain)
    race.print_machine()
    work = race.work_directory()
    write_rows(work)
    if options.what == "calibrate":
        coefficients = calibrate(options, work)
        with open(options.out, "w") as file:
            json.dump(coefficients, file)
        for name, value in coefficients.items():
            print(name, f"{value * 1e6:.4f} us" if name not in ("busy", "cores") else f"{value:.2f}")
        return 0
    with open(options.source) as file:
        model = Model(json.load(file))
    if options.what == "predict":
        race.print_table(["ps", "workers", "batch", "link", "rows/s", "limit"],
                         [[str(c) for c in case] + [round(predict(model, case)[0]), predict(model, case)[1]]
                          for case in CASES])
        print()
        print_large(model)
        return 0
    hosts = {link: namespaces(link) for link in sorted({case[3] for case in CASES if case[3]})}
    measured = race.by_turns({case: lambda case=case: sparse_cluster(options.dtrain, work, case, options.seconds, hosts).rate * case[2]
                              for case in CASES}, options.rounds)
    rows, errors = [], []
    for case, rates in measured.items():
        predicted, limit = predict(model, case)
        rate = statistics.median(rates)
        errors.append(abs(predicted / rate - 1))
        rows.append([str(c) for c in case] + [limit, round(predicted), round(rate), round(min(rates)), round(max(rates)),
                                              f"{predicted / rate - 1:+.0%}"])
    race.print_table(["ps", "workers", "batch", "link", "limit", "predicted rows/s", "measured", "smallest", "largest",
                      "error"], rows)
    for case in TOGETHER:
        print(case, "rows/s:", round(sparse_cluster(options.dtrain, work, case, options.seconds, {}).rate * case[2]), flush=True)
    print(f"median error {statistics.median(errors):.0%}, largest {max(errors):.0%}")
    return 0 if statistics.median(errors) <= 0.2 and max(errors) <= 0.4 else 1


if __name__ == "__main__":
    sys.exit(main())
