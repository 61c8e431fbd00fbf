"""table_exports.py DIRECTORY: whether the exported files of a table there agree, and give the logits of raw.csv for the
rows of test-1.txt. Prints "fine"."""
import csv
import sys

import numpy
import onnxruntime
from safetensors.numpy import load_file
from sklearn.datasets import load_svmlight_file

folder = sys.argv[1] + "/"
dense = load_file(folder + "dense.safetensors")
weights, biases = dense["weights/W1"], dense["biases/b1"]
features = weights.shape[0]

rows = load_file(folder + "m.safetensors")
assert rows["table.keys"].dtype == numpy.int64 and numpy.all(numpy.diff(rows["table.keys"]) > 0)
assert numpy.all(numpy.any(rows["table.rows"] != 0, axis=1))
filled = numpy.zeros_like(weights)
filled[rows["table.keys"]] = rows["table.rows"]
assert numpy.array_equal(filled, weights) and numpy.array_equal(rows["bias"], biases)

parts = [load_file(folder + f"p-{i:05}-of-00003.safetensors") for i in (1, 2, 3)]
assert all(numpy.all(numpy.diff(part["table.keys"]) > 0) and len(part["table.keys"]) > 0 for part in parts)
keys, values = (numpy.concatenate([part["table." + name] for part in parts]) for name in ("keys", "rows"))
order = numpy.argsort(keys)
assert numpy.array_equal(keys[order], rows["table.keys"]) and numpy.array_equal(values[order], rows["table.rows"])
assert numpy.array_equal(parts[2]["bias"], biases) and "bias" not in parts[0]

npz = numpy.load(folder + "m.npz")
assert numpy.array_equal(npz["weights/W1"], weights) and numpy.array_equal(npz["biases/b1"], biases)

lines = list(csv.reader(open(folder + "m.tsv"), delimiter="\t"))
assert lines[0] == ["feature", "name", "weight"] and lines[-1][:2] == [str(features), "bias"]
assert [int(line[0]) for line in lines[1:-1]] == list(rows["table.keys"])
assert all(int(line[1]) == int(line[0]) + 1 for line in lines[1:-1])
assert numpy.array_equal(numpy.array([numpy.float32(line[2]) for line in lines[1:-1]]), rows["table.rows"][:, 0])
assert numpy.float32(lines[-1][2]) == biases[0]

# As load_model() of LIBLINEAR reads it.
header, model = open(folder + "m.liblinear").read().split("\nw\n")
settings = dict(line.split(" ", 1) for line in header.split("\n"))
count = int(settings["nr_feature"])
assert settings["solver_type"] == "L2R_LR" and settings["nr_class"] == "2" and settings["bias"] == "1"
assert len(settings["label"].split()) == 2
values = numpy.array([numpy.float32(line) for line in model.split("\n")[:-1]])
assert len(values) == count + 1 and values[-1] == biases[0]
assert numpy.array_equal(values[:-1], weights[:count, 0]) and not weights[count:].any()

inputs, _ = load_svmlight_file(folder + "test-1.txt", n_features=features, zero_based=False)
logits = inputs.toarray() @ weights[:, 0].astype(float) + float(biases[0])
ours = numpy.array([float(row["logit"]) for row in csv.DictReader(open(folder + "raw.csv"))])
assert numpy.allclose(logits, ours, rtol=0, atol=1e-5)

session = onnxruntime.InferenceSession(folder + "m.onnx")
(predictions,) = session.run(["prediction"], {"features": inputs.toarray().astype(numpy.float32)})
assert numpy.mean(predictions.ravel() == (ours > 0)) > 0.99
print("fine")
