"""The rows of a run: each worker reads a file of its own, with the same rows until one of them is changed."""
import os
import shutil

ROWS, TEST_ROWS, FEATURES, CLASSES = 6000, 1000, 60, 4


class Data:
    def __init__(self, folder, random, workers):
        self.random = random
        self.paths = [os.path.join(folder, "rows-%d.csv" % worker) for worker in range(workers)]
        self.unchanged, self.test = (os.path.join(folder, name) for name in ("rows.csv", "test.csv"))
        self.weights = [[random.gauss(0, 1) for _ in range(FEATURES)] for _ in range(CLASSES)]
        self.rows = [self._draw() for _ in range(ROWS)]
        self._write(self.unchanged, self.rows)
        self._write(self.test, [self._draw() for _ in range(TEST_ROWS)])
        self.put_back()

    def of_worker(self, worker):
        return self.paths[worker]

    def put_back(self):
        for path in self.paths:
            shutil.copyfile(self.unchanged, path)

    def change(self, worker, how):
        """Gives a worker other rows: fewer, or one row with another label or feature."""
        rows = [list(row) for row in self.rows]
        row = self.random.choice(rows)
        if how == "rows":
            del rows[self.random.randrange(ROWS // 2, ROWS):]
        elif how == "labels":
            row[-1] = (row[-1] + 1) % CLASSES
        else:
            row[self.random.randrange(FEATURES)] += 1
        self._write(self.paths[worker], rows)

    def _draw(self):
        row = [round(self.random.gauss(0, 1), 3) for _ in range(FEATURES)]
        scores = [sum(w * x for w, x in zip(weights, row)) for weights in self.weights]
        return row + [max(range(CLASSES), key=lambda one: scores[one])]

    @staticmethod
    def _write(path, rows):
        with open(path + ".tmp", "w") as file:
            file.write(",".join(["x%d" % feature for feature in range(FEATURES)] + ["y"]) + "\n")
            file.writelines(",".join(map(str, row)) + "\n" for row in rows)
        os.replace(path + ".tmp", path)
