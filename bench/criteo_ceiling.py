"""How good a model of `dtrain synth criteo` can be that has seen so many rows: AUC and log loss.

    python bench/criteo_ceiling.py [--rows 400000 1000000 3000000 10000000 30000000 100000000 300000000 1000000000]
                                   [--test-rows 1000000] [--dtrain bazel-bin/cmd/dtrain]

Needs numpy. The truth is a logistic model with a weight of each category. A weight w is from a normal distribution of
deviation S, and n rows with its category tell it to a precision of n I, where I is the mean of p (1 - p) over all rows. So
whoever knows that distribution and all other weights guesses w with a part r = n I / (n I + 1 / S^2) of its variance known,
and nobody can do better: of what is seen r w + sqrt(r (1 - r)) S e is left, e normal. The script draws such guesses for all 33
million categories, n from Zipf's law, and tests them on rows of `dtrain synth criteo` beside the true weights. All else of the
truth counts as known, so that a real model is below these figures.
"""
import argparse
import subprocess

import numpy as np

import race

NUMBERS, FIRST_TEST_ROW, SPREAD = 13, 1_000_000_000, 0.3
# As trainer/synth/planted_tables.cc has them: how many values, and how often one is missing, of 10,000.
NUMBER_RULES = [(2000, 4540), (16000, 0), (65000, 2150), (900, 2170), (100000, 260), (60000, 2240), (30000, 430), (5000, 5),
                (20000, 430), (10, 4540), (200, 430), (2000, 7650), (7000, 2170)]
CATEGORY_RULES = [(1460, 0), (583, 0), (10131227, 340), (2202608, 340), (305, 0), (24, 1210), (12517, 0), (633, 0), (3, 0),
                  (93145, 0), (5683, 0), (8351593, 340), (3194, 0), (27, 0), (14992, 0), (5461306, 340), (10, 0), (5652, 0),
                  (2173, 4400), (4, 4400), (7046547, 340), (18, 7620), (15, 0), (286181, 340), (105, 4400), (142572, 4400)]


def mix(x):
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return x ^ x >> np.uint64(31)


def stream(seed, name):
    """The key of CounterRandom(seed).Stream(name)."""
    number = 0xcbf29ce484222325
    for byte in name.encode():
        number = (number ^ byte) * 0x100000001b3 % 2**64
    key = lambda seed: mix(np.array([seed % 2**64], np.uint64) + np.uint64(0x9e3779b97f4a7c15))
    inner = np.array([(number * 0xd1342543de82ef95 + 0x632be59bd9b4e019) % 2**64], np.uint64)
    return key(int((key(seed) ^ mix(inner))[0]))


def bits(key, counters):
    return mix(mix(key + counters * np.uint64(0x9e3779b97f4a7c15)) ^ key)


def sum_of_bytes(values):
    values = values.astype(np.uint32)
    return (sum((values >> np.uint32(shift) & np.uint32(255)).astype(float) for shift in (0, 8, 16, 24)) - 510) / 147.8


def area(labels, scores):
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(1, len(scores) + 1)
    ones = labels.sum()
    return (ranks[labels].sum() - ones * (ones + 1) / 2) / (ones * (len(labels) - ones))


def figures(labels, scores):
    return f"AUC {area(labels, scores):.4f}, log loss {np.mean(np.logaddexp(0, scores) - labels * scores):.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[4e5, 1e6, 3e6, 1e7, 3e7, 1e8, 3e8, 1e9])
    parser.add_argument("--test-rows", type=int, default=1_000_000)
    parser.add_argument("--dtrain", default=race.DTRAIN)
    options = parser.parse_args()
    text = subprocess.run([options.dtrain, "synth", "criteo", "--rows", str(options.test_rows), "--first",
                           str(FIRST_TEST_ROW)], capture_output=True, check=True, text=True).stdout
    fields = [line.split("\t") for line in text.splitlines()]
    labels = np.array([row[0] == "1" for row in fields])
    drawn = bits(stream(1, "criteo numbers"), np.arange(NUMBERS, dtype=np.uint64))
    known = np.full(len(fields), -1.35)
    for i, (count, _) in enumerate(NUMBER_RULES):
        weight, missing = (0.25 * sum_of_bytes(drawn[i:i + 1] >> np.uint64(shift))[0] for shift in (0, 32))
        known += [missing if row[1 + i] == "" else weight * 4 / count * int(row[1 + i]) for row in fields]
    columns, truth = [], known.copy()
    for i, (count, missing) in enumerate(CATEGORY_RULES):
        ids = bits(stream(1, "criteo categories"), np.uint64(NUMBERS + i << 32) + np.arange(1, count + 1, dtype=np.uint64))
        order = np.argsort(ids.astype(np.uint32), kind="stable")
        there = np.array([row[14 + i] != "" for row in fields])
        asked = np.array([int(row[14 + i] or "0", 16) for row in fields], np.uint32)
        k = order[np.minimum(np.searchsorted(ids.astype(np.uint32)[order], asked), count - 1)]  # of equal texts the frequent one
        weights = SPREAD * sum_of_bytes(ids[k] >> np.uint64(32)) * there
        often = (1 - missing / 1e4) / ((k + 1) * (np.log(count) + 0.5772))
        columns.append((k, there, weights, often))
        truth += weights
    information = np.mean(np.exp(truth) / (1 + np.exp(truth)) ** 2)
    print(f"the truth: {figures(labels, truth)}")
    random = np.random.default_rng(1)
    noise = [random.standard_normal(rule[0]) for rule in CATEGORY_RULES]
    for rows in options.rows:
        scores = known.copy()
        for (k, there, weights, often), of_column in zip(columns, noise):
            seen = rows * often * information
            part = seen / (seen + SPREAD ** -2)
            scores += there * (part * weights + np.sqrt(part * (1 - part)) * SPREAD * of_column[k])
        print(f"after {rows:,.0f} rows: {figures(labels, scores)}", flush=True)


if __name__ == "__main__":
    main()
