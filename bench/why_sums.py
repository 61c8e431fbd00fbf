"""predict --why beside what the exports of the same model give, on 10,000 rows of linear, fm, mlp and wide_deep.

    python bench/why_sums.py path/to/dtrain WORK_DIRECTORY

Needs numpy, onnxruntime, safetensors and xxhash. The bias, the K contributions and the rest of a row are summed up, and
must be within 1e-6 of its size of the output that the model's safetensors, npz, tsv and ONNX files give: the first by
the example of docs/models.md as it stands there, in float64. ONNX computes layers in float32, so its bar is 2e-5 for
models with layers. Exit 1 if a bar is missed.
"""
import csv
import functools
import json
import pathlib
import re
import subprocess
import sys

import numpy
import onnxruntime

ROWS = 10_000
BAR, FLOAT32_BAR = 1e-6, 2e-5
page = (pathlib.Path(__file__).parent.parent / "docs" / "models.md").read_text()
example = {}
exec(next(block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "def answer(" in block), example)
example["load"] = functools.lru_cache(example["load"])
failed = []


def check(name, sums, scores, bar=BAR):
    scores = numpy.array(scores, float)
    worst = float((numpy.abs(sums - scores) / numpy.maximum(1, numpy.abs(scores))).max())
    print(f"  {name}: {len(sums)} rows, {worst:.1e}{'' if worst <= bar else f', above {bar:g}'}", flush=True)
    if not worst <= bar or len(sums) != len(scores) or len(sums) != ROWS:
        failed.append(name)


class Model:
    def __init__(self, program, work, name, model, data, rows):
        self.folder, self.program, self.name = work / name, program, name
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "job.yaml").write_text(
            f"model: {{{model}}}\ndata: {{{data}}}\ntrain: {{mode: sync, epochs: 1, batch_size: 64, optimizer: "
            "{kind: adam, learning_rate: 0.01}}\ncheckpoint: {dir: ckpt}\n")
        print(name, flush=True)
        self.call("local", "--config", "job.yaml", "--workers", "1", "--in-process", "--run", "none",
                  "--set", "checkpoint.resume=never")
        self.sums = []
        answers = self.call("predict", "ckpt", "--data", str(rows), "--why", "3", "--format", "csv")
        for row in csv.DictReader(answers.splitlines()):
            parts = ["bias", "rest"] + [f"contribution_{k}" for k in (1, 2, 3)]
            self.sums.append(sum(float(row[part] or 0) for part in parts))
        self.sums = numpy.array(self.sums)

    def call(self, *arguments):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.folder}: dtrain {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def export(self, file, *more):
        self.call("export", "ckpt", "--out", file, *more)
        return str(self.folder / file)

    def beside_safetensors(self, rows):
        path = self.export("model.safetensors")
        check(f"{self.name}, safetensors", self.sums, [example["answer"](path, row) for row in rows])

    def beside_npz(self, x):
        tensors = numpy.load(self.export("model.npz", *self.dense()))
        about = example["load"](str(self.folder / "model.safetensors"))[0]
        scores = example["layers"](about, tensors, example["scaled"](about, x), ("weights/W", "biases/b"))
        check(f"{self.name}, npz", self.sums, scores[:, 0])

    def beside_onnx(self, x, bar=BAR):
        session = onnxruntime.InferenceSession(self.export("model.onnx", *self.dense()))
        scores = session.run(None, {session.get_inputs()[0].name: x.astype("float32")})[0]
        check(f"{self.name}, onnx", self.sums, scores.reshape(-1), bar)

    def beside_tsv(self, rows):
        lines = [line.split("\t") for line in pathlib.Path(self.export("model.tsv")).read_text().splitlines()[1:]]
        weights = {name: numpy.array([value for value in values if value], float) for _, name, *values in lines}
        bias = weights.pop("bias")[0]
        scores = []
        for row in rows:
            pairs = [item.split(":") for item in row.split()[1:]]
            taken = numpy.array([weights[index] * float(value) for index, value in pairs if index in weights])
            factors = taken[:, 1:]
            scores.append(bias + taken[:, 0].sum() + ((factors.sum(0) ** 2) - (factors ** 2).sum(0)).sum() / 2)
        check(f"{self.name}, tsv", self.sums, scores)

    def dense(self):
        return ["--dense"] if "libsvm" in (self.folder / "job.yaml").read_text() else []


def main(program, work):
    program, work = str(pathlib.Path(program).resolve()), pathlib.Path(work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    draw = numpy.random.default_rng(5)
    x = draw.normal(size=(ROWS, 8)) * 10.0 ** draw.integers(-2, 3, 8)
    y = numpy.tanh(x[:, 0]) + draw.normal(size=ROWS)
    table = work / "rows.csv"
    numpy.savetxt(table, numpy.column_stack([x, y]), delimiter=",", fmt="%.7g", comments="",
                  header=",".join([f"x{i}" for i in range(8)] + ["y"]))
    texts = list(csv.DictReader(table.read_text().splitlines()))
    x = numpy.array([[row[f"x{i}"] for i in range(8)] for row in texts], "float32")
    dense = f"train: {{format: csv, path: {table}, label: y}}, scale: standard"
    for name, kind in (("linear", "kind: linear"), ("mlp", "kind: mlp, hidden: [16, 8], activation: tanh, head: linear")):
        model = Model(program, work, name, kind, dense, table)
        model.beside_safetensors(texts)
        model.beside_npz(x)
        model.beside_onnx(x, BAR if name == "linear" else FLOAT32_BAR)
    svm = work / "rows.svm"
    subprocess.run([program, "synth", "libsvm", "--rows", str(ROWS), "--features", "20", "--width", "3000", "--out", svm],
                   check=True)
    lines = svm.read_text().splitlines()
    sparse = f"train: {{format: libsvm, path: {svm}}}"
    for name, kind in (("sparse_linear", "kind: linear"), ("fm", "kind: fm, factors: 4, head: linear")):
        model = Model(program, work, name, kind, sparse, svm)
        model.beside_safetensors(lines)
        model.beside_tsv(lines)
        if name == "fm":
            continue
        features = numpy.zeros((ROWS, numpy.load(model.export("model.npz", "--dense"))["weights/W1"].shape[0]), "float32")
        for row, line in enumerate(lines):
            for item in line.split()[1:]:
                features[row, int(item.split(":")[0]) - 1] += float(item.split(":")[1])
        model.beside_npz(features)
        model.beside_onnx(features)
    criteo = work / "rows.criteo"
    subprocess.run([program, "synth", "criteo", "--rows", str(ROWS), "--out", criteo], check=True)
    model = Model(program, work, "wide_deep", "kind: wide_deep, hidden: [16, 8], embedding: 4, head: linear",
                  f"train: {{format: criteo, path: {criteo}}}, hash_bits: 6, scale: standard", criteo)
    model.beside_safetensors(criteo.read_text().split("\n")[:ROWS])
    if failed:
        sys.exit("missed: " + "; ".join(failed))


if __name__ == "__main__":
    main(*sys.argv[1:])
