"""raw_logits.py FILE: scikit-learn's figures of the labels and logits that dtrain predict --raw has written.
A column "weight" says how much each row counts."""
import csv
import json
import sys

import numpy
from sklearn.metrics import log_loss, roc_auc_score

rows = list(csv.DictReader(open(sys.argv[1])))
labels = numpy.array([float(row["label"]) > 0 for row in rows], int)
logits = numpy.array([numpy.float32(row["logit"]) for row in rows]).astype(float)
probabilities = 1 / (1 + numpy.exp(-logits))
weights = numpy.array([float(row.get("weight", 1)) for row in rows])
print(json.dumps({"rows": len(rows), "auc": roc_auc_score(labels, logits, sample_weight=weights),
                  "log_loss": log_loss(labels, probabilities, sample_weight=weights)}))
