"""Writes the checkpoints of this folder, with tensorflow-cpu 2.21: python write.py DIRECTORY.

trainer/tf/tf_checkpoint_test.cc knows the values. Those of trained/ are what training gives: trainer/tf/tf_import_test.cc
compares them with what becomes of them.
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.sharded_variable import ShardedVariable

v1 = tf.compat.v1


def partitioned(name, values, parts, axis=0):
    def piece(shape, dtype=None, partition_info=None):
        at = partition_info.var_offset if partition_info else [0] * values.ndim
        return tf.constant(values[tuple(slice(i, i + int(n)) for i, n in zip(at, shape))])

    return v1.get_variable(name, shape=values.shape, dtype=tf.as_dtype(values.dtype), initializer=piece,
                           partitioner=v1.fixed_size_partitioner(parts, axis=axis))


def variable(name, values):
    return v1.get_variable(name, initializer=values)


def ramp(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def save(path, build, version=2, sharded=False, step=None):
    with v1.Graph().as_default():
        train = build()
        with v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
            session.run(v1.global_variables_initializer())
            if train is not None:
                session.run(train)
            v1.train.Saver(sharded=sharded, write_version=version).save(
                session, path, global_step=step, write_meta_graph=False, write_state=step is not None)


def slices():
    partitioned("w", ramp(5, 3), 2)
    partitioned("b", ramp(7, 2, dtype=np.float64), 3)
    partitioned("c", ramp(2, 300, dtype=np.float16), 3, axis=1)


def many():
    for number in range(300):
        variable(f"v{number:03}", np.float32(number))


def types():
    variable("bf", tf.cast(ramp(4), tf.bfloat16))
    variable("n", np.int64(-3))
    variable("i", np.array([-2, 5], np.int32))
    variable("flag", np.array([True, False]))
    variable("u8", np.array([0, 255], np.uint8))
    variable("c64", np.array([1 + 2j], np.complex64))
    variable("odd", np.array([np.nan, -0.0, np.inf], np.float32))
    variable("none", np.zeros((0, 3), np.float32))
    variable("scalar", np.float32(2.5))
    variable("text", np.array("hello", dtype=object))
    variable("texts", np.array(["", "a\0b", "x" * 300], dtype=object))


def sharded():
    with v1.device(lambda op: "/cpu:%d" % ("part_1" in op.name)):
        embedding = partitioned("emb", ramp(7, 4), 3)
        step = v1.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.convert_to_tensor(embedding))
        return v1.train.AdagradOptimizer(0.5).minimize(loss, global_step=step)


def old():
    partitioned("w", ramp(5, 3), 2)
    variable("d", ramp(7, 2, dtype=np.float64))
    variable("h", ramp(6, dtype=np.float16))
    variable("n", np.int64(-3))
    variable("i", np.array([-2, 5], np.int32))
    variable("flag", np.array([True, False]))


def layers(optimizer, widths, frozen=()):
    """An mlp of these widths, dense, dense_1 and so on, and a step on one batch."""
    def build():
        outputs = tf.constant(ramp(3, widths[0]) / 10)
        for number, (before, after) in enumerate(zip(widths, widths[1:])):
            name = "dense" + f"_{number}" * (number > 0)
            kernel = variable(name + "/kernel", ramp(before, after) / 10 - np.float32(number / 5))
            bias = v1.get_variable(name + "/bias", initializer=ramp(after) / 10, trainable=name not in frozen)
            outputs = tf.nn.tanh(tf.matmul(outputs, kernel) + bias)
        return optimizer.minimize(tf.reduce_sum((outputs - 1) ** 2), global_step=v1.train.get_or_create_global_step())

    return build


def objects(path, optimizer="optimizer"):
    """The names of TF2's Checkpoint with an optimizer of Keras 2."""
    def name(*parts):
        return "/".join(("model", *parts, ".ATTRIBUTES/VARIABLE_VALUE"))

    tensors = {optimizer + "/iter/.ATTRIBUTES/VARIABLE_VALUE": np.int64(7),
               optimizer + "/beta_2/.ATTRIBUTES/VARIABLE_VALUE": np.float32(0.999)}
    for number, leaf in enumerate(("kernel", "bias")):
        shape = (4, 2) if leaf == "kernel" else (2,)
        tensors[name("dense", leaf)] = ramp(*shape) + number
        for at, slot in enumerate(("m", "v")):
            tensors[name("dense", leaf, ".OPTIMIZER_SLOT", optimizer, slot)] = ramp(*shape) + 10 * at + number
    with v1.Graph().as_default(), v1.Session() as session:
        session.run(tf.raw_ops.SaveV2(prefix=path, tensor_names=list(tensors), shape_and_slices=[""] * len(tensors),
                                      tensors=[tf.constant(values) for values in tensors.values()]))


def names(path):
    """Names that Python's variables cannot have, and one of them in slices."""
    any_bytes = b"a\xff\x00 \xc3\xa9\n/part"
    with v1.Graph().as_default(), v1.Session() as session:
        session.run(tf.raw_ops.SaveV2(
            prefix=path, tensor_names=[b"one blank", any_bytes, any_bytes],
            shape_and_slices=["", "3 2 0,2:0,2", "3 2 2,1:0,2"],
            tensors=[tf.constant([1.5]), tf.constant(ramp(3, 2)[:2]), tf.constant(ramp(3, 2)[2:])]))


def grid(path):
    """A matrix that is cut both ways."""
    cuts = ("0,2:0,5", "2,2:0,1", "2,2:1,4", "0,4:5,1")
    values = ramp(4, 6)
    parts = [values[0:2, 0:5], values[2:4, 0:1], values[2:4, 1:5], values[0:4, 5:6]]
    with v1.Graph().as_default(), v1.Session() as session:
        session.run(tf.raw_ops.SaveV2(prefix=path, tensor_names=["w"] * 4, shape_and_slices=["4 6 " + cut for cut in cuts],
                                      tensors=[tf.constant(part) for part in parts]))


def keras(path, optimizer, **objects):
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile(optimizer, "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    tf.train.Checkpoint(model=model, **{name: optimizer for name in objects}).write(path)


def wide_deep():
    """A table of 4 rows and layers behind it, each half with an optimizer of its own, as DNNLinearCombinedClassifier has."""
    wide = [partitioned("linear/weights", ramp(4, 1) / 10, 2), variable("linear/bias", ramp(1))]
    deep = [partitioned("dnn/embedding", ramp(4, 2) / 10, 2), variable("dnn/hidden/kernel", ramp(2, 3) / 10),
            variable("dnn/hidden/bias", ramp(3) / 10), variable("dnn/logits/kernel", ramp(3, 1) / 10),
            variable("dnn/logits/bias", ramp(1) / 10)]
    rows = tf.constant([1, 2, 2])
    hidden = tf.nn.tanh(tf.matmul(v1.nn.embedding_lookup(deep[0], rows, "div"), deep[1]) + deep[2])
    outputs = v1.nn.embedding_lookup(wide[0], rows, "div") + wide[1] + tf.matmul(hidden, deep[3]) + deep[4]
    loss = tf.reduce_sum((outputs - 1) ** 2)
    steps = [optimizer.minimize(loss, var_list=v1.trainable_variables(scope)) for optimizer, scope in (
        (v1.train.FtrlOptimizer(0.1), "linear"), (v1.train.AdagradOptimizer(0.1), "dnn"))]
    with tf.control_dependencies(steps):
        return v1.assign_add(v1.train.get_or_create_global_step(), 1)


def columns(directory):
    """Wide & deep as Estimator builds it of the columns color and shape, whose vocabularies lie beside it, and the number
    age; after a step of Ftrl and of Adagrad. rows.csv has what it answers to each row, the logit."""
    vocabularies = {"color": ["red", "green", "blue"], "shape": ["round", "square"]}
    rows = [(color, shape, age) for age, color in enumerate(("blue", "red", "green")) for shape in ("square", "round")]
    os.makedirs(directory, exist_ok=True)
    for name, texts in vocabularies.items():
        with open(f"{directory}/{name}.txt", "w") as file:
            file.write("\n".join(texts) + "\n")
    at = {name: tf.constant([texts.index(row[i]) for row in rows])
          for i, (name, texts) in enumerate(vocabularies.items())}
    ages = tf.constant([[np.float32(row[2])] for row in rows])
    wide = variable("linear/linear_model/bias_weights", ramp(1) + np.float32(0.5))
    inputs = [ages]
    for number, (name, texts) in enumerate(vocabularies.items()):
        wide = wide + tf.gather(variable(f"linear/linear_model/{name}/weights", ramp(len(texts), 1) / 8 + number),
                                at[name])
        inputs.append(v1.nn.embedding_lookup(partitioned(
            f"dnn/input_from_feature_columns/input_layer/{name}_embedding/embedding_weights",
            ramp(len(texts), 4) / 9 - np.float32(number), 2), at[name], partition_strategy="div"))
    outputs = tf.concat(inputs, axis=1)
    for name, width in (("hiddenlayer_0", 5), ("hiddenlayer_1", 3), ("logits", 1)):
        kernel = variable(f"dnn/{name}/kernel", ramp(int(outputs.shape[1]), width) / 50 - np.float32(0.2))
        outputs = tf.matmul(outputs, kernel) + variable(f"dnn/{name}/bias", ramp(width) / 10)
        outputs = outputs if name == "logits" else tf.nn.relu(outputs)
    outputs += wide
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=outputs, labels=tf.constant([[0.0], [1]] * 3)))
    step = v1.train.get_or_create_global_step()
    linear, deep = (v1.trainable_variables(scope) for scope in ("linear", "dnn"))
    train = tf.group(v1.train.FtrlOptimizer(0.1).minimize(loss, var_list=linear),
                     v1.train.AdagradOptimizer(0.1).minimize(loss, var_list=deep, global_step=step))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(train)
        v1.train.Saver().save(session, f"{directory}/model.ckpt", global_step=step, write_meta_graph=False)
        answers = session.run(outputs)
    with open(f"{directory}/rows.csv", "w") as file:
        file.write("color,shape,age,y,logit\n")
        for i, (row, answer) in enumerate(zip(rows, answers)):
            file.write(f"{row[0]},{row[1]},{row[2]},{i % 2},{answer[0]:.9g}\n")


def main():
    out = sys.argv[1] + "/"
    tf.train.Checkpoint(w=tf.Variable([1.0, 2.0])).save(out + "c")
    os.remove(out + "checkpoint")
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
    tf.train.Checkpoint(model=model).write(out + "keras")
    # What ParameterServerStrategy makes of a variable on two servers, and a policy of one that is cut unevenly.
    table = ShardedVariable([tf.Variable(ramp(7, 4)[:4]), tf.Variable(ramp(7, 4)[4:])], name="table")
    tf.train.Checkpoint(table=table).write(out + "server_shards")
    policy = tf.train.experimental.MaxShardSizePolicy(1600)
    tf.train.Checkpoint(w=tf.Variable(ramp(100, 10))).write(
        out + "max_shard_size", options=tf.train.CheckpointOptions(experimental_sharding_callback=policy))
    os.makedirs(out + "trained", exist_ok=True)
    keras(out + "trained/keras_ftrl", tf.keras.optimizers.Ftrl(), opt=True)
    keras(out + "trained/keras_momentum", tf.keras.optimizers.SGD(momentum=0.9))
    v1.disable_eager_execution()
    save(out + "many", many)
    save(out + "slices", slices)
    save(out + "types", types)
    os.makedirs(out + "run", exist_ok=True)
    save(out + "run/model.ckpt", sharded, sharded=True, step=1)
    save(out + "old", old, version=1)
    save(out + "old_parts", sharded, version=1, sharded=True)
    names(out + "names")
    grid(out + "grid")
    train = v1.train
    for name, build in {"adam": layers(train.AdamOptimizer(0.1), (3, 3, 3, 2)),
                        "sgd": layers(train.GradientDescentOptimizer(0.1), (4, 2)),
                        "momentum": layers(train.MomentumOptimizer(0.1, 0.9), (4, 2)),
                        "frozen": layers(train.MomentumOptimizer(0.1, 0.9), (4, 2), frozen=("dense",)),
                        "adagrad": layers(train.AdagradOptimizer(0.1), (4, 2)),
                        "rmsprop": layers(train.RMSPropOptimizer(0.1), (4, 2)),
                        "centered": layers(train.RMSPropOptimizer(0.1, centered=True), (4, 2)),
                        "ftrl": layers(train.FtrlOptimizer(0.1), (4, 2))}.items():
        save(out + "trained/" + name, build)
    save(out + "trained/wide_deep", wide_deep)
    objects(out + "trained/objects")
    objects(out + "trained/objects_opt", "opt")
    with v1.Graph().as_default():
        columns(out + "columns")


main()
