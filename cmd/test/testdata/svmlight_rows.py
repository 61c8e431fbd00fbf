"""The rows that scikit-learn itself finds in files of libsvm's format.

usage: svmlight_rows.py FILE...
           prints for each file "file FEATURES ROWS", and for each row "label index:value ...", numbers as hexadecimal
           floats of float32; a file whose name has "zero" in it counts its features from 0
"""
import sys

import numpy as np
from sklearn.datasets import load_svmlight_file

for path in sys.argv[1:]:
    rows, labels = load_svmlight_file(path, dtype=np.float32, zero_based="zero" in path)
    features = rows.shape[1]
    rows.eliminate_zeros()
    print("file", features, rows.shape[0])
    for i, label in enumerate(labels):
        of_row = range(rows.indptr[i], rows.indptr[i + 1])
        found = " ".join(f"{rows.indices[j]}:{float(rows.data[j]).hex()}" for j in of_row)
        print(float(np.float32(label)).hex(), found)
