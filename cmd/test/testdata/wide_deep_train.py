"""A linear model and layers on embeddings, by their formulas, in numpy and float64: what each step's loss is before it.

usage: wide_deep_train.py JSON BATCH_SIZE LEARNING_RATE
       JSON: {"columns": how many are joined, or 1, "rows": [[label, [numbers], [ids]], ...],
              "embeddings": {id: values}, "layers": [[weights, biases], ...]}; ids stand in the order of columns.
       Prints the mean logistic loss of the rows of each step of stochastic gradient descent, in the order of the file.
"""
import json
import sys

import numpy as np

job = json.load(open(sys.argv[1], encoding="utf-8"))
size, rate = int(sys.argv[2]), float(sys.argv[3])
place = {name: at for at, name in enumerate(job["embeddings"])}
E = np.array(list(job["embeddings"].values()))
w, b = np.zeros(len(E)), 0.0
layers = [[np.array(weights), np.array(biases)] for weights, biases in job["layers"]]
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
    E, w, b = E - rate * of_embeddings, w - rate * of_weights, b - rate * slope.sum()
    for layer, (of_w, of_b) in zip(reversed(layers), steps):
        layer[0], layer[1] = layer[0] - rate * of_w, layer[1] - rate * of_b
