"""Wide & deep models of dtrain beside PyTorch in one process and TensorFlow's parameter server: rows per second, and AUC.

    python bench/wide_deep.py [--rounds 3] [--seconds 6] [--rows 400000] [--passes 1] [--truth-rows 0]
                              [--hidden 64 32] [--dtrain bazel-bin/cmd/dtrain]

Needs numpy; torch and tensorflow-cpu 2.21 for the other sides, which are left out where they are missing. All sides train
one model on rows of `dtrain synth criteo`: 26 columns of categories, each with embeddings of 8 values in a table of 2^18,
joined to the 13 numbers with mean 0 and deviation 1; layers of 64 and 32 units with relu, and a weight of each category beside
them; batches of 1,024 rows in the order of the file, adagrad with one rate for all. In the race they are 128 batches again and
again. Rows lie in memory, hashed and scaled: the time to read them does not count.

dtrain runs as 1 ps and 1 worker, in two processes or as threads of one, with train.in_flight 1 and 2; its rate is that of
--result.

PyTorch: nn.Embedding with sparse gradients, one for all columns, whose rows are a weight and an embedding, and
torch.optim.Adagrad; 1 and 2 threads.

TensorFlow: tf.compat.v1 servers, 1 ps and 1 worker with one session at the worker; the variables are on the ps, ready
batches in variables of the worker, and a step is one call. 1 and 2 threads (intra and inter op, both tasks), the better of
which is taken, with one step open at a time.

After the race dtrain and PyTorch train --passes over --rows rows and are tested on 100,000 others: their AUC beside that of
the true probabilities. With --truth-rows dtrain also makes a pass over so many rows, which come through a pipe, with a hash
table; criteo_ceiling.py says what can be learnt of them. Exit 1 if dtrain's AUC is below PyTorch's by more than 0.003, or that of --truth-rows below the
truth's by more than 0.01.
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

COLUMNS, NUMBERS, BITS, EMBEDDING, BATCH, TEST_ROWS = 26, 13, 18, 8, 1024, 100_000
POOL_ROWS, FIRST_TEST_ROW = 128 * BATCH, 1_000_000_000
RATE, ACCUMULATOR, DEVIATION = 0.1, 1 / BATCH**2, 0.01  # of means; of sums of a batch the accumulator is 1
BARS = {"torch": 2, "tensorflow": 5}
AUC_WITHIN, TRUTH_WITHIN = 0.003, 0.01


def read_rows(path):
    """Labels, numbers and features, whose numbers are hashes as good as dtrain's."""
    labels, numbers, ids = [], [], []
    mask = (1 << BITS) - 1
    first = [column << BITS for column in range(COLUMNS)]
    for line in open(path):
        fields = line.rstrip("\n").split("\t")
        labels.append(fields[0] == "1")
        numbers.append([float(text or 0) for text in fields[1:14]])
        ids.append([at + (int("0" + text, 16) * 0x9e3779b1 >> 9 & mask) for at, text in zip(first, fields[14:])])
    return np.array(labels, dtype=np.float32), np.array(numbers, dtype=np.float32), np.array(ids, dtype=np.int32)


def area(labels, scores):
    order = np.argsort(scores, kind="stable")
    _, places, counts = np.unique(scores[order], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    ones = labels[order] == 1
    return (ranks[ones].sum() - ones.sum() * (ones.sum() + 1) / 2) / (ones.sum() * (~ones).sum())


class Torch:
    def __init__(self, hidden):
        import torch
        self.torch = torch
        torch.manual_seed(1)
        self.rows = torch.nn.Embedding(COLUMNS << BITS, 1 + EMBEDDING, sparse=True)
        with torch.no_grad():
            self.rows.weight.normal_(0, DEVIATION)
            self.rows.weight[:, 0] = 0
        units, layers = COLUMNS * EMBEDDING + NUMBERS, []
        for outputs in hidden:
            layers += [torch.nn.Linear(units, outputs), torch.nn.ReLU()]
            units = outputs
        self.layers = torch.nn.Sequential(*layers, torch.nn.Linear(units, 1))
        for layer in self.layers:
            if isinstance(layer, torch.nn.Linear):
                torch.nn.init.xavier_uniform_(layer.weight)
                torch.nn.init.zeros_(layer.bias)
        self.optimizer = torch.optim.Adagrad([*self.rows.parameters(), *self.layers.parameters()], lr=RATE,
                                             initial_accumulator_value=ACCUMULATOR)
        self.loss = torch.nn.BCEWithLogitsLoss()

    def outputs(self, numbers, ids):
        rows = self.rows(ids)
        deep = self.layers(self.torch.cat([rows[:, :, 1:].flatten(1), numbers], 1))
        return rows[:, :, 0].sum(1) + deep[:, 0]

    def step(self, labels, numbers, ids):
        self.optimizer.zero_grad()
        self.loss(self.outputs(numbers, ids), labels).backward()
        self.optimizer.step()


def with_torch(threads, seconds, passes, hidden):
    """Trains for so many seconds, or so many passes over all rows and tests."""
    import torch
    torch.set_num_threads(threads)
    model = Torch(hidden)
    data = [torch.from_numpy(part) for part in np.load("train.npz" if passes else "pool.npz").values()]
    batches = len(data[0]) // BATCH
    for at in range(5 if passes == 0 else 0):
        model.step(*(part[at * BATCH:(at + 1) * BATCH] for part in data))
    begin, done = time.perf_counter(), 0
    while done < passes * batches or (passes == 0 and time.perf_counter() - begin < seconds):
        at = done % batches * BATCH
        model.step(*(part[at:at + BATCH] for part in data))
        done += 1
    rate, auc = done * BATCH / (time.perf_counter() - begin), 0
    if passes > 0:
        labels, numbers, ids = np.load("test.npz").values()
        with torch.no_grad():
            auc = area(labels, model.outputs(torch.from_numpy(numbers), torch.from_numpy(ids)).numpy())
    print("figures", rate, auc)


def serve(job, addresses, threads, hidden):
    """A TensorFlow task. The worker reads a number of seconds a line and answers each with its rows a second."""
    import tensorflow as tf
    v1 = tf.compat.v1
    server, config = race.tensorflow_server(job, addresses, threads)
    data = np.load("pool.npz")
    with tf.device("/job:ps/task:0"):
        rows = v1.get_variable("rows", [COLUMNS << BITS, 1 + EMBEDDING], use_resource=True,
                               initializer=v1.random_normal_initializer(0, DEVIATION))
        units, layers = COLUMNS * EMBEDDING + NUMBERS, []
        for i, outputs in enumerate([*hidden, 1]):
            layers.append((v1.get_variable(f"W{i}", [units, outputs], use_resource=True),
                           v1.get_variable(f"b{i}", [outputs], initializer=v1.zeros_initializer(), use_resource=True)))
            units = outputs
    session, pools, batches = v1.Session(server.target, config=config), [], len(data["labels"]) // BATCH
    with tf.device("/job:worker/task:0"):
        number = v1.placeholder(tf.int32, [])
        taken = []
        for name in ("labels", "numbers", "ids"):
            values = data[name][:batches * BATCH].reshape(batches, BATCH, *data[name].shape[1:])
            fed = v1.placeholder(values.dtype, values.shape)
            pool = v1.get_variable(name, initializer=fed, use_resource=True, trainable=False)
            pools.append((pool, fed, values))
            taken.append(tf.gather(pool, number))
        labels, numbers, ids = taken
        # One request brings each row once, as in the other programs.
        unique, places = tf.unique(tf.reshape(ids, [-1]))
        own = tf.reshape(tf.gather(tf.identity(tf.gather(rows, unique)), places), [BATCH, COLUMNS, 1 + EMBEDDING])
        below = tf.concat([tf.reshape(own[:, :, 1:], [BATCH, COLUMNS * EMBEDDING]), numbers], 1)
        for i, (weights, biases) in enumerate(layers):
            below = tf.matmul(below, weights) + biases
            below = tf.nn.relu(below) if i < len(hidden) else below
        outputs = below[:, 0] + tf.reduce_sum(own[:, :, 0], 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=outputs))
        step = v1.train.AdagradOptimizer(RATE, ACCUMULATOR).minimize(loss)
    for pool, fed, values in pools:
        session.run(pool.initializer, {fed: values})
    kept = {pool for pool, _, _ in pools}
    session.run([v.initializer for v in v1.global_variables() if not any(v is pool for pool in kept)])
    call = session.make_callable(step, [number])
    for warm in range(5):
        call(np.int32(warm))
    print("ready", flush=True)
    for line in sys.stdin:
        begin, done = time.perf_counter(), 0
        while time.perf_counter() - begin < float(line):
            call(np.int32(done % batches))
            done += 1
        print(done * BATCH / (time.perf_counter() - begin), flush=True)
    os._exit(0)


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2], sys.argv[3], int(sys.argv[4]), list(map(int, sys.argv[5:])))
    if sys.argv[1:2] == ["--torch"]:
        return with_torch(int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), list(map(int, sys.argv[5:])))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6, help="of each side in each round")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--truth-rows", type=int, default=0)
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 32])
    parser.add_argument("--dtrain", default=race.DTRAIN)
    options = parser.parse_args()
    race.print_machine()
    work = race.work_directory()
    truth, scale = 0.0, None
    for name, first, rows in (("train", 0, options.rows), ("pool", 0, POOL_ROWS), ("test", FIRST_TEST_ROW, TEST_ROWS)):
        run = race.Run([options.dtrain, "synth", "criteo", "--rows", rows, "--first", first, "--truth", "--out", name], work)
        truth = float(re.search(r"AUC (\S+)", run.stderr + run.stdout).group(1).rstrip("."))
        labels, numbers, ids = read_rows(work / name)
        scale = scale or (numbers.mean(0, dtype=float), numbers.std(0, dtype=float))
        scaled = ((numbers - scale[0]) / scale[1]).astype(np.float32)
        np.savez(work / f"{name}.npz", labels=labels, numbers=scaled, ids=ids)

    def torch(threads, passes=0):
        run = race.Run([sys.executable, os.path.abspath(__file__), "--torch", threads, options.seconds, passes,
                        *options.hidden], work)
        return tuple(map(float, re.search(r"^figures (\S+) (\S+)", run.stdout, re.M).groups()))

    def dtrain(in_flight, *arguments, passes=0, model={}, data=None, limit_s=race.LIMIT_S):
        end = {"epochs": passes} if passes else {"max_secs": options.seconds}
        data = data or {"train": {"format": "criteo", "path": "train" if passes else "pool"}, "hash_bits": BITS,
                        "shuffle": False}
        run = race.dtrain_local(options.dtrain, work, {
            "model": {"kind": "wide_deep", "embedding": EMBEDDING, "hidden": options.hidden, "activation": "relu",
                      "init": {"stddev": DEVIATION}, **model},
            "data": {"numbers": "plain", "scale": "standard", **data,
                     **({"test": {"format": "criteo", "path": "test"}} if passes else {})},
            "train": {"mode": "async", "batch_size": BATCH, "in_flight": in_flight, **end,
                      "optimizer": {"kind": "adagrad", "learning_rate": RATE, "initial_accumulator": ACCUMULATOR}},
            "hooks": {"log_every_steps": 0}}, *arguments, limit_s=limit_s)
        return run.result["steps_per_s"] * BATCH, run.result.get("test_auc", 0)

    sides = {}
    if importlib.util.find_spec("torch") is None:
        print("torch: not installed")
    else:
        for threads in (1, 2):
            sides["torch", threads] = lambda threads=threads: torch(threads)[0]
    if importlib.util.find_spec("tensorflow") is None:
        print("tensorflow: not installed")
    else:
        for threads in (1, 2):
            cluster = race.TensorFlow(__file__, work, threads, *options.hidden)
            sides["tensorflow", threads] = lambda cluster=cluster: cluster.rate(options.seconds)
    for in_flight in (1, 2):
        sides[f"dtrain, 1 ps + 1 worker, in_flight {in_flight}", 1] = lambda n=in_flight: dtrain(n)[0]
        sides[f"dtrain --in-process, in_flight {in_flight}", 1] = lambda n=in_flight: dtrain(n, "--in-process")[0]
    rates = race.by_turns(sides, options.rounds)
    best = {}  # the others' better threads
    for (who, threads), values in rates.items():
        if who in BARS:
            best[who] = max(best.get(who, [0]), values, key=statistics.median)
    table = []
    for (who, threads), values in rates.items():
        row = [who, threads, *(round(f(values)) for f in (statistics.median, min, max))]
        row += ["%.2f (%.2f to %.2f)" % race.ratios(values, best[other]) if who not in BARS else "" for other in best]
        table.append(row)
    race.print_table(["side", "threads", "rows/s", "smallest", "largest",
                      *(f"beside {other} (bar {BARS[other]})" for other in best)], table)
    ours = dtrain(1, passes=options.passes)[1]
    print(f"AUC on {TEST_ROWS:,} rows after {options.passes} passes over {options.rows:,}: dtrain {ours:.4f}, truth {truth:.4f}")
    good = True
    if options.truth_rows:
        pipe = f"exec:{options.dtrain} synth criteo --rows {options.truth_rows}"
        large = dtrain(1, "--in-process", passes=1, model={"table": "hash"},
                       data={"train": {"format": "criteo", "path": pipe}, "cache": "none"},
                       limit_s=race.LIMIT_S + options.truth_rows / 10_000)[1]
        print(f"AUC after {options.truth_rows:,} rows: {large:.4f}")
        good = large >= truth - TRUTH_WITHIN
    if "torch" in best:
        theirs = torch(1, options.passes)[1]
        print(f"PyTorch {theirs:.4f}")
        good &= ours >= theirs - AUC_WITHIN
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
