"""raw_logits.py FILE: scikit-learn's figures of the labels and logits that dtrain predict --raw has written."""
import csv
import json
import sys

import numpy
from sklearn.metrics import log_loss, roc_auc_score

rows = list(csv.DictReader(open(sys.argv[1])))
labels = numpy.array([float(row["label"]) > 0 for row in rows], int)
logits = numpy.array([numpy.float32(row["logit"]) for row in rows]).astype(float)
probabilities = 1 / (1 + numpy.exp(-logits))
print(json.dumps({"rows": len(rows), "auc": roc_auc_score(labels, logits), "log_loss": log_loss(labels, probabilities)}))
