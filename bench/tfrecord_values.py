"""What dtrain reads of TFRecord beside tf.io.parse_example, for features of many shapes.

    python bench/tfrecord_values.py [path/to/dtrain]

Needs tensorflow-cpu 2.21. TensorFlow's TFRecordWriter writes each shape plain, with GZIP and with ZLIB, once as
TensorFlow serialises lists of numbers, packed, and once unpacked. Columns that `dtrain predict --keep` prints are
compared as float32, int or text with what parse_example gives. Of labels, weights, bags and numbers in bytes the
same run trains on the file and on a CSV of parse_example's values: the models must be equal, bit for bit. Left out
are what parse_example loses (docs/data.md), and texts that no bag of CSV can have. Exit 1 if something differs.
"""
import csv
import io
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")
import numpy as np
import tensorflow as tf

CONFIG = """
model: {kind: logistic}
data: {train: {format: tfrecord, path: model.tfrecord, label: y}}
train: {epochs: 2, batch_size: 8, mode: sync, optimizer: {kind: sgd, learning_rate: 0.1}}
"""
INTS = [0, 1, -1, 127, 128, -128, 2**31, -2**31, 2**53 + 1, -2**53 - 1, 2**63 - 1, -2**63]
FLOATS = [0.0, -0.0, 1.5, 0.1, 1 / 3, 16777217.0, 1e-45, -1.1754942e-38, 1.1754944e-38, 3.4028235e38, -3.4028235e38]
NUMBERS = [b"5", b"-0.25", b"1e3", b".5", b"+2", b"007", b"1E-2", b"3.", b"1e-45", b"0.1", b"123456789", b"-0"]
TEXTS = [text.encode() for text in ("a b", " ü 日本", "", " a ", "a,b", 'say "x"', "two\nlines", "x" * 300, "\t", "NA",
                                    "a;b:1", "5")]
WORDS = [text.encode() for text in ("a b", "ü 日本", "http://a:1", "x" * 200, "a", "5", 'say "x"', "a,b")]
ROWS = range(24)
NO_KIND = ()  # a Feature without a list; None: the key is absent; []: a list without values


def bags(values, step):
    return [[values[(row * step + i) % len(values)] for i in range(row * 7 % 40)] for row in ROWS]


def gaps(values):
    return [None if i % 3 == 1 else NO_KIND if i % 3 == 2 else value for i, value in enumerate(values)]


WAVES = [[float(np.float32(np.sin(row + i))) for i in range(130)] for row in ROWS]
WIDE = (float, WAVES)
LABEL = (int, [row // 2 % 2 for row in ROWS])
WEIGHTS = (float, [WAVES[row][:len(bag)] for row, bag in enumerate(bags(WORDS, 3))])
# A shape: its columns, each a kind and its rows, and the keys of a run; None: --keep prints the column v.
SHAPES = {
    "int64": ({"v": (int, INTS)}, None),
    "float": ({"v": (float, FLOATS)}, None),
    "bytes": ({"v": (bytes, TEXTS)}, None),
    "2 int64": ({"v": (int, [[i, ~i] for i in INTS])}, None),
    "130 int64": ({"v": (int, [[i] * 129 + [7] for i in INTS])}, None),
    "2 floats": ({"v": (float, [[f, -f] for f in FLOATS])}, None),
    "130 floats": ({"v": WIDE}, None),
    "int64 with gaps": ({"v": (int, gaps(INTS))}, None),
    "floats with gaps": ({"v": (float, gaps(FLOATS))}, None),
    "bytes with gaps": ({"v": (bytes, gaps(TEXTS))}, None),
    "numbers in bytes": ({"y": LABEL, "v": (bytes, NUMBERS * 2)}, {}),
    "130 floats, trained": ({"y": LABEL, "v": WIDE}, {}),
    "gaps, trained": ({"y": LABEL, "v": (float, gaps(w[0] for w in WAVES))}, {"data.missing": "zero"}),
    "hashed": ({"y": LABEL, "i": (int, gaps(INTS * 2)), "t": (bytes, gaps(TEXTS * 2))}, {"data.hash": "[i, t]"}),
    "bag of int64": ({"y": LABEL, "b": (int, bags(INTS, 5))}, {"data.bags": "[b]"}),
    "bag of bytes": ({"y": LABEL, "b": (bytes, bags(WORDS, 3))}, {"data.bags": '["b=none"]'}),
    "bag with weights": ({"y": LABEL, "b": (bytes, bags(WORDS, 3)), "w": WEIGHTS}, {"data.bags": '["b=w"]'}),
    "bags with gaps": ({"y": LABEL, "b": (int, gaps(bags(INTS, 5))), "c": (bytes, gaps(bags(WORDS, 3)))},
                       {"data.bags": '[b, "c=none"]', "model.kind": "fm"}),
    "bags, wide_deep": ({"y": LABEL, "b": (int, bags(INTS, 5)), "c": (bytes, bags(WORDS, 3)), "n": WIDE},
                        {"data.bags": '[b, "c=none"]', "model.kind": "wide_deep", "model.hidden": "[4]"}),
    "label int64": ({"y": (int, [100 * (row % 3) - 5 for row in ROWS]), "v": WIDE},
                    {"model.kind": "softmax", "data.label_type": "names"}),
    "label float": ({"y": (float, [w[1] for w in WAVES]), "v": WIDE}, {"model.kind": "linear"}),
    "label in bytes": ({"y": (bytes, [b"+1", b"-1.0"] * 12), "v": WIDE}, {}),
    "label of names": ({"y": (bytes, WORDS[:4] * 6), "v": WIDE}, {"model.kind": "softmax"}),
    "weight of the row": ({"y": LABEL, "v": WIDE, "w": (float, [0.1 * row for row in ROWS])}, {"data.weight": "w"}),
}


def part(number, content):
    """A field of a message, with its length."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(n):
    n &= (1 << 64) - 1
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


KINDS = {bytes: (1, "bytes_list", tf.string, lambda v: part(1, v)),
         float: (2, "float_list", tf.float32, lambda v: b"\x0d" + struct.pack("<f", v)),
         int: (3, "int64_list", tf.int64, lambda v: b"\x08" + varint(v))}


def listed(value):
    return value if isinstance(value, (list, tuple)) else [value]


def write(path, columns, packing, packed):
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=packing)) as writer:
        for i in range(len(next(iter(columns.values()))[1])):
            features, entries = {}, b""
            for name, (kind, rows) in columns.items():
                if rows[i] is None:
                    continue
                number, field, _, unpacked = KINDS[kind]
                values = {} if rows[i] == NO_KIND else {field: {"value": listed(rows[i])}}
                features[name] = tf.train.Feature(**values)
                content = part(number, b"".join(map(unpacked, listed(rows[i])))) if values else b""
                entries += part(1, part(1, name.encode()) + part(2, content))
            example = tf.train.Example(features={"feature": features}).SerializeToString()
            writer.write(example if packed else part(1, entries))


def titles(columns, name, keys):
    """The columns that a list is for dtrain: one, if it is in data.bags."""
    rows = columns[name][1]
    if name in re.findall(r"\w+", keys.get("data.bags", "")) or not isinstance(rows[0], list):
        return [name]
    return [f"{name}[{i}]" for i in range(len(rows[0]))]


def parsed(path, columns, packing, keys):
    """What parse_example gives, as the lines of a CSV table."""
    records = list(tf.data.TFRecordDataset(str(path), compression_type=packing))
    found = tf.io.parse_example(records, {n: tf.io.RaggedFeature(KINDS[c[0]][2]) for n, c in columns.items()})
    lines = [[title for name in sorted(columns) for title in titles(columns, name, keys)]]
    for i in range(len(records)):
        lines.append([])
        for name in sorted(columns):
            texts = [v.decode() if isinstance(v, bytes) else str(v) for v in found[name][i].numpy()]
            lines[-1] += [";".join(texts)] if len(titles(columns, name, keys)) == 1 else texts
    return lines


def dtrain(program, work, *arguments):
    done = subprocess.run([program, *arguments], cwd=work, capture_output=True)
    if done.returncode != 0:
        raise ValueError(f"dtrain {' '.join(arguments)}: exit {done.returncode}\n{done.stderr.decode()}")
    return done.stdout.decode()


def crc(program, work, path, keys):
    """The checksum of the model that a run on the file ends with."""
    keys = {**keys, "data.train.format": path.suffix[1:], "data.train.path": path}
    sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    dtrain(program, work, "local", "run.yaml", "--workers", "1", "--run", "none", "--result", "result.json", *sets)
    return json.loads((work / "result.json").read_text())["model_crc"]


def difference(program, work, columns, keys, packing, packed):
    """What dtrain reads in another way, or None."""
    path = work / "rows.tfrecord"
    write(path, {**columns, "a": (int, [0] * len(columns["v"][1]))} if keys is None else columns, packing, packed)
    lines = parsed(path, columns, packing, keys or {})
    if keys is not None:
        with open(work / "rows.csv", "w", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(lines)
        ours, theirs = (crc(program, work, work / name, keys) for name in ("rows.tfrecord", "rows.csv"))
        return None if ours == theirs else f"model crc {ours}, {theirs} with parse_example's values"
    found = dtrain(program, work, "predict", "model", "--data", str(path), "--keep", *lines[0])
    rows = list(csv.reader(io.StringIO(found, newline="")))
    if len(rows) != len(lines):
        return f"{len(rows) - 1} rows, {len(lines) - 1} of parse_example"
    for i, (row, line) in enumerate(zip(rows, lines)):
        for name, ours, theirs in zip(lines[0], row, line):
            is_float = columns["v"][0] is float and i > 0 and ours and theirs
            if np.float32(ours).tobytes() != np.float32(theirs).tobytes() if is_float else ours != theirs:
                return f"row {i}, {name}: {ours!r}, {theirs!r} of parse_example"
    return None


def main():
    program = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "bazel-bin/cmd/dtrain").resolve())
    packings = [(packing, packed) for packing in ("", "GZIP", "ZLIB") for packed in (True, False)]
    good = True
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "run.yaml").write_text(CONFIG)
        write(work / "model.tfrecord", {"y": LABEL, "a": (int, ROWS)}, "", True)
        dtrain(program, work, "local", "run.yaml", "--workers", "1", "--run", "model")
        for shape, (columns, keys) in SHAPES.items():
            for packing, packed in packings:
                try:
                    what = difference(program, work, columns, keys, packing, packed)
                except ValueError as refused:
                    what = refused
                if what is not None:
                    print(f"{shape}, {packing or 'plain'}, {'packed' if packed else 'unpacked'}: {what}")
                    good = False
    if good:
        print(f"{len(SHAPES)} shapes x {len(packings)} packings: all equal")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
