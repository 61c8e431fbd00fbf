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


def objects(path):
    """The names of TF2's Checkpoint with an optimizer of Keras 2."""
    def name(*parts):
        return "/".join(("model", *parts, ".ATTRIBUTES/VARIABLE_VALUE"))

    tensors = {"optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE": np.int64(7)}
    for number, leaf in enumerate(("kernel", "bias")):
        shape = (4, 2) if leaf == "kernel" else (2,)
        tensors[name("dense", leaf)] = ramp(*shape) + number
        for at, slot in enumerate(("m", "v")):
            tensors[name("dense", leaf, ".OPTIMIZER_SLOT/optimizer", slot)] = ramp(*shape) + 10 * at + number
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
    v1.disable_eager_execution()
    save(out + "many", many)
    save(out + "slices", slices)
    save(out + "types", types)
    os.makedirs(out + "run", exist_ok=True)
    save(out + "run/model.ckpt", sharded, sharded=True, step=1)
    save(out + "old", old, version=1)
    save(out + "old_parts", sharded, version=1, sharded=True)
    names(out + "names")
    os.makedirs(out + "trained", exist_ok=True)
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
    objects(out + "trained/objects")


main()
