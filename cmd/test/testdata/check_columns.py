"""Gives the raw rows of a table to what `dtrain export` wrote, and compares it with what `dtrain predict` said.

A folder has model.onnx, rows.csv and predictions.jsonl. Prints one line of JSON for each folder.
"""
import csv
import json
import re
import sys

import numpy
import onnx
import onnxruntime

# The example of the documentation: answers(session, path).
EXAMPLE = {"csv": csv, "json": json, "numpy": numpy}
exec(re.search("^def answers.*?(?=^```)", open("docs/models.md", encoding="utf-8").read(), re.M | re.S).group(), EXAMPLE)

MISSING = ("", "?", "na", "n/a", "nan", "null")


def inputs_of(session, path):
    """The columns of a file as the graph takes them: texts as they are, numbers as float32."""
    columns = json.loads(session.get_modelmeta().custom_metadata_map["table_columns"])
    lines = list(csv.reader(open(path, newline=""), skipinitialspace=True))
    named = columns[0]["name"] in lines[0]
    inputs = {}
    for column, entry in zip(columns, session.get_inputs()):
        at = lines[0].index(column["name"]) if named else column["column"]
        texts = [line[at].strip() for line in lines[named:]]
        if "string" not in entry.type:
            texts = numpy.array(["nan" if t.lower() in MISSING else t for t in texts]).astype("float32")
        inputs[entry.name] = numpy.array(texts, dtype=object if "string" in entry.type else "float32").reshape(-1, 1)
    return inputs


def check(folder):
    onnx.checker.check_model(onnx.load(folder + "/model.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(folder + "/model.onnx", providers=["CPUExecutionProvider"])
    rows, inputs = folder + "/rows.csv", [i.name for i in session.get_inputs()]
    result = EXAMPLE["answers"](session, rows) if "column 2" not in inputs else session.run(None, inputs_of(session, rows))
    if inputs != ["features"]:
        for values, others in zip(result, session.run(None, inputs_of(session, rows))):
            numpy.testing.assert_array_equal(values, others)
    result = dict(zip([o.name for o in session.get_outputs()], result))
    said = [json.loads(line) for line in open(folder + "/predictions.jsonl")]
    prediction = result["prediction"].ravel()
    report = {"rows": len(prediction), "refused": int(numpy.isnan(result.get("probabilities", prediction)).any(-1).sum()),
              "inputs": {i.name: i.type for i in session.get_inputs()}, "outputs": sorted(result)}
    if not said:
        return report | {"predictions": sorted(set(prediction.tolist())), "labels": sorted(set(result["label"].tolist()))}
    assert len(said) == len(prediction), (len(said), len(prediction))
    if "probabilities" not in result:
        values = numpy.array([row["prediction"] for row in said])
        difference = numpy.abs(prediction - values) / numpy.maximum(1, numpy.abs(values))
    else:
        assert [row["prediction"] for row in said] == result.get("label", result["prediction"]).tolist()
        values = numpy.array([list(row["probabilities"].values()) for row in said])
        difference = numpy.abs(result["probabilities"] - values)
        assert len(set(prediction)) > 1, "the test's model must tell rows apart"
    return report | {"difference": float(difference.max())}


for folder in sys.argv[1:]:
    print(json.dumps(check(folder)))
