"""Gives the raw rows of a table to what `dtrain export` wrote, and compares it with what `dtrain predict` said.

A folder has model.onnx, rows.csv and predictions.jsonl. Prints one line of JSON for each folder.
"""
import csv
import json
import re
import sys

import numpy
import onnx
import onnx.reference
import onnxruntime
import openvino

# The example of the documentation: answers(session, path).
EXAMPLE = {"csv": csv, "json": json, "numpy": numpy}
exec(re.search("^def answers.*?(?=^```)", open("docs/models.md", encoding="utf-8").read(), re.M | re.S).group(), EXAMPLE)

MISSING = ("", "?", "na", "n/a", "nan", "null")


def inputs_of(session, path):
    """The columns of a file as the graph takes them: texts as they are, numbers as float32."""
    about = session.get_modelmeta().custom_metadata_map
    lines = list(csv.reader(open(path, newline=""), skipinitialspace=True))
    if session.get_inputs()[0].name == "features":
        places = [lines[0].index(name) for name in json.loads(about["features"])]
        return {"features": numpy.array([[line[at] for at in places] for line in lines[1:]]).astype("float32")}
    columns = json.loads(about["table_columns"])
    named = columns[0]["name"] in lines[0]
    inputs = {}
    for column, entry in zip(columns, session.get_inputs()):
        at = lines[0].index(column["name"]) if named else column["column"]
        texts = [line[at].strip() for line in lines[named:]]
        if "string" not in entry.type:
            texts = numpy.array(["nan" if t.lower() in MISSING else t for t in texts]).astype("float32")
        inputs[entry.name] = numpy.array(texts, dtype=object if "string" in entry.type else "float32").reshape(-1, 1)
    return inputs


def hold_others(path, result, inputs):
    """Holds the answers of the reference evaluator, and of OpenVINO where there are no texts, against onnxruntime's."""
    names = [name for name in result if name != "label"]
    answers = [onnx.reference.ReferenceEvaluator(path).run(names, inputs)]
    if all(values.dtype != object for values in inputs.values()):
        model = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        found = model(inputs)
        answers.append([found[name] for name in names])
    for values in answers:
        for name, value in zip(names, values):
            size = numpy.maximum(1, numpy.abs(result[name]))
            assert numpy.nanmax(numpy.abs(numpy.ravel(value) - numpy.ravel(result[name])) / numpy.ravel(size)) < 1e-6, name
            assert numpy.array_equal(numpy.isnan(numpy.ravel(value)), numpy.isnan(numpy.ravel(result[name]))), name


def check(folder):
    onnx.checker.check_model(onnx.load(folder + "/model.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(folder + "/model.onnx", providers=["CPUExecutionProvider"])
    rows, inputs = folder + "/rows.csv", [i.name for i in session.get_inputs()]
    result = EXAMPLE["answers"](session, rows) if "column 2" not in inputs else session.run(None, inputs_of(session, rows))
    if inputs != ["features"]:
        for values, others in zip(result, session.run(None, inputs_of(session, rows))):
            numpy.testing.assert_array_equal(values, others)
    result = dict(zip([o.name for o in session.get_outputs()], result))
    hold_others(folder + "/model.onnx", result, inputs_of(session, rows))
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
