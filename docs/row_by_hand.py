"""Computes the answer of a model to a row from what `dtrain export` wrote as safetensors, as docs/models.md says.

answer("model.safetensors", row): for a table {name: text}, or [text, ...] if its columns have no names; a line of libsvm or
criteo; for vw any row, and in `found` its features as Vowpal Wabbit numbers them. It holds for every kind of model.
Needs: pip install numpy safetensors xxhash
"""
import json
import math

import numpy
import safetensors
import xxhash


def load(path):
    about = {}
    with safetensors.safe_open(path, "numpy") as file:
        for key, text in file.metadata().items():
            try: about[key] = json.loads(text)
            except ValueError: about[key] = text                # a word
        return about, {name: file.get_tensor(name) for name in file.keys()}


def number(column, text):                                       # as float32
    if text == "": return numpy.float32(column["missing"])
    if column["kind"] != "date": return numpy.float32(text)
    return numpy.float32((numpy.datetime64(text) - numpy.datetime64("1970-01-01")) / numpy.timedelta64(1, "D"))


def field(row, column):                                         # its text; empty: a gap
    text = (row[column["name"]] if isinstance(row, dict) else row[column["column"]]).strip()
    gaps = ["", "?", "na", "n/a", "nan", "null"]
    is_marked = any(same(text, marker) for marker in column.get("missing_values", []))
    return "" if text.lower() in gaps or is_marked else text


def same(text, marker):                                         # -999.0 is -999, too
    try: return float(text) == float(marker)
    except ValueError: return text == marker


def features(about, row):                                       # of a row of a table, {name: text}, or [text, ...]
    x = []
    if "table_columns" not in about: return [float(text) for text in row]
    for column in about["table_columns"]:
        text = field(row, column)
        if column["kind"] == "category":
            x += [float(text == one) for one in column["texts"]]
            if "other" in column: x.append(float(text not in column["texts"]))
        else:
            x.append(number(column, text))
            if "indicator" in column: x.append(float(text == ""))
    return x


def sparse(about, row):                                         # (key, value, column), and the numbers of wide_deep
    form, bits, deep = about["data.train.format"], about.get("data.hash_bits"), about["model.kind"] == "wide_deep"
    def key(seed, text, at=0):
        hashed = xxhash.xxh3_64_intdigest(text.encode(), seed=xxhash.xxh3_64_intdigest(seed.encode()))
        return (hashed & (1 << bits) - 1) + (at << bits if deep else 0)
    if form == "libsvm":                                        # the line
        pairs = [item.split(":") for item in row.split()[1:]]
        return [(int(index) - about["data.index_base"], float(value), 0) for index, value in pairs], []
    if form == "criteo":                                        # the line
        texts = row.rstrip("\n").split("\t")[-39:]
        found = [(key(f"C{i + 1}", text, i), 1.0, i) for i, text in enumerate(texts[13:])]
        if deep: return found, [numpy.float32(text or 0) for text in texts[:13]]
        bucket = lambda n: str(n) if n <= 2 else f">{int(math.log(n) ** 2)}"
        counts = [text and bucket(int(float(text))) for text in texts[:13]]         # 5.0 is 5
        return found + [(key(f"I{i + 1}", text), 1.0, 0) for i, text in enumerate(counts)], []
    found, numbers, at = [], [], 0                              # a table with data.hash or data.bags
    separator = {"comma": ",", "bar": "|", "blanks": None}.get(about.get("data.bag_separator"), ";")
    for column in about["table_columns"]:
        text = field(row, column)
        if column["kind"] == "weights": continue
        if column["kind"] in ("hashed", "bag"):
            pairs = [(text, 1)]
            if column["kind"] == "bag":
                items = lambda text: [item.strip() for item in text.split(separator)] if text else []
                pairs = [(item, 1) for item in items(text)]
                if "weights" in column: pairs = zip(items(text), items(field(row, column["weights"])))
                elif column.get("colons"): pairs = [(*item.rsplit(":", 1), 1)[:2] for item, _ in pairs]
            found += [(key(column["seed"], item.strip(), at), float(weight), at) for item, weight in pairs]
            at += 1
        elif deep: numbers.append(number(column, text))
        else: found.append((key(column["seed"], ""), float(number(column, text)), 0))
    return found, numbers


def layers(about, tensors, x, name):                            # name: "weights/W", "biases/b", or "deep/W", "deep/b"
    act = {"relu": lambda z: numpy.maximum(z, 0), "tanh": numpy.tanh, "sigmoid": lambda z: 1 / (1 + numpy.exp(-z))}
    count = sum(tensor.startswith(name[0]) for tensor in tensors)
    for i in range(1, count + 1):
        x = x @ tensors[f"{name[0]}{i}"].astype(float) + tensors[f"{name[1]}{i}"]
        if i < count: x = act[about["model.activation"]](x)
    return x


def scaled(about, x):
    scale, x = about.get("scale", {}), numpy.array(x, float)
    if "divide_by" in scale: return x / scale["divide_by"]
    return ((x - scale["shift"]) * scale["factor"]).astype("float32") if scale else x


def answer(path, row, found=None):                              # found: (key, value, column), of vw
    about, tensors = load(path)
    if "table.keys" in tensors:
        found, numbers = (found, []) if found else sparse(about, row)
        rows = dict(zip(tensors["table.keys"].tolist(), tensors["table.rows"].astype(float)))
        none = numpy.zeros(tensors["bias"].shape)
        taken = numpy.array([rows.get(key, none) * x for key, x, _ in found] or [none])
        z = tensors["bias"] + taken.sum(0)
        if about["model.kind"] == "fm":                         # pairs of features, by their factors
            z = z[:1] + (taken[:, 1:].sum(0) ** 2 - (taken[:, 1:] ** 2).sum(0)).sum() / 2
        if about["model.kind"] == "wide_deep":
            joined = about["model.combine"] == "join"
            embedded = numpy.zeros((about["columns"] if joined else 1, taken.shape[1] - 1))
            for (_, _, column), values in zip(found, taken): embedded[column if joined else 0] += values[1:]
            if about["data.numbers"] == "log": numbers = numpy.sign(numbers) * numpy.log1p(numpy.abs(numbers))
            x = numpy.concatenate([embedded.ravel(), scaled(about, numbers)])
            z = z[:1] + layers(about, tensors, x, ("deep/W", "deep/b"))
    else:
        dense = about["data.train.format"] in ("csv", "idx") and not about.keys() & {"data.hash", "data.bags"}
        x = features(about, row) if dense else numpy.zeros(len(tensors["weights/W1"]))
        for key, value, _ in [] if dense else found or sparse(about, row)[0]: x[key] += value
        z = layers(about, tensors, scaled(about, x), ("weights/W", "biases/b"))
    link = numpy.exp if about.get("model.loss") in ("poisson", "gamma", "tweedie") else float
    if about["model.head"] == "linear": return float(link(z[0]))
    if "hinge" in about.get("model.loss", ""): return float(z[0])       # class 1 above 0
    z = z if about["model.head"] == "softmax" else numpy.array([0, z[0]])
    p = numpy.exp(z - z.max()) / numpy.exp(z - z.max()).sum()
    return dict(zip(about.get("classes") or map(str, range(len(p))), p.tolist()))
