"""Computes the answers of docs/row_by_hand.py, and compares them with what `dtrain predict` said.

A folder has model.safetensors, rows.txt (a table with a header, or lines) and predictions.jsonl. Prints for each folder
the rows and the largest difference.
"""
import csv
import json
import sys

import vowpalwabbit

sys.dont_write_bytecode = True
sys.path.insert(0, "docs")
import row_by_hand


def arguments_of(folder, about):
    """For each row what answer() takes."""
    lines = open(folder + "/rows.txt", encoding="utf-8", newline="").read().splitlines()
    if about["data.train.format"] == "vw":
        bits = about["data.hash_bits"]
        vw = vowpalwabbit.Workspace(f"--quiet --noconstant -b {bits}")
        for line in lines:
            yield line, [(index & (1 << bits) - 1, value, 0) for index, value in vw.parse(line).iter_features()]
    elif about["data.train.format"] != "csv":
        yield from ((line,) for line in lines)
    else:
        table = list(csv.reader(lines, skipinitialspace=True))
        named = "label_column" not in about
        yield from ((dict(zip(table[0], row)) if named else row,) for row in table[named:])


def check(folder):
    path = folder + "/model.safetensors"
    about, _ = row_by_hand.load(path)
    said = [json.loads(line) for line in open(folder + "/predictions.jsonl", encoding="utf-8")]
    answers = [row_by_hand.answer(path, *given) for given in arguments_of(folder, about)]
    assert len(answers) == len(said) > 0, (len(answers), len(said))
    difference = 0
    for ours, theirs in zip(answers, said):
        if isinstance(ours, float):
            difference = max(difference, abs(ours - theirs["prediction"]) / max(1, abs(ours)))
            continue
        assert list(ours) == list(theirs["probabilities"]), (ours, theirs)
        difference = max([difference] + [abs(p - theirs["probabilities"][name]) for name, p in ours.items()])
    return len(said), difference


for folder in sys.argv[1:]:
    print(json.dumps(check(folder)))
