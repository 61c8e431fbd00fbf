#!/usr/bin/env bash
# TensorFlow 2.12.0 with tensorflow-estimator 2.12.0 (PyPI, Python 3.11): a canned estimator with a partitioner writes the
# optimizer's slots of each part under a name of its own, WEIGHTS/part_0/Ftrl. Such a tensor has the shape of the whole
# variable, but only the slice of its part is there, so no reader of TensorFlow gives it: of a checkpoint that is whole and
# that training goes on from, tf.train.load_checkpoint lists four tensors that it cannot read. The weights themselves, and
# slots of a variable that get_variable() has cut and minimize() was given whole, are readable.
# Run: findings/estimator_slots_of_parts.sh; it installs into a temp folder.
#
# Seen: "Does not have sufficient slices for partitioned tensor" for part_0 and part_1 of Ftrl and Ftrl_1. Fails if one of
# this is no longer so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet tensorflow-cpu==2.12.0
cat >"$folder/read.py" <<'PYTHON'
import sys

import tensorflow as tf

v1 = tf.compat.v1
color = tf.feature_column.categorical_column_with_vocabulary_list("color", ["red", "green", "blue"])


def rows():
    return tf.data.Dataset.from_tensor_slices(({"color": ["red", "blue"]}, [0, 1])).repeat().batch(2)


model = v1.estimator.LinearClassifier([color], model_dir=sys.argv[1] + "/canned",
                                      optimizer=v1.train.FtrlOptimizer(0.1),
                                      partitioner=v1.fixed_size_partitioner(2))
model.train(rows, steps=2)
model.train(rows, steps=1)  # goes on from its checkpoint
with v1.Graph().as_default(), v1.Session() as session:
    weights = v1.get_variable("weights", [3, 1], partitioner=v1.fixed_size_partitioner(2))
    train = v1.train.FtrlOptimizer(0.1).minimize(tf.reduce_sum(tf.convert_to_tensor(weights)))
    session.run(v1.global_variables_initializer())
    session.run(train)
    v1.train.Saver().save(session, sys.argv[1] + "/plain")


def unreadable(path):
    reader = tf.train.load_checkpoint(path)
    names = []
    for name in sorted(reader.get_variable_to_shape_map()):
        try:
            reader.get_tensor(name)
        except ValueError as error:
            assert "sufficient slices" in str(error), error
            names.append(name)
    return names


canned, plain = unreadable(sys.argv[1] + "/canned"), unreadable(sys.argv[1] + "/plain")
print(tf.__version__, canned, plain)
assert canned == [f"linear/linear_model/color/weights/part_{part}/{slot}" for part in (0, 1) for slot in ("Ftrl", "Ftrl_1")]
assert plain == []
PYTHON
TF_CPP_MIN_LOG_LEVEL=3 "$folder/python/bin/python" - "$folder" <<'PYTHON'
import inspect
import sys

inspect.getargspec = inspect.getfullargspec  # the estimator calls it, and Python 3.11 has it no more
exec(compile(open(sys.argv[1] + "/read.py").read(), "read.py", "exec"))
PYTHON
echo "as described"
