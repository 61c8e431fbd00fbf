#!/usr/bin/env python3
"""Records what PyTorch's and TensorFlow's optimizers do to rows of a table, for trainer/shard/recorded_rows_test.cc:

    record_rows.py torch > rows_torch.txt             needs PyTorch
    record_rows.py tensorflow > rows_tensorflow.txt   needs TensorFlow

A table of ROWS rows of WIDTH values, all 0 at the start, gets the gradients of BATCHES, in double precision. A file has
a line for each update, with its gradient: the number of a row and its values, again and again. Then each case is one
line with the settings of train.optimizer in YAML, and one line for each update, with all weights after it.
"""
import sys

from record import torch_optimizer, torch_schedule, yaml

ROWS, WIDTH = 6, 2
BIAS = ROWS - 1
# Row 1 comes several times in an update, row 2 in the first and in the last but one, row 3 never, row 4 from the
# seventh on; the fifth update has no rows. Values are such that every sum of them is exact.
BATCHES = [
    [(0, 1.0, -0.5), (1, 0.25, 0.75), (2, -1.5, 0.5), (1, 0.5, -0.25), (5, 0.25, 0.5)],
    [(1, -0.625, 0.5), (0, 0.5, -1.0), (5, -0.25, -0.5)],
    [(5, 0.5, 0.5), (0, 0.75, -0.25), (1, 0.5, 0.5), (1, 0.75, 0.25), (1, -0.25, 0.125)],
    [(0, -0.25, -0.75), (5, -0.5, 0.25)],
    [],
    [(1, 1.25, -0.375), (5, 0.75, -0.125)],
    [(4, 1.0, 0.25), (0, 0.5, 0.5), (4, -0.375, 1.5), (5, 0.625, 1.0)],
    [(0, 1.5, -0.625), (1, -0.5, -0.5), (5, 1.0, -0.375)],
    [(4, 0.5, -0.75), (5, 0.5, 0.25)],
    [(1, 0.375, 1.0), (0, -1.0, 0.5), (1, 0.375, 1.0), (5, -0.5, -0.25)],
    [(2, 0.5, 1.25), (0, 0.25, -0.25), (5, 0.125, 0.125)],
    [(4, 0.25, 0.5), (0, 0.75, -1.0), (1, -0.125, 0.25), (4, 0.25, -0.125), (4, 0.5, 0.5), (5, 0.25, -0.5)],
]

STEP = {"kind": "step", "decay_steps": 3, "decay_rate": 0.5}
WARM_STEP = dict(STEP, warmup_steps=4)
# Those whose gradients may be sparse tensors.
TORCH_SPARSE_CASES = [
    {"kind": "adam"},
    {"kind": "adam", "learning_rate": 0.1},
    {"kind": "adam", "learning_rate": 0.1, "beta1": 0.8, "beta2": 0.95, "epsilon": 0.0625},
    {"kind": "adam", "learning_rate": 0.1, "schedule": WARM_STEP},
    {"kind": "adagrad", "learning_rate": 0.3, "initial_accumulator": 0.5, "epsilon": 0.125},
    {"kind": "sgd", "learning_rate": 0.1, "schedule": STEP},
]
# Those of dense parameters, which are made of the rows of an update.
TORCH_DENSE_CASES = [
    {"kind": "adam", "learning_rate": 0.1, "epsilon": 0.0625, "l2": 0.25, "decay_biases": False},
    {"kind": "adamw", "learning_rate": 0.1, "weight_decay": 0.5},
    {"kind": "adamw", "learning_rate": 0.1, "weight_decay": 0.5, "decay_biases": False, "schedule": WARM_STEP},
    {"kind": "momentum", "learning_rate": 0.05, "momentum": 0.8, "nesterov": True, "l2": 0.1},
    {"kind": "rmsprop", "learning_rate": 0.05, "rho": 0.75, "epsilon": 0.03125, "l2": 0.1},
]
NO_EPSILON = 1e-30  # the least that train.optimizer.epsilon may be
TENSORFLOW_CASES = [
    {"kind": "sgd", "learning_rate": 0.1},
    {"kind": "adagrad", "learning_rate": 0.3, "epsilon": 0.125},
    {"kind": "adagrad", "learning_rate": 0.3, "epsilon": NO_EPSILON},
    {"kind": "adagrad", "learning_rate": 0.3, "epsilon": 0.125, "schedule": WARM_STEP},
    {"kind": "ftrl", "learning_rate": 0.3},
    {"kind": "ftrl", "learning_rate": 0.3, "initial_accumulator": 0.5, "beta": 1.0},
    {"kind": "ftrl", "learning_rate": 0.5, "l1": 0.4, "l2": 0.2},
    {"kind": "momentum", "learning_rate": 0.05},
    {"kind": "momentum", "learning_rate": 0.05, "nesterov": True},
    {"kind": "momentum", "learning_rate": 0.05, "schedule": WARM_STEP},
    {"kind": "rmsprop", "learning_rate": 0.05, "rho": 0.75, "epsilon": NO_EPSILON},
    {"kind": "adam", "learning_rate": 0.1},
    {"kind": "adam", "learning_rate": 0.1, "beta1": 0.8, "beta2": 0.95, "epsilon": 0.0625, "schedule": STEP},
]


def say_batches():
    for batch in BATCHES:
        print("gradient", " ".join(str(value) for row in batch for value in row))


def say(case, weights):
    print(yaml(case))
    for table in weights:
        print(" ".join("%.12g" % value for row in table for value in row))


def epsilon_hat(case, update):
    """PyTorch's SparseAdam and TensorFlow add epsilon to a root of v that is not corrected: the "epsilon hat" of Adam's
    paper, which at update t is sqrt(1 - beta2^t) times the epsilon of its algorithm."""
    return case.get("epsilon", 1e-8) * (1 - case.get("beta2", 0.999) ** update) ** 0.5


def torch_sparse(torch, case):
    parameter = torch.nn.Parameter(torch.zeros(ROWS, WIDTH, dtype=torch.float64))
    if case["kind"] == "adam":
        betas = (case.get("beta1", 0.9), case.get("beta2", 0.999))
        optimizer = torch.optim.SparseAdam([parameter], lr=case.get("learning_rate", 0.001), betas=betas)
    else:
        optimizer = torch_optimizer(torch, case, parameter)
    schedule = torch_schedule(torch, case, optimizer)
    weights = []
    for update, batch in enumerate(BATCHES, 1):
        values = torch.tensor([row[1:] for row in batch], dtype=torch.float64).reshape(-1, WIDTH)
        parameter.grad = torch.sparse_coo_tensor([[row[0] for row in batch]], values, (ROWS, WIDTH))
        if case["kind"] == "adam":
            optimizer.param_groups[0]["eps"] = epsilon_hat(case, update)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        weights.append(parameter.detach().tolist())
    return weights


def torch_of_rows(torch, case, parameter, decay):
    """The optimizer of some rows, which l2 and weight_decay act on or not."""
    if case["kind"] == "adamw":
        weight_decay = case["weight_decay"] if decay else 0.0
        return torch.optim.AdamW([parameter], lr=case["learning_rate"], weight_decay=weight_decay)
    return torch_optimizer(torch, case if decay else {k: v for k, v in case.items() if k != "l2"}, parameter)


def torch_dense(torch, case):
    """Each update by an optimizer whose parameter is the rows with a gradient, and whose state is theirs, except its
    number of updates, which is the table's."""
    table = torch.zeros(ROWS, WIDTH, dtype=torch.float64)
    state = {}
    clock = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=case["learning_rate"])
    schedule = torch_schedule(torch, case, clock)
    weights = []
    for update, batch in enumerate(BATCHES, 1):
        touched = sorted({row[0] for row in batch})
        for rows in [[row for row in touched if row != BIAS], [row for row in touched if row == BIAS]]:
            if not rows:
                continue
            parameter = torch.nn.Parameter(table[rows].clone())
            decay = rows != [BIAS] or case.get("decay_biases", True)
            optimizer = torch_of_rows(torch, case, parameter, decay)
            optimizer.param_groups[0]["lr"] = clock.param_groups[0]["lr"]
            optimizer.state[parameter].update({name: values[rows].clone() for name, values in state.items()})
            if state and case["kind"] != "momentum":
                optimizer.state[parameter]["step"] = torch.tensor(float(update - 1))
            parameter.grad = torch.tensor(
                [[sum(item[1 + i] for item in batch if item[0] == row) for i in range(WIDTH)] for row in rows],
                dtype=torch.float64)
            optimizer.step()
            table[rows] = parameter.detach()
            for name, values in optimizer.state[parameter].items():
                if name != "step":
                    state.setdefault(name, torch.zeros_like(table))[rows] = values
        clock.step()
        if schedule is not None:
            schedule.step()
        weights.append(table.tolist())
    return weights


def record_torch():
    import torch

    say_batches()
    for case in TORCH_SPARSE_CASES:
        say(case, torch_sparse(torch, case))
    for case in TORCH_DENSE_CASES:
        say(case, torch_dense(torch, case))


def tensorflow_rate(tf, case, update):
    schedule = case.get("schedule")
    if schedule is None:
        return tf.constant(case["learning_rate"], dtype=tf.float64)
    warm = schedule.get("warmup_steps", 0)
    if update <= warm:
        return tf.constant(case["learning_rate"] * update / warm, dtype=tf.float64)
    rate = tf.compat.v1.train.exponential_decay(
        tf.constant(case["learning_rate"], dtype=tf.float64), update - 1 - warm, schedule["decay_steps"],
        schedule["decay_rate"], staircase=True)
    return rate() if callable(rate) else rate


def tensorflow_step(tf, case, table):
    """The operations that tf.compat.v1.train's optimizers run on a ps for a gradient of rows."""
    raw = tf.raw_ops
    double = lambda value: tf.constant(value, dtype=tf.float64)
    slot = lambda value=0.0: tf.Variable(tf.fill(table.shape, double(value)))
    kind = case["kind"]
    if kind == "sgd":
        return lambda rate, rows, gradient, _: raw.ResourceScatterSub(
            resource=table.handle, indices=rows, updates=rate * gradient)
    if kind == "adagrad":
        accumulator = slot(case.get("initial_accumulator", 0.1))
        if case["epsilon"] == NO_EPSILON:
            return lambda rate, rows, gradient, _: raw.ResourceSparseApplyAdagrad(
                var=table.handle, accum=accumulator.handle, lr=rate, grad=gradient, indices=rows)
        return lambda rate, rows, gradient, _: raw.ResourceSparseApplyAdagradV2(
            var=table.handle, accum=accumulator.handle, lr=rate, epsilon=double(case["epsilon"]), grad=gradient,
            indices=rows)
    if kind == "momentum":
        velocity = slot()
        return lambda rate, rows, gradient, _: raw.ResourceSparseApplyMomentum(
            var=table.handle, accum=velocity.handle, lr=rate, grad=gradient, indices=rows,
            momentum=double(case.get("momentum", 0.9)), use_nesterov=case.get("nesterov", False))
    if kind == "rmsprop":
        mean_square, momentum = slot(), slot()
        return lambda rate, rows, gradient, _: raw.ResourceSparseApplyRMSProp(
            var=table.handle, ms=mean_square.handle, mom=momentum.handle, lr=rate, rho=double(case["rho"]),
            momentum=double(0.0), epsilon=double(case["epsilon"]), grad=gradient, indices=rows)
    if kind == "ftrl":
        z, n = slot(), slot(case.get("initial_accumulator", 0.1))
        # TensorFlow's l2 counts twice, and its beta is a part of l2 (Keras's Ftrl).
        l2 = case.get("l2", 0.0) / 2 + case.get("beta", 0.0) / (2 * case["learning_rate"])
        return lambda rate, rows, gradient, _: raw.ResourceSparseApplyFtrl(
            var=table.handle, accum=n.handle, linear=z.handle, grad=gradient, indices=rows, lr=rate,
            l1=double(case.get("l1", 0.0)), l2=double(l2), lr_power=double(-0.5))
    return tensorflow_lazy_adam(tf, case, table)


def tensorflow_lazy_adam(tf, case, table):
    """TensorFlow has no sparse Adam that leaves other rows alone. Here its dense one updates the rows of the gradient,
    as LazyAdam of TensorFlow Addons did."""
    m, v = tf.Variable(tf.zeros_like(table)), tf.Variable(tf.zeros_like(table))
    beta1, beta2 = (tf.constant(case.get(name, default), dtype=tf.float64)
                    for name, default in [("beta1", 0.9), ("beta2", 0.999)])

    def step(rate, rows, gradient, update):
        parts = [tf.Variable(tf.gather(whole, rows)) for whole in (table, m, v)]
        tf.raw_ops.ResourceApplyAdam(
            var=parts[0].handle, m=parts[1].handle, v=parts[2].handle, beta1_power=beta1**update,
            beta2_power=beta2**update, lr=rate, beta1=beta1, beta2=beta2,
            epsilon=tf.constant(epsilon_hat(case, update), dtype=tf.float64), grad=gradient)
        for whole, part in zip((table, m, v), parts):
            whole.scatter_update(tf.IndexedSlices(part, rows))

    return step


def record_tensorflow():
    import tensorflow as tf

    say_batches()
    for case in TENSORFLOW_CASES:
        table = tf.Variable(tf.zeros((ROWS, WIDTH), dtype=tf.float64))
        step = tensorflow_step(tf, case, table)
        weights = []
        for update, batch in enumerate(BATCHES, 1):
            indices = tf.constant([row[0] for row in batch], dtype=tf.int64)
            values = tf.reshape(tf.constant([row[1:] for row in batch], dtype=tf.float64), (-1, WIDTH))
            # As its optimizers do with a row that comes several times.
            rows, places = tf.unique(indices)
            gradient = tf.math.unsorted_segment_sum(values, places, tf.size(rows))
            step(tensorflow_rate(tf, case, update), rows, gradient, update)
            weights.append(table.numpy().tolist())
        say(case, weights)


if __name__ == "__main__":
    {"torch": record_torch, "tensorflow": record_tensorflow}[sys.argv[1]]()
