"""Whether dtrain goes on from a checkpoint of TensorFlow as TensorFlow itself does, and TensorFlow from one of dtrain's.

    python bench/from_tensorflow.py [--models softmax mlp table wide_deep] [--dtrain bazel-bin/cmd/dtrain]

Run by hand; needs numpy and tensorflow-cpu 2.21. For each optimizer whose slots Saver writes, TensorFlow trains 20 steps on
100 rows, in batches of 20 in their order, saves, and makes 120 steps more. dtrain imports the checkpoint, predicts 10,000
other rows, and goes on over the same batches (one worker, sync, float32; 2 ps for tables). It exports step 120: a Saver of
all variables, those of the optimizer too, restores that, predicts the rows, and trains up to step 140, as dtrain does.

A table is a partitioned variable of 40 rows there, in 3 slices on 2 devices with a data file each, of which each row of data
names 4, and model.table: range here; Adam is left out, since it moves all of them there. wide_deep has two such tables, and
of its optimizers "ftrl+adagrad" is one of each part, as in DNNLinearCombinedClassifier.

Printed are after steps 21, 40, 70 and 120 the loss of TensorFlow over all rows and by which part of it dtrain's differs;
that of step 140, behind the way back; the largest difference of a weight after step 120; and of a probability, of the import
and of the export. Exit 1 if a loss differs by more than 1e-4 of it, or a probability by more than 1e-6.

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
ROWS, FEATURES, HIDDEN, CLASSES, BATCH, BEFORE, STOPS, LAST = 100, 8, 16, 3, 20, 20, (21, 40, 70, 120), 140
OTHERS = 10_000  # rows that are predicted
EMBEDDING = 4
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


WIDE_DEEP = {
    "ftrl+adagrad": ((OPTIMIZERS["ftrl"][0], OPTIMIZERS["adagrad"][0]),
                     "wide: {%s}, deep: {%s}" % (OPTIMIZERS["ftrl"][1], OPTIMIZERS["adagrad"][1])),
    **{name: OPTIMIZERS[name] for name in ("sgd", "momentum", "adagrad", "rmsprop", "ftrl")},
}
NAMES = {  # ours by theirs
    "softmax": {"logits/kernel": "weights/W1", "logits/bias": "biases/b1"},
    "mlp": {"hidden/kernel": "weights/W1", "hidden/bias": "biases/b1", "logits/kernel": "weights/W2",
            "logits/bias": "biases/b2"},
    "wide_deep": {"linear/weights": "weights/W1", "linear/bias": "biases/b1", "dnn/embedding": "embeddings/E1",
                  "dnn/hidden/kernel": "deep/W1", "dnn/hidden/bias": "deep/b1", "dnn/logits/kernel": "deep/W2",
                  "dnn/logits/bias": "deep/b2"},
}
NAMES["table"] = NAMES["softmax"]


def is_sparse(kind):
    return kind in ("table", "wide_deep")


def draw(kind, seed, rows):
    random = np.random.default_rng(seed)
    truth = np.random.default_rng(0)
    noise = random.normal(size=(rows, CLASSES))
    if is_sparse(kind):
        features = np.stack([np.sort(random.choice(KEYS, NAMED, replace=False)) for _ in range(rows)])
        scores = truth.normal(size=(KEYS, CLASSES))[features].sum(1) + noise
        return features, scores.argmax(1) if kind == "table" else (scores[:, 0] > 0).astype(np.int64)
    features = random.normal(size=(rows, FEATURES)).astype(np.float32)
    return features, (features @ truth.normal(size=(FEATURES, CLASSES)) + noise).argmax(1)


class TensorFlow:
    """The model in TensorFlow, in a graph and a session of its own."""

    def __init__(self, kind, optimizer, features):
        self.graph = v1.Graph()
        with self.graph.as_default():
            v1.set_random_seed(1)
            self.x, self.y = v1.placeholder(features.dtype, [None, features.shape[1]]), v1.placeholder(tf.int64, [None])
            self.weights = {}
            self.ps = 0
            logits = self.wide_deep() if kind == "wide_deep" else self.layers(kind)
            if kind == "wide_deep":
                losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.cast(self.y, tf.float32), logits=logits)
                self.probabilities = tf.stack([tf.sigmoid(-logits), tf.sigmoid(logits)], 1)
            else:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.y, logits=logits)
                self.probabilities = tf.nn.softmax(logits)
            self.loss = tf.reduce_mean(losses)
            count = v1.train.get_or_create_global_step()
            if isinstance(optimizer, tuple):
                each = [v1.trainable_variables(scope) for scope in ("linear", "dnn")]
                steps = [make().minimize(self.loss, var_list=of) for make, of in zip(optimizer, each)]
                with tf.control_dependencies(steps):
                    self.step = v1.assign_add(count, 1)
            else:
                self.step = optimizer().minimize(self.loss, global_step=count)
            self.saver = v1.train.Saver(v1.global_variables(), sharded=is_sparse(kind))
            self.session = v1.Session(config=v1.ConfigProto(device_count={"CPU": 2}))
            self.session.run(v1.global_variables_initializer())

    def variable(self, name, shape, table=False):
        def device(operation):
            if "/part_" in operation.name:  # the slices in turn
                return f"/cpu:{int(operation.name.split('/part_')[1].split('/')[0]) % 2}"
            return "/cpu:0"

        start = v1.zeros_initializer() if len(shape) == 1 else v1.glorot_uniform_initializer()
        with v1.device(device):
            made = v1.get_variable(name, shape, initializer=start, use_resource=True,
                                   partitioner=v1.fixed_size_partitioner(3) if table else None)
        self.weights[name] = tf.convert_to_tensor(made)
        return made

    def dense(self, name, inputs, width):
        return tf.matmul(inputs, self.variable(name + "/kernel", [int(inputs.shape[1]), width])) + self.variable(
            name + "/bias", [width])

    def rows(self, name, width):
        return tf.reduce_sum(v1.nn.embedding_lookup(self.variable(name, [KEYS, width], table=True), self.x, "div"), 1)

    def layers(self, kind):
        if kind == "table":
            return self.rows("logits/kernel", CLASSES) + self.variable("logits/bias", [CLASSES])
        hidden = tf.nn.relu(self.dense("hidden", self.x, HIDDEN)) if kind == "mlp" else self.x
        return self.dense("logits", hidden, CLASSES)

    def wide_deep(self):
        wide = self.rows("linear/weights", 1) + self.variable("linear/bias", [1])
        hidden = tf.nn.relu(self.dense("dnn/hidden", self.rows("dnn/embedding", EMBEDDING), HIDDEN))
        return (wide + self.dense("dnn/logits", hidden, 1))[:, 0]

    def train(self, features, labels, begin, end):
        for number in range(begin + 1, end + 1):
            rows = np.arange(BATCH) + (number - 1) * BATCH % ROWS
            self.session.run(self.step, {self.x: features[rows], self.y: labels[rows]})
        return float(self.session.run(self.loss, {self.x: features, self.y: labels}))

    def predict(self, features):
        return self.session.run(self.probabilities, {self.x: features})

    def save(self, prefix):
        with self.graph.as_default():
            self.saver.save(self.session, prefix, write_meta_graph=False)

    def restore(self, prefix):
        with self.graph.as_default():
            self.saver.restore(self.session, prefix)


def write_rows(kind, features, labels, path):
    with open(path, "w") as file:
        for row, label in zip(features, labels):
            if is_sparse(kind):
                file.write(f"{label} " + " ".join(f"{key}:1" for key in row) + "\n")
            else:
                file.write(",".join(repr(float(value)) for value in row) + f",{label}\n")


class Dtrain:
    """The job in dtrain, in a directory with the files `rows` and `others`."""

    def __init__(self, program, kind, optimizer, directory):
        self.program, self.kind, self.directory = os.path.abspath(program), kind, directory
        table, base = f"{{format: csv, path: rows, header: false, label: {FEATURES}}}", ""
        if is_sparse(kind):
            table, base = "{format: libsvm, path: rows}", ", index_base: 0"
        model = {"softmax": f"softmax, outputs: {CLASSES}",
                 "mlp": f"mlp, hidden: [{HIDDEN}], activation: relu, outputs: {CLASSES}",
                 "table": f"softmax, inputs: {KEYS}, outputs: {CLASSES}",
                 "wide_deep": f"wide_deep, inputs: {KEYS}, embedding: {EMBEDDING}, hidden: [{HIDDEN}], "
                              "activation: relu, table: range"}[kind]
        with open(directory + "/job.yaml", "w") as file:
            file.write(f"model: {{kind: {model}}}\n"
                       f"data: {{train: {table}, test: {table}, shuffle: false{base}}}\n"
                       f"train: {{mode: sync, batch_size: {BATCH}, steps: 1, optimizer: {{{optimizer}}}}}\n")

    def run(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, cwd=self.directory)
        if done.returncode != 0:
            sys.exit(f"{' '.join(done.args)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def maps(self):
        return [part for theirs, ours in NAMES[self.kind].items() for part in ("--map", f"{theirs}={ours}")]

    def train(self, stop):
        self.run("local", "--config", "job.yaml", "--ps", "2" if is_sparse(self.kind) else "1", "--workers", "1", "--set",
                 "checkpoint.dir=ckpt", "--set", f"train.steps={stop}")
        told = json.loads(self.run("eval", "ckpt", "--json"))
        assert told["global_step"] == stop, told
        return told["loss"]

    def predict(self):
        rows = [json.loads(line)["probabilities"] for line in
                self.run("predict", "ckpt", "--newest", "--data", "others", "--format", "jsonl").splitlines()]
        return np.array([list(row.values()) for row in rows])


def apart(one, other):
    return float(np.abs(one - other).max())


def compare(program, kind, optimizer, ours, directory):
    """Gives losses and their differences by step, and the differences of weights and probabilities."""
    features, labels = draw(kind, 1, ROWS)
    others, unused = draw(kind, 2, OTHERS)
    write_rows(kind, features, labels, directory + "/rows")
    write_rows(kind, others, unused, directory + "/others")
    theirs, mine = TensorFlow(kind, optimizer, features), Dtrain(program, kind, ours, directory)
    theirs.train(features, labels, 0, BEFORE)
    theirs.save(directory + "/model.ckpt")
    mine.run("import", "model.ckpt", "--config", "job.yaml", "--out", "ckpt", *mine.maps())
    taken = apart(theirs.predict(others), mine.predict())
    losses, done = {}, BEFORE
    for stop in STOPS:
        losses[stop] = theirs.train(features, labels, done, stop), mine.train(stop)
        done = stop
    mine.run("export", "ckpt", "--newest", "--to", "tf", "--out", "back/model.ckpt", *mine.maps())
    back = TensorFlow(kind, optimizer, features)
    back.restore(directory + "/back/model.ckpt")
    given = apart(back.predict(others), mine.predict())
    weights = max(apart(one, other) for one, other in zip(theirs.session.run(list(theirs.weights.values())),
                                                          back.session.run(list(back.weights.values()))))
    losses[LAST] = back.train(features, labels, done, LAST), mine.train(LAST)
    return losses, weights, taken, given


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", default=["softmax", "mlp", "table", "wide_deep"])
    parser.add_argument("--dtrain", default="bazel-bin/cmd/dtrain")
    options = parser.parse_args()
    worst = worst_given = 0
    print("model      optimizer    " + "".join(f"  loss {stop:>4}    differs" for stop in STOPS) +
          f"  {LAST} differs   weights  imported  exported")
    for kind in options.models:
        for name, (optimizer, ours) in (WIDE_DEEP if kind == "wide_deep" else OPTIMIZERS).items():
            if (kind, name) == ("table", "adam"):
                continue
            with tempfile.TemporaryDirectory() as directory:
                losses, weights, taken, given = compare(options.dtrain, kind, optimizer, ours, directory)
            differ = {stop: abs(got / expected - 1) for stop, (expected, got) in losses.items()}
            worst, worst_given = max(worst, *differ.values()), max(worst_given, taken, given)
            print(f"{kind:<10} {name:<12} " +
                  "".join(f"  {losses[stop][0]:9.6f}  {differ[stop]:9.1e}" for stop in STOPS) +
                  f"  {differ[LAST]:11.1e}  {weights:8.1e}  {taken:8.1e}  {given:8.1e}", flush=True)
    print(f"largest difference of a loss: {worst:.1e}, of a probability: {worst_given:.1e}")
    sys.exit(worst > 1e-4 or worst_given > 1e-6)


if __name__ == "__main__":
    main()
