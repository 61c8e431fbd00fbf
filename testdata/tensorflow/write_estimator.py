"""Writes the checkpoints in estimator/ with TensorFlow 2.12, the oldest that PyPI installs for Python 3.11 and one of the
last that have tf.estimator: python write_estimator.py DIRECTORY. The values are what training gives. Those named keras2 are
of Keras 2 and its optimizers with a list of variables, which TensorFlow had from 2.11 to 2.15.
"""
import inspect
import os
import shutil
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

COLUMN = tf.feature_column
ROWS = {"age": [0.1, 0.5, 0.9, 0.4], "size": [1.0, 2.0, 0.5, 1.5], "color": ["red", "blue", "green", "red"]}
LABELS = [0, 1, 1, 0]


def rows():
    return tf.data.Dataset.from_tensor_slices(({name: np.array(values) for name, values in ROWS.items()},
                                               np.array(LABELS))).repeat().batch(4)


def estimators(directory):
    numbers = [COLUMN.numeric_column("age"), COLUMN.numeric_column("size")]
    color = COLUMN.categorical_column_with_vocabulary_list("color", ["red", "green", "blue"])
    wide, deep = [*numbers, color], [*numbers, COLUMN.embedding_column(color, 2)]
    config = tf.estimator.RunConfig(model_dir=directory, tf_random_seed=1)
    yield "linear", tf.estimator.LinearClassifier(wide, config=config)
    yield "dnn", tf.estimator.DNNClassifier([3, 2], numbers, config=config)
    yield "both", tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[color], dnn_feature_columns=[deep[2]], dnn_hidden_units=[3], config=config)
    yield "both_v1", tf.compat.v1.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=[color], linear_optimizer=tf.compat.v1.train.FtrlOptimizer(0.1),
        dnn_feature_columns=[deep[2]], dnn_optimizer=tf.compat.v1.train.AdagradOptimizer(0.1), dnn_hidden_units=[3],
        config=config)
    v1, train = tf.compat.v1.estimator, tf.compat.v1.train
    yield "linear_v1", v1.LinearRegressor(wide, optimizer=train.AdamOptimizer(0.1), config=config)
    yield "dnn_v1", v1.DNNClassifier([3, 2], numbers, optimizer=train.MomentumOptimizer(0.1, 0.9), config=config)
    yield "parts_v1", v1.LinearClassifier([color], config=config,
                                          partitioner=tf.compat.v1.fixed_size_partitioner(2))


def keras(name, optimizer):
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,), name="dense")])
    model.compile(optimizer, "mse")
    model.fit(np.eye(3), np.ones((3, 2)), batch_size=3, epochs=2, verbose=0)
    out = os.path.join(sys.argv[1], "keras2_" + name)
    if name == "ftrl":
        model.save_weights(out)
        os.remove(os.path.join(sys.argv[1], "checkpoint"))
    else:
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(out)


def main():
    with tempfile.TemporaryDirectory() as directory:
        count = len(list(estimators(directory)))
    for number in range(count):
        with tempfile.TemporaryDirectory() as directory:
            name, estimator = list(estimators(directory))[number]
            estimator.train(rows, steps=2)
            out = os.path.join(sys.argv[1], name)
            for end in (".index", ".data-00000-of-00001"):
                shutil.copy(f"{directory}/model.ckpt-2{end}", out + end)
    keras("adam", tf.keras.optimizers.Adam(amsgrad=True))
    keras("adagrad", tf.keras.optimizers.Adagrad())
    keras("rmsprop", tf.keras.optimizers.RMSprop(momentum=0.9))
    keras("sgd", tf.keras.optimizers.SGD(momentum=0.9))
    keras("ftrl", tf.keras.optimizers.Ftrl())


inspect.getargspec = inspect.getfullargspec  # which Python 3.11 has no more
main()
