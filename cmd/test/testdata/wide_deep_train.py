"""A linear model and layers on embeddings, by their formulas, in numpy and float64: what each step's loss is before it.

usage: wide_deep_train.py JSON BATCH_SIZE WIDE DEEP
       JSON: {"columns": how many are joined, or 1, "rows": [[label, [numbers], [ids]], ...],
              "embeddings": {id: values}, "layers": [[weights, biases], ...]}; ids stand in the order of columns.
       WIDE, DEEP: the optimizers of the linear model and of all else, as in dtrain's config, as JSON.
       Prints the mean logistic loss of the rows of each step, in the order of the file.
"""
import json
import sys

import numpy as np


def optimizer(text):
    """Returns a function from weights and their gradient to new weights; it remembers what it needs of these."""
    settings = json.loads(text)
    rate, slots = settings["learning_rate"], {}

    def sgd(w, g):
        return w - rate * g

    def adagrad(w, g):
        slots["n"] = slots.get("n", 0.1) + g * g
        return w - rate * g / (np.sqrt(slots["n"]) + 1e-8)

    def ftrl(w, g):
        l1, l2, beta = (settings.get(key, 0) for key in ("l1", "l2", "beta"))
        n = slots.get("n", np.full_like(g, 0.1))
        before, after = (beta + np.sqrt(n)) / rate, (beta + np.sqrt(n + g * g)) / rate
        z = slots.get("z", -before * w) + g - (after - before) * w
        slots.update(n=n + g * g, z=z)
        return np.where(np.abs(z) <= l1, 0, (l1 * np.sign(z) - z) / (after + l2))

    return {"sgd": sgd, "adagrad": adagrad, "ftrl": ftrl}[settings["kind"]]


job = json.load(open(sys.argv[1], encoding="utf-8"))
size, wide, deep = int(sys.argv[2]), sys.argv[3], sys.argv[4]
place = {name: at for at, name in enumerate(job["embeddings"])}
E = np.array(list(job["embeddings"].values()))
w, b = np.zeros(len(E)), 0.0
layers = [[np.array(weights), np.array(biases)] for weights, biases in job["layers"]]
step_w, step_b, step_E = optimizer(wide), optimizer(wide), optimizer(deep)
step_layers = [[optimizer(deep), optimizer(deep)] for _ in layers]
y = np.array([row[0] for row in job["rows"]], dtype=float)
numbers = np.array([row[1] for row in job["rows"]])
ids = np.array([[place[str(i)] for i in row[2]] for row in job["rows"]])
for begin in range(0, len(y), size):
    labels, at = y[begin : begin + size], ids[begin : begin + size]
    rows = len(labels)
    sums = E[at] if job["columns"] > 1 else E[at].sum(1, keepdims=True)
    inputs = [np.hstack([sums.reshape(rows, -1), numbers[begin : begin + size]])]
    for weights, biases in layers[:-1]:
        inputs.append(np.maximum(inputs[-1] @ weights + biases, 0))
    z = b + w[at].sum(1) + (inputs[-1] @ layers[-1][0] + layers[-1][1])[:, 0]
    print(repr(float(np.mean(np.logaddexp(0, z) - labels * z))))
    slope = (1 / (1 + np.exp(-z)) - labels) / rows
    delta, steps = slope[:, None], []
    for (weights, biases), below in zip(reversed(layers), reversed(inputs)):
        steps.append((below.T @ delta, delta.sum(0)))
        delta = (delta @ weights.T) * (1 if below is inputs[0] else below > 0)
    of_embeddings = np.zeros_like(E)
    part = delta[:, : delta.shape[1] - numbers.shape[1]].reshape(rows, sums.shape[1], -1)
    np.add.at(of_embeddings, at, np.broadcast_to(part, (*at.shape, E.shape[1])))
    of_weights = np.zeros_like(w)
    np.add.at(of_weights, at, np.broadcast_to(slope[:, None], at.shape))
    touched = np.isin(np.arange(len(E)), at)  # other rows of the table stay as they are
    E = np.where(touched[:, None], step_E(E, of_embeddings), E)
    w, b = np.where(touched, step_w(w, of_weights), w), step_b(b, slope.sum())
    for layer, moves, (of_w, of_b) in zip(reversed(layers), reversed(step_layers), steps):
        layer[0], layer[1] = moves[0](layer[0], of_w), moves[1](layer[1], of_b)
