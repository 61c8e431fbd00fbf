#!/usr/bin/env bash
# onnxruntime 1.31.1 (PyPI, Linux): loading a model writes telemetry into the home directory, unless
# ORT_DISABLE_TELEMETRY=1 is set. Run: findings/onnxruntime_telemetry.sh; it installs into a temp folder.
#
# Seen: ~/.cache/Microsoft/DeveloperTools/.onnxruntime/ with `deviceid`, an id of this user, and `onnxruntime.db`,
# events for an upload, with the path of the program, the distribution and the processor. Where the home directory
# cannot be written, a warning on standard error with each process: "Failed to persist telemetry device ID; using an
# in-memory identifier". Fails if one of this is no longer so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cat >"$folder/load.py" <<'PYTHON'
import onnx, onnxruntime
from onnx import TensorProto, helper
value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [value("x")], [value("y")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
onnxruntime.InferenceSession(model.SerializeToString())
print("onnxruntime", onnxruntime.__version__)
PYTHON
mkdir "$folder/home" "$folder/quiet"
HOME="$folder/home" "$folder/python/bin/python" "$folder/load.py"
(cd "$folder/home" && find . -type f)
HOME="$folder/quiet" ORT_DISABLE_TELEMETRY=1 "$folder/python/bin/python" "$folder/load.py"
test -f "$folder/home/.cache/Microsoft/DeveloperTools/.onnxruntime/deviceid"
test -f "$folder/home/.cache/Microsoft/DeveloperTools/.onnxruntime/onnxruntime.db"
test -z "$(find "$folder/quiet" -type f)"
HOME=/proc/none "$folder/python/bin/python" "$folder/load.py" 2>&1 | grep "Failed to persist telemetry device ID"
echo "as described"
