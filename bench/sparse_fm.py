"""Factorization machines of 8 factors: dtrain beside xLearn and modern_fm, at equal test log loss.

    python bench/sparse_fm.py [--rounds 3] [--rows 400000] [--dtrain bazel-bin/cmd/dtrain]

Needs numpy; xlearn 0.40a1 (its wheel is built with cmake), and modern-fm 1.1.2 with scikit-learn, for the other sides,
which are left out where they are missing. The rows are drawn from a factorization machine of rank 4 with 20 fields of
50 features each, in libsvm form; the log loss of its own probabilities is printed. All sides read the same file,
make 4 passes with adagrad, each with the rate that suited it (RATES), and predict 50,000 other rows.

  training   rows/s, rows of all passes: dtrain's train_s; the epochs that xLearn times; modern_fm's fit()
  whole      rows/s of the process from its start to its end, with reading and predicting; with the start of Python
  processor  user and system seconds of the whole process; in brackets those of fit() alone
  ratios     rows/s of dtrain over those of the other, training: medians of the rounds' own

Exit 1 if, with 400,000 rows, a test log loss of dtrain is above one of the others by more than 0.003.
"""
import argparse
import importlib.util
import os
import re
import statistics
import sys
import time

import numpy as np

import race

FIELDS, VALUES, RANK, FACTORS, PASSES, TEST_ROWS, DEVIATION = 20, 50, 4, 8, 4, 50_000, 0.05
RATES = {"dtrain": 0.03, "xlearn": 0.05, "modern_fm": 0.04}
RATES_ROWS, LOSS_WITHIN = 400_000, 0.003


def write_rows(path, rows, random, weights, factors):
    """The mean log loss of the probabilities that the labels are drawn with."""
    ids = random.integers(0, VALUES, (rows, FIELDS)) + np.arange(FIELDS) * VALUES
    pairs = (factors[ids].sum(1) ** 2 - (factors[ids] ** 2).sum(1)).sum(1) / 2
    odds = 1 / (1 + np.exp(-(weights[ids].sum(1) + pairs)))
    labels = (random.random(rows) < odds).astype(int)
    with open(path, "w") as file:
        for label, features in zip(labels.tolist(), (ids + 1).tolist()):
            file.write(f"{label} {':1 '.join(map(str, features))}:1\n")
    return -np.mean(np.log(np.where(labels == 1, odds, 1 - odds)))


def say(used_s, train_s, odds):
    labels = np.array([int(line[0]) for line in open("test.svm")])
    odds = np.clip(odds, 1e-7, 1 - 1e-7)
    print("\nfigures", train_s, used_s, -np.mean(np.log(np.where(labels == 1, odds, 1 - odds))))


def with_xlearn(threads):
    import xlearn
    model = xlearn.create_fm()
    model.setTrain("train.svm")
    model.disableNorm()
    model.disableEarlyStop()
    used = time.process_time()
    model.fit({"task": "binary", "opt": "adagrad", "lr": RATES["xlearn"], "lambda": 0, "k": FACTORS, "epoch": PASSES,
               "nthread": threads, "init": 0.1}, "model.out")  # the parent adds up the epochs that it prints
    used = time.process_time() - used
    model.setTest("test.svm")
    model.setSigmoid()
    model.predict("model.out", "predictions")
    say(used, 0, np.loadtxt("predictions"))


def with_modern_fm(threads):
    from modern_fm import FMClassifier
    from sklearn.datasets import load_svmlight_file
    features, labels = load_svmlight_file("train.svm", n_features=FIELDS * VALUES)
    model = FMClassifier(n_factors=FACTORS, optimizer="adagrad", learning_rate=RATES["modern_fm"], max_iter=PASSES,
                         batch_size=128, n_jobs=threads, l2_linear=0, l2_factors=0, init_scale=DEVIATION)
    begin, used = time.perf_counter(), time.process_time()
    model.fit(features, labels)
    train_s, used = time.perf_counter() - begin, time.process_time() - used
    test, _ = load_svmlight_file("test.svm", n_features=FIELDS * VALUES)
    say(used, train_s, model.predict_proba(test)[:, 1])


class Fit:
    def __init__(self, run, rows, train_s, processor, loss):
        self.training, self.whole = rows * PASSES / train_s, rows * PASSES / run.wall_s
        self.processor_s, self.threads, self.processes = run.processor_s, run.threads, run.processes
        self.processor, self.loss = processor, loss


def main():
    if sys.argv[1:2] == ["--with"]:
        return {"xlearn": with_xlearn, "modern_fm": with_modern_fm}[sys.argv[2]](int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=RATES_ROWS)
    parser.add_argument("--dtrain", default=race.DTRAIN)
    options = parser.parse_args()
    race.print_machine()
    work = race.work_directory()
    random = np.random.default_rng(3)
    truth = (random.normal(0, 0.15, FIELDS * VALUES), random.normal(0, 0.2, (FIELDS * VALUES, RANK)))
    write_rows(work / "train.svm", options.rows, random, *truth)
    print(f"log loss of the planted model: {write_rows(work / 'test.svm', TEST_ROWS, random, *truth):.4f}")

    def other(name, threads):
        for binary in work.glob("*.svm.bin"):
            binary.unlink()  # xLearn's cache: it is to read the text, as the others do
        run = race.Run([sys.executable, os.path.abspath(__file__), "--with", name, threads], work,
                       {"USER": os.environ.get("USER", "user"), "OMP_NUM_THREADS": "1"})  # xLearn ends without a USER
        train_s, used, loss = map(float, re.search(r"^figures (\S+) (\S+) (\S+)", run.stdout, re.M).groups())
        if name == "xlearn":
            train_s = sum(float(line.split()[-1]) for line in run.stdout.splitlines() if "%" in line)
        return Fit(run, options.rows, train_s, f" ({used:.2f})", loss)

    def dtrain(in_flight, *arguments):
        run = race.dtrain_local(options.dtrain, work, {
            "model": {"kind": "fm", "factors": FACTORS, "inputs": FIELDS * VALUES, "init": {"stddev": DEVIATION}},
            "data": {"train": {"format": "libsvm", "path": "train.svm"},
                     "test": {"format": "libsvm", "path": "test.svm"}},
            "train": {"mode": "async", "reduce": "sum", "epochs": PASSES, "batch_size": 128, "in_flight": in_flight,
                      "optimizer": {"kind": "adagrad", "learning_rate": RATES["dtrain"]}},
            "hooks": {"log_every_steps": 0}}, *arguments)
        return Fit(run, options.rows, run.result["train_s"], "", run.result["test_log_loss"])

    sides = {}
    for name in ("xlearn", "modern_fm"):
        if importlib.util.find_spec(name) is None:
            print(f"{name}: not installed")
            continue
        for threads in (1, 2):
            sides[f"{name}, threads {threads}"] = lambda name=name, threads=threads: other(name, threads)
    theirs = list(sides)
    for in_flight in (1, 2):
        sides[f"dtrain --in-process, in_flight {in_flight}"] = lambda n=in_flight: dtrain(n, "--in-process")
        sides[f"dtrain, 1 ps + 1 worker, in_flight {in_flight}"] = lambda n=in_flight: dtrain(n)
    fits = race.by_turns(sides, options.rounds)
    table, equal = [], True
    for name, ours in fits.items():
        training = [fit.training for fit in ours]
        losses = statistics.median(fit.loss for fit in ours)
        row = [name, round(statistics.median(training)), round(statistics.median(fit.whole for fit in ours)),
               f"{ours[0].processes} / {max(fit.threads for fit in ours)}",
               f"{statistics.median(fit.processor_s for fit in ours):.2f}{ours[0].processor}", f"{losses:.4f}"]
        for their in theirs:
            is_ours = name.startswith("dtrain")
            row.append("%.2f" % race.ratios(training, [fit.training for fit in fits[their]])[0] if is_ours else "")
            equal &= not is_ours or losses <= statistics.median(fit.loss for fit in fits[their]) + LOSS_WITHIN
        table.append(row)
    race.print_table(["side", "rows/s, training", "rows/s, whole", "processes / threads", "processor s",
                      "test log loss", *(f"beside {their}" for their in theirs)], table)
    equal |= options.rows != RATES_ROWS  # the rates are not for these rows
    if not equal:
        print(f"dtrain's test log loss is above another's by more than {LOSS_WITHIN}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
