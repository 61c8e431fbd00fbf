#!/usr/bin/env bash
# OpenVINO 2026.4.1 (PyPI, CPU plugin): an ONNX graph that subtracts two constants one after the other, x - 1e6 - 0.34, is
# computed as x - (1e6 + 0.34) with the sum rounded to float32, also with INFERENCE_PRECISION_HINT f32. A shift that is
# split in two to keep its precision loses it. Run: findings/openvino_joins_constants.sh; it installs into a temp folder.
#
# Seen: for x = 1000001 the graph gives 0.66 by onnx's reference evaluator and by onnxruntime 1.31.1, and 0.6875 by
# OpenVINO: 1e6 + 0.34 is 1000000.3125 in float32. Fails if one of this is no longer so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet openvino==2026.4.1 onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cat >"$folder/compare.py" <<'PYTHON'
import sys

import numpy
import onnx
import onnxruntime
import openvino
from onnx import TensorProto, helper, reference

value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
constant = lambda name, number: helper.make_tensor(name, TensorProto.FLOAT, [1], [number])
nodes = [helper.make_node("Sub", ["x", "large"], ["t"]), helper.make_node("Sub", ["t", "small"], ["y"])]
graph = helper.make_graph(nodes, "shift", [value("x")], [value("y")], [constant("large", 1e6), constant("small", 0.34)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, sys.argv[1])
x = numpy.array([1000001], numpy.float32)
by_reference = reference.ReferenceEvaluator(model).run(None, {"x": x})[0][0]
by_onnxruntime = onnxruntime.InferenceSession(sys.argv[1]).run(None, {"x": x})[0][0]
compiled = openvino.Core().compile_model(sys.argv[1], "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
by_openvino = compiled([x])[compiled.output(0)][0]
print("openvino", openvino.__version__, by_reference, by_onnxruntime, by_openvino)
assert abs(by_reference - 0.66) < 1e-6 and abs(by_onnxruntime - 0.66) < 1e-6
assert by_openvino == numpy.float32(0.6875)
PYTHON
HOME="$folder" ORT_DISABLE_TELEMETRY=1 "$folder/python/bin/python" "$folder/compare.py" "$folder/shift.onnx"
echo "as described"
