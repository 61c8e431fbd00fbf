"""Reads what `dtrain export` wrote into each folder named, and compares it with what `dtrain predict` said.

A folder has model.safetensors, model.npz and model.onnx, rows.csv (raw features without a header) and
predictions.jsonl. Prints one line of JSON for each.
"""
import json
import sys

import numpy
import onnx
import onnxruntime
import safetensors
import safetensors.numpy


def check(folder):
    tensors = safetensors.numpy.load_file(folder + "/model.safetensors")
    with safetensors.safe_open(folder + "/model.safetensors", "numpy") as file:
        metadata = file.metadata()
    arrays = numpy.load(folder + "/model.npz")
    assert sorted([*tensors, "metadata"]) == sorted(arrays.files), (sorted(tensors), arrays.files)
    assert json.loads(bytes(arrays["metadata"])) == metadata
    assert {p.key: p.value for p in onnx.load(folder + "/model.onnx").metadata_props} == metadata
    for name, values in tensors.items():
        assert values.dtype == arrays[name].dtype == numpy.float32
        assert values.shape == arrays[name].shape
        assert values.tobytes() == arrays[name].tobytes(), name
    onnx.checker.check_model(onnx.load(folder + "/model.onnx"), full_check=True)

    rows = numpy.loadtxt(folder + "/rows.csv", delimiter=",", dtype=numpy.float32, ndmin=2)
    session = onnxruntime.InferenceSession(folder + "/model.onnx", providers=["CPUExecutionProvider"])
    result = dict(zip([output.name for output in session.get_outputs()], session.run(None, {"features": rows})))
    said = [json.loads(line) for line in open(folder + "/predictions.jsonl")]
    assert len(said) == len(rows), (len(said), len(rows))
    if "score" in result:
        assert result["prediction"].tolist() == [row["prediction"] for row in said]
        values = numpy.array([row["score"] for row in said])
        difference = numpy.abs(result["score"][:, 0] - values) / numpy.maximum(1, numpy.abs(values))
        assert len(set(result["prediction"])) > 1, "the test's model must tell rows apart"
    elif "probabilities" not in result:
        values = numpy.array([row["prediction"] for row in said])
        difference = numpy.abs(result["prediction"][:, 0] - values) / numpy.maximum(1, numpy.abs(values))
    else:
        names = json.loads(metadata["classes"]) if "classes" in metadata else list(range(len(said[0]["probabilities"])))
        assert [names[k] for k in result["prediction"]] == [row["prediction"] for row in said]
        assert ("label" in result) == ("classes" in metadata), list(result)
        assert result.get("label", result["prediction"]).tolist() == [row["prediction"] for row in said]
        values = numpy.array([[row["probabilities"][str(name)] for name in names] for row in said])
        difference = numpy.abs(result["probabilities"] - values)
        assert len(set(result["prediction"])) > 1, "the test's model must tell rows apart"
    return {"rows": len(rows), "difference": float(difference.max()), "metadata": metadata,
            "shapes": {name: list(values.shape) for name, values in tensors.items()}}


for folder in sys.argv[1:]:
    print(json.dumps(check(folder)))
