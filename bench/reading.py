"""Rows per second and processor seconds of other readers of CSV: pandas' C engine, pyarrow, LightGBM; and of Vowpal
Wabbit's reader of its own text, and TensorFlow's of TFRecord.

usage: reading.py FILE   (a CSV file with a header, whose label is y, or FILE.vw, or FILE.tfrecord of `dtrain synth criteo`)

Each reads the file as numbers on one thread where it can be told to; a reader that is not installed is left out. Vowpal
Wabbit reads on a thread of its own beside its learner, which does nothing here (--noop).
"""
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"


def with_pandas(path):
    import pandas
    return lambda: len(pandas.read_csv(path, engine="c", dtype="float32"))


def with_pyarrow(path):
    import pyarrow.csv
    options = pyarrow.csv.ReadOptions(use_threads=False)
    return lambda: pyarrow.csv.read_csv(path, read_options=options).num_rows


def with_lightgbm(path):
    import lightgbm
    settings = {"header": True, "label_column": "name:y", "num_threads": 1, "verbosity": -1}
    return lambda: lightgbm.Dataset(path, params=settings).construct().num_data()


def with_vowpalwabbit(path):
    import vowpalwabbit

    def read():
        # It counts no rows for its user.
        vowpalwabbit.Workspace(f"--quiet --noop -b 24 -d {path}").finish()
        return rows

    with open(path, "rb") as lines:
        rows = sum(1 for _ in lines)
    return read


def with_tensorflow(path):
    import tensorflow
    number = tensorflow.io.FixedLenFeature([], tensorflow.int64, 0)
    features = {"label": number, **{f"I{i}": number for i in range(1, 14)}}
    features.update({f"C{i}": tensorflow.io.FixedLenFeature([], tensorflow.string, "") for i in range(1, 27)})
    batches = tensorflow.data.TFRecordDataset(path).batch(1024)
    batches = batches.map(lambda records: tensorflow.io.parse_example(records, features))
    return lambda: sum(batch["label"].shape[0] for batch in batches)


def main():
    path = sys.argv[1]
    of_ending = {".vw": (with_vowpalwabbit,), ".tfrecord": (with_tensorflow,)}
    readers = of_ending.get(os.path.splitext(path)[1], (with_pandas, with_pyarrow, with_lightgbm))
    for reader in readers:
        name = reader.__name__[len("with_"):]
        try:
            read = reader(path)
        except ImportError:
            print(f"{name}: not installed")
            continue
        rows = read()
        walls, processors = [], []
        for _ in range(5):
            wall, processor = time.perf_counter(), time.process_time()
            read()
            walls.append(time.perf_counter() - wall)
            processors.append(time.process_time() - processor)
        middle = len(walls) // 2
        print(f"{name}: {rows / sorted(walls)[middle]:.0f} rows/s, {sorted(processors)[middle]:.3f} processor s")


if __name__ == "__main__":
    main()
