"""Rows per second and processor seconds of other readers of CSV: pandas' C engine, pyarrow, LightGBM.

usage: reading.py FILE   (a CSV file with a header, whose label is y)

Each reads the file as numbers on one thread where it can be told to; a reader that is not installed is left out.
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


def main():
    path = sys.argv[1]
    for reader in (with_pandas, with_pyarrow, with_lightgbm):
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
