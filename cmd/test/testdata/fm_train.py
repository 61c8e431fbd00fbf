"""A factorization machine by its formulas, in numpy and float64: what each step's loss is before the step.

usage: fm_train.py ROWS FACTORS BATCH_SIZE LEARNING_RATE
       ROWS: lines of libsvm's format with labels 0 and 1; FACTORS: a line for each feature, the first factors.
       Prints the mean logistic loss of the rows of each step of stochastic gradient descent, in the order of the file.
"""
import sys

import numpy as np

rows = [line.split() for line in open(sys.argv[1], encoding="utf-8")]
V = np.loadtxt(sys.argv[2], ndmin=2)
size, rate = int(sys.argv[3]), float(sys.argv[4])
X = np.zeros((len(rows), len(V)))
for at, row in enumerate(rows):
    for item in row[1:]:
        index, value = item.split(":")
        X[at, int(index) - 1] += float(value)
y = np.array([float(row[0]) for row in rows])
b, w = 0.0, np.zeros(len(V))
for begin in range(0, len(rows), size):
    x, labels = X[begin : begin + size], y[begin : begin + size]
    sums = x @ V
    z = b + x @ w + ((sums**2).sum(1) - (x**2 @ V**2).sum(1)) / 2
    print(repr(float(np.mean(np.logaddexp(0, z) - labels * z))))
    slope = (1 / (1 + np.exp(-z)) - labels) / len(z)
    gradient = x.T @ (slope[:, None] * sums) - ((x**2).T @ slope)[:, None] * V
    b, w, V = b - rate * slope.sum(), w - rate * (x.T @ slope), V - rate * gradient
