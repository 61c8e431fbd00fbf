"""Whether dtrain goes on from a checkpoint of TensorFlow as TensorFlow itself does: losses of both, side by side.

    python bench/from_tensorflow.py [--models softmax mlp table] [--dtrain bazel-bin/cmd/dtrain]

Run by hand; needs numpy and tensorflow-cpu 2.21. For each optimizer that Saver's slots are imported of, TensorFlow trains
20 steps on 100 rows, in batches of 20 in their order, saves, and makes 100 steps more. dtrain imports the checkpoint and
goes on over the same batches (one worker, sync, float32). The table is a partitioned variable of 40 rows there, of which each
row of data names 4, and model.table: range here; Adam is left out, since it moves all of them there. After step 21, 40, 70
and 120 the loss over all rows is compared, in the end the weights as well. Exit 1 if a loss differs by more than 1e-4 of it.

Hyperparameters are no part of a checkpoint: the job has those of the training (l2 of ftrl doubled), and epsilon is such that
it means the same: 1e-10 inside of RMSProp's root is next to nothing here.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
ROWS, FEATURES, HIDDEN, CLASSES, BATCH, BEFORE, STOPS = 100, 8, 16, 3, 20, 20, (21, 40, 70, 120)
KEYS, NAMED = 40, 4  # rows of a table, and how many a row of data names
OPTIMIZERS = {
    "sgd": (lambda: v1.train.GradientDescentOptimizer(0.1), "kind: sgd, learning_rate: 0.1"),
    "momentum": (lambda: v1.train.MomentumOptimizer(0.05, 0.9), "kind: momentum, learning_rate: 0.05, momentum: 0.9"),
    "nesterov": (lambda: v1.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
                 "kind: momentum, learning_rate: 0.05, momentum: 0.9, nesterov: true"),
    "adagrad": (lambda: v1.train.AdagradOptimizer(0.1), "kind: adagrad, learning_rate: 0.1"),
    "adam": (lambda: v1.train.AdamOptimizer(0.01), "kind: adam, learning_rate: 0.01"),
    "rmsprop": (lambda: v1.train.RMSPropOptimizer(0.01), "kind: rmsprop, learning_rate: 0.01, epsilon: 1.0e-30"),
    "ftrl": (lambda: v1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
             "kind: ftrl, learning_rate: 0.1, l1: 0.01, l2: 0.04"),
}


def draw(kind):
    random = np.random.default_rng(1)
    noise = random.normal(size=(ROWS, CLASSES))
    if kind == "table":
        features = np.stack([np.sort(random.choice(KEYS, NAMED, replace=False)) for _ in range(ROWS)])
        return features, (random.normal(size=(KEYS, CLASSES))[features].sum(1) + noise).argmax(1)
    features = random.normal(size=(ROWS, FEATURES)).astype(np.float32)
    return features, (features @ random.normal(size=(FEATURES, CLASSES)) + noise).argmax(1)


def tensorflow(kind, optimizer, features, labels, prefix):
    """Trains and saves; gives losses by step, and the last weights by name."""
    with v1.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        x, y = v1.placeholder(features.dtype, [None, features.shape[1]]), v1.placeholder(tf.int64, [None])
        weights = {}

        def layer(inputs, name, width):
            shape = KEYS if kind == "table" else int(inputs.shape[1]), width
            kernel = v1.get_variable(name + "/kernel", shape, initializer=v1.glorot_uniform_initializer(), use_resource=True,
                                     partitioner=v1.fixed_size_partitioner(3) if kind == "table" else None)
            bias = v1.get_variable(name + "/bias", [width], initializer=v1.zeros_initializer())
            weights.update({name + "/kernel": tf.convert_to_tensor(kernel), name + "/bias": bias})
            if kind == "table":
                return tf.reduce_sum(v1.nn.embedding_lookup(kernel, inputs, "div"), 1) + bias
            return tf.matmul(inputs, kernel) + bias

        hidden = tf.nn.relu(layer(x, "hidden", HIDDEN)) if kind == "mlp" else x
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=layer(hidden, "logits", CLASSES))
        loss = tf.reduce_mean(losses)
        step = optimizer().minimize(loss, global_step=v1.train.get_or_create_global_step())
        session.run(v1.global_variables_initializer())
        by_step = {}
        for number in range(1, STOPS[-1] + 1):
            rows = np.arange(BATCH) + (number - 1) * BATCH % ROWS
            session.run(step, {x: features[rows], y: labels[rows]})
            if number == BEFORE:
                v1.train.Saver().save(session, prefix, global_step=number, write_meta_graph=False)
            if number in STOPS:
                by_step[number] = float(session.run(loss, {x: features, y: labels}))
        return by_step, session.run(weights)


def dtrain(program, kind, optimizer, features, labels, prefix, directory):
    """Goes on from the checkpoint; gives losses by step, and the last weights by their names in TensorFlow."""
    with open(directory + "/rows", "w") as file:
        for row, label in zip(features, labels):
            if kind == "table":
                file.write(f"{label} " + " ".join(f"{key}:1" for key in row) + "\n")
            else:
                file.write(",".join(repr(float(value)) for value in row) + f",{label}\n")
    table, base = f"{{format: csv, path: rows, header: false, label: {FEATURES}}}", ""
    if kind == "table":
        table, base = "{format: libsvm, path: rows}", ", index_base: 0"
    model = {"softmax": "softmax", "mlp": "mlp, hidden: [16], activation: relu", "table": f"softmax, inputs: {KEYS}"}[kind]
    with open(directory + "/job.yaml", "w") as file:
        file.write(f"model: {{kind: {model}, outputs: {CLASSES}}}\n"
                   f"data: {{train: {table}, test: {table}, shuffle: false{base}}}\n"
                   f"train: {{mode: sync, batch_size: {BATCH}, steps: 1, optimizer: {{{optimizer}}}}}\n")

    def run(*arguments):
        done = subprocess.run([os.path.abspath(program), *arguments], capture_output=True, text=True, cwd=directory)
        if done.returncode != 0:
            sys.exit(f"{' '.join(done.args)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    out = directory + "/ckpt"
    run("import", prefix, "--config", directory + "/job.yaml", "--out", out)
    by_step = {}
    for stop in STOPS:
        run("local", "--config", directory + "/job.yaml", "--ps", "1", "--workers", "1", "--set", "checkpoint.dir=" + out,
            "--set", f"train.steps={stop}")
        told = json.loads(run("eval", out, "--json"))
        assert told["global_step"] == stop, told
        by_step[stop] = told["loss"]
    run("export", out, "--out", directory + "/model.npz", *["--dense"] * (kind == "table"))
    names = {"weights/W1": "hidden/kernel", "biases/b1": "hidden/bias", "weights/W2": "logits/kernel",
             "biases/b2": "logits/bias"}
    if kind != "mlp":
        names = {"weights/W1": "logits/kernel", "biases/b1": "logits/bias"}
    with np.load(directory + "/model.npz") as file:
        return by_step, {theirs: file[ours] for ours, theirs in names.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", default=["softmax", "mlp", "table"])
    parser.add_argument("--dtrain", default="bazel-bin/cmd/dtrain")
    options = parser.parse_args()
    worst = 0
    print("model    optimizer " + "".join(f"  loss {stop:>4}    differs" for stop in STOPS) + "   weights")
    for kind in options.models:
        features, labels = draw(kind)
        for name, (optimizer, ours) in OPTIMIZERS.items():
            if (kind, name) == ("table", "adam"):
                continue
            with tempfile.TemporaryDirectory() as directory:
                expected, weights = tensorflow(kind, optimizer, features, labels, directory + "/model.ckpt")
                got, mine = dtrain(options.dtrain, kind, ours, features, labels, f"{directory}/model.ckpt-{BEFORE}", directory)
            differ = {stop: abs(got[stop] / expected[stop] - 1) for stop in STOPS}
            apart = max(float(np.abs(weights[each] - mine[each].reshape(weights[each].shape)).max()) for each in weights)
            worst = max(worst, *differ.values())
            print(f"{kind:<8} {name:<9} " + "".join(f"  {expected[stop]:9.6f}  {differ[stop]:9.1e}" for stop in STOPS) +
                  f"  {apart:8.1e}", flush=True)
    print(f"largest difference of a loss: {worst:.1e}")
    sys.exit(worst > 1e-4)


if __name__ == "__main__":
    main()
