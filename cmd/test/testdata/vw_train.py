"""What Vowpal Wabbit learns from the lines of a file.

usage: vw_train.py FILE FEATURES FLAG...
       prints its progressive loss (the mean over the lines by their weights), then the weight of the constant, and
       those of the features 0 to FEATURES - 1
"""
import sys

import vowpalwabbit

CONSTANT = 11650396  # as Vowpal Wabbit numbers it

path, features, flags = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
vw = vowpalwabbit.Workspace("--quiet --holdout_off " + " ".join(flags))
for line in open(path, encoding="utf-8"):
    vw.learn(line.rstrip("\n"))
print(repr(vw.get_sum_loss() / vw.get_weighted_examples()))
mask = vw.num_weights() - 1
for feature in [CONSTANT, *range(features)]:
    print(repr(vw.get_weight(feature & mask)))
