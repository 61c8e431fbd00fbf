"""The features that Vowpal Wabbit itself finds in the lines of a file.

usage: vw_features.py features FILE BITS
           prints for each line "label weight tag index:value ...", each of the first three in brackets; values as
           hexadecimal floats; [none] for no label
       vw_features.py crosses FILE BITS PAIR...
           prints for each line "index:value ..." with the pairs of namespaces as -q makes them, values in six digits
"""
import os
import sys
import tempfile

import vowpalwabbit

NO_LABEL = 3.4028234663852886e38


def features(path, bits):
    mask = (1 << bits) - 1
    vw = vowpalwabbit.Workspace(f"--quiet --noconstant -b {bits}")
    for line in open(path, encoding="utf-8"):
        example = vw.parse(line.rstrip("\n"))
        label = example.get_simplelabel_label()
        found = " ".join(f"{index & mask}:{value.hex()}" for index, value in example.iter_features())
        print(f"[{'none' if label == NO_LABEL else format(label, 'g')}] [{example.get_simplelabel_weight():g}] "
              f"[{example.get_tag()}] {found}")
        vw.finish_example(example)


def crosses(path, bits, pairs):
    # Pairs are made while it predicts, and are seen in what --audit prints: a line with the prediction, then one with
    # name:index:value:weight of each feature.
    with tempfile.TemporaryFile(mode="w+") as printed:
        kept = os.dup(1)
        os.dup2(printed.fileno(), 1)
        flags = " ".join(f"--interactions {pair}" for pair in pairs)
        vowpalwabbit.Workspace(f"--quiet --audit --noconstant -t -b {bits} {flags} -d {path}").finish()
        os.dup2(kept, 1)
        printed.seek(0)
        for number, line in enumerate(printed):
            if number % 2 == 1:
                found = (item.rsplit(":", 3) for item in line.strip("\t\n").split("\t") if item)
                print(" ".join(f"{index}:{value}" for _, index, value, _ in found))


if __name__ == "__main__":
    if sys.argv[1] == "features":
        features(sys.argv[2], int(sys.argv[3]))
    else:
        crosses(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
