"""Sparse steps of dtrain beside TensorFlow's parameter server: rows per second.

    python bench/sparse_tensorflow.py [--rounds 5] [--seconds 2] [--dtrain bazel-bin/cmd/dtrain]

Needs numpy, and tensorflow-cpu 2.21 for the other side, which is left out where it is missing. Both sides are 1 ps
and 1 worker as processes and train logistic regression with sgd, asynchronously, on a table of 10,000,000 values, from
the same 131,072 rows of 39 uniform random features (value 1), in memory, in order and without end: 1,024 batches of
128 rows, or 32 of 4,096.

dtrain reads a libsvm file into memory (data.cache: memory, shuffle: false), with train.in_flight 1 and 2; its rate
is that of --result and does not count the start.

TensorFlow: tf.compat.v1 servers with one session at the worker. The ready batches lie in a variable of the worker; a
step is one call that picks its batch by number, gathers its weights from the ps, and adds the gradient's IndexedSlices
to them there. There is no bias. It runs with 1 and 2 threads (intra and inter op, both tasks), and with one step open
at a time or two, each from a Python thread of its own as a counterpart of in_flight 2; the better threads are taken.
Exit 0 whatever the ratios are.
"""
import argparse
import importlib.util
import os
import statistics
import sys
import threading
import time

import numpy as np

import race

WIDTH, FEATURES, ROWS, RATE, BATCHES, BARS = 10_000_000, 39, 131_072, 0.1, (128, 4096), {1: 8, 2: 10}


def rows():
    random = np.random.default_rng(1)
    return random.integers(0, WIDTH, (ROWS, FEATURES), dtype=np.int32), random.integers(0, 2, ROWS)


def serve(job, addresses, threads):
    """A TensorFlow task. The worker reads lines "batch open seconds" and answers each with its rows a second."""
    import tensorflow as tf
    v1 = tf.compat.v1
    server, config = race.tensorflow_server(job, addresses, threads)
    with tf.device("/job:ps/task:0"):
        weights = v1.get_variable("weights", [WIDTH, 1], initializer=v1.zeros_initializer(), use_resource=True)
    session = v1.Session(server.target, config=config)
    session.run(weights.initializer)
    ids, labels = rows()
    steps = {}
    for batch in BATCHES:
        with tf.device("/job:worker/task:0"):
            number = v1.placeholder(tf.int32, [])
            taken = []
            for name, values in (("ids", ids.reshape(-1, batch, FEATURES)),
                                 ("labels", labels.astype(np.float32).reshape(-1, batch))):
                fed = v1.placeholder(values.dtype, values.shape)
                pool = v1.get_variable(f"{name}_{batch}", initializer=fed, use_resource=True, trainable=False)
                session.run(pool.initializer, {fed: values})
                taken.append(tf.gather(pool, number))
            outputs = tf.reduce_sum(tf.gather(weights, taken[0]), axis=[1, 2])
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=taken[1], logits=outputs)
            step = v1.train.GradientDescentOptimizer(RATE).minimize(tf.reduce_mean(losses), var_list=[weights])
        steps[batch] = session.make_callable(step, [number])
        for warm in range(5):
            steps[batch](np.int32(warm))
    print("ready", flush=True)
    for line in sys.stdin:
        batch, opened, seconds = line.split()
        batch, opened, begin = int(batch), int(opened), time.perf_counter()
        numbers, done = [np.int32(i) for i in range(ROWS // batch)], [0] * opened

        def train(thread):
            number, end = thread, begin + float(seconds)
            while time.perf_counter() < end:
                steps[batch](numbers[number % len(numbers)])
                number += opened
                done[thread] += 1

        others = [threading.Thread(target=train, args=(thread,)) for thread in range(1, opened)]
        for other in others:
            other.start()
        train(0)
        for other in others:
            other.join()
        print(sum(done) * batch / (time.perf_counter() - begin), flush=True)
    os._exit(0)


def main():
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each side in each round")
    parser.add_argument("--dtrain", default=race.DTRAIN)
    options = parser.parse_args()
    race.print_machine()
    work = race.work_directory()
    ids, labels = rows()
    with open(work / "rows.svm", "w") as file:
        for label, features in zip(labels.tolist(), (ids + 1).tolist()):
            file.write(f"{label} {':1 '.join(map(str, features))}:1\n")

    def dtrain(batch, in_flight):
        run = race.dtrain_local(options.dtrain, work, {
            "model": {"kind": "logistic", "inputs": WIDTH},
            "data": {"train": {"format": "libsvm", "path": "rows.svm"}, "shuffle": False},
            "train": {"mode": "async", "batch_size": batch, "in_flight": in_flight, "max_secs": options.seconds,
                      "optimizer": {"kind": "sgd", "learning_rate": RATE}},
            "hooks": {"log_every_steps": 0}})
        return run.result["steps_per_s"] * batch

    sides = {}
    clusters = {}
    if importlib.util.find_spec("tensorflow") is None:
        print("tensorflow: not installed")
    else:
        clusters = {threads: race.TensorFlow(__file__, work, threads) for threads in (1, 2)}
    for batch in BATCHES:
        for opened in (1, 2):
            for threads, cluster in clusters.items():
                sides["tensorflow", batch, opened, threads] = (
                    lambda cluster=cluster, batch=batch, opened=opened: cluster.rate(batch, opened, options.seconds))
            sides["dtrain", batch, opened, 1] = lambda batch=batch, opened=opened: dtrain(batch, opened)
    rates = race.by_turns(sides, options.rounds)
    best = {}  # TensorFlow's better threads, by batch and open steps
    for (who, batch, opened, threads), values in rates.items():
        if who == "tensorflow":
            best[batch, opened] = max(best.get((batch, opened), [0]), values, key=statistics.median)
    table = []
    for (who, batch, opened, threads), values in rates.items():
        row = [who, batch, opened, threads, *(round(f(values)) for f in (statistics.median, min, max))]
        if who == "dtrain" and best:
            row += ["%.2f (%.2f to %.2f)" % race.ratios(values, best[batch, 1]), str(BARS[opened]) if batch == BATCHES[0] else "",
                    "%.2f (%.2f to %.2f)" % race.ratios(values, best[batch, 2])]
        table.append(row + [""] * (10 - len(row)))
    race.print_table(["side", "batch", "open steps", "threads", "rows/s", "smallest", "largest",
                      "beside TensorFlow, 1 open", "to reach", "beside TensorFlow, 2 open"], table)


if __name__ == "__main__":
    main()
