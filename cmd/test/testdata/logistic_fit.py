"""Weights of a logistic regression with l2 beside those that scikit-learn's LogisticRegression (lbfgs) ends with.

usage: logistic_fit.py ROWS WEIGHTS L2
       ROWS: a file of libsvm's format; WEIGHTS: what dtrain export --dense has written. The objective is the sum of the
       losses of all rows plus L2 / 2 times the sum of the squares of the weights; the bias is left out of that.
       Prints the relative difference of the two objectives, the largest difference of a weight, and that of the bias.
"""
import sys

import numpy as np
from safetensors.numpy import load_file
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression

ours, l2 = load_file(sys.argv[2]), float(sys.argv[3])
w, b = ours["weights/W1"][:, 0].astype(float), float(ours["biases/b1"][0])
X, labels = load_svmlight_file(sys.argv[1], n_features=len(w))
y = (labels > 0).astype(float)
# At a tolerance of 1e-4, the default, it stops while weights are wrong by 0.1.
fit = LogisticRegression(C=1 / l2, solver="lbfgs", tol=1e-7, max_iter=10000).fit(X, y)


def objective(weights, bias):
    z = X @ weights + bias
    return np.sum(np.logaddexp(0, z) - y * z) + l2 / 2 * weights @ weights


best = objective(fit.coef_[0], fit.intercept_[0])
print(repr(float(objective(w, b) / best - 1)))
print(repr(float(np.max(np.abs(w - fit.coef_[0])))))
print(repr(float(abs(b - fit.intercept_[0]))))
