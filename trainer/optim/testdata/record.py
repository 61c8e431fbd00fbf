#!/usr/bin/env python3
"""Records what PyTorch's and TensorFlow's optimizers do, for recorded_test.cc:

    record.py torch > torch.txt             needs PyTorch
    record.py tensorflow > tensorflow.txt   needs TensorFlow

Each case is minimised for STEPS updates in double precision: the sum of CURVATURE / 2 * (weight - TARGET)^2. A
case is one line with the settings of train.optimizer in YAML, then one line with the weights after each update.
"""
import sys

STEPS = 10
CURVATURE = [1.0, 0.5, 2.0, 0.1, 3.0]
TARGET = [0.25, 1.0, -1.0, 2.0, 0.5]
START = [1.0, -1.0, 0.5, 0.0, 2.0]

# Not beyond its end, where PyTorch's goes up again.
COSINE = {"kind": "cosine", "decay_steps": 10, "end_learning_rate": 0.02}
TORCH_CASES = [
    {"kind": "sgd", "learning_rate": 0.1},
    {"kind": "sgd", "learning_rate": 0.1, "l2": 0.05, "clip_value": 0.75},
    {"kind": "momentum", "learning_rate": 0.05},
    {"kind": "momentum", "learning_rate": 0.05, "momentum": 0.8, "nesterov": True, "l2": 0.1},
    {"kind": "adagrad", "learning_rate": 0.3},
    {"kind": "adagrad", "learning_rate": 0.3, "initial_accumulator": 0.5, "epsilon": 0.125, "clip_value": 0.5},
    {"kind": "rmsprop", "learning_rate": 0.05},
    {"kind": "rmsprop", "learning_rate": 0.05, "rho": 0.75, "epsilon": 0.03125, "l2": 0.1},
    {"kind": "adam"},
    {"kind": "adam", "learning_rate": 0.1, "beta1": 0.8, "beta2": 0.95, "epsilon": 0.0625},
    {"kind": "adam", "learning_rate": 0.1, "l2": 0.25, "clip_value": 1.5},
    {"kind": "sgd", "learning_rate": 0.2, "schedule": {"kind": "step", "decay_steps": 3, "decay_rate": 0.5}},
    {"kind": "sgd", "learning_rate": 0.2, "schedule": {"kind": "exponential", "decay_steps": 4, "decay_rate": 0.5}},
    {"kind": "sgd", "learning_rate": 0.2, "schedule": {"kind": "inverse_time", "decay_steps": 2, "decay_rate": 0.5}},
    {"kind": "adam", "learning_rate": 0.1, "schedule": COSINE},
    {"kind": "adam", "learning_rate": 0.1, "schedule": dict(COSINE, decay_steps=7, warmup_steps=3)},
]
# FTRL from zeros: TensorFlow's z starts at zero whatever the weights are.
TENSORFLOW_CASES = [
    {"kind": "ftrl", "learning_rate": 0.3},
    {"kind": "ftrl", "learning_rate": 0.3, "initial_accumulator": 0.5, "beta": 1.0},
    {"kind": "ftrl", "learning_rate": 0.5, "l1": 0.4, "l2": 0.2},
    {"kind": "momentum", "learning_rate": 0.05},
    {"kind": "momentum", "learning_rate": 0.05, "nesterov": True},
    {"kind": "momentum", "learning_rate": 0.05, "clip_norm": 2.5},
    {"kind": "momentum", "learning_rate": 0.05, "clip_norm": 2.5, "clip_value": 0.75},
]


def yaml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml(item)}" for key, item in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def say(case, start, weights):
    print(yaml(case))
    for values in [start] + weights:
        print(" ".join("%.17g" % value for value in values))


def torch_optimizer(torch, case, parameter):
    names = {"learning_rate": "lr", "l2": "weight_decay", "epsilon": "eps", "rho": "alpha",
             "initial_accumulator": "initial_accumulator_value", "momentum": "momentum", "nesterov": "nesterov"}
    given = {names[key]: value for key, value in case.items() if key in names}
    kind = case["kind"]
    if kind == "momentum":  # PyTorch has no default but none
        given.setdefault("momentum", 0.9)
    if kind == "adagrad":  # its default is TensorFlow's
        given.setdefault("initial_accumulator_value", 0.1)
        given.setdefault("eps", 1e-8)
    if kind == "rmsprop":
        given.setdefault("alpha", 0.9)
    if kind == "adam" and "beta1" in case:
        given["betas"] = (case["beta1"], case["beta2"])
    classes = {"sgd": "SGD", "momentum": "SGD", "adagrad": "Adagrad", "rmsprop": "RMSprop", "adam": "Adam"}
    return getattr(torch.optim, classes[kind])([parameter], **given)


def torch_schedule(torch, case, optimizer):
    schedule = case.get("schedule")
    if schedule is None:
        return None
    rates = torch.optim.lr_scheduler
    steps, rate = schedule["decay_steps"], schedule.get("decay_rate")
    made = {
        "step": lambda: rates.StepLR(optimizer, steps, rate),
        "exponential": lambda: rates.ExponentialLR(optimizer, rate ** (1 / steps)),
        "inverse_time": lambda: rates.LambdaLR(optimizer, lambda n: 1 / (1 + rate * n / steps)),
        "cosine": lambda: rates.CosineAnnealingLR(optimizer, steps, schedule["end_learning_rate"]),
    }[schedule["kind"]]()
    warm = schedule.get("warmup_steps")
    if warm is None:
        return made
    growing = rates.LinearLR(optimizer, 1 / warm, 1, warm - 1)
    return rates.SequentialLR(optimizer, [growing, made], [warm])


def record_torch():
    import torch

    curvature = torch.tensor(CURVATURE, dtype=torch.float64)
    target = torch.tensor(TARGET, dtype=torch.float64)
    for case in TORCH_CASES:
        parameter = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64))
        optimizer = torch_optimizer(torch, case, parameter)
        schedule = torch_schedule(torch, case, optimizer)
        weights = []
        for _ in range(STEPS):
            parameter.grad = curvature * (parameter.detach() - target)
            if "clip_value" in case:
                torch.nn.utils.clip_grad_value_([parameter], case["clip_value"])
            optimizer.step()
            if schedule is not None:
                schedule.step()
            weights.append(parameter.detach().tolist())
        say(case, START, weights)


def record_tensorflow():
    import tensorflow as tf

    curvature = tf.constant(CURVATURE, dtype=tf.float64)
    target = tf.constant(TARGET, dtype=tf.float64)
    for case in TENSORFLOW_CASES:
        start = [0.0] * len(START) if case["kind"] == "ftrl" else START
        variable = tf.Variable(start, dtype=tf.float64)
        apply = tensorflow_step(tf, case, variable)
        weights = []
        for _ in range(STEPS):
            apply(tensorflow_clip(tf, case, curvature * (variable - target)))
            weights.append(variable.numpy().tolist())
        say(case, start, weights)


def tensorflow_clip(tf, case, gradient):
    if "clip_norm" in case:
        (gradient,), _ = tf.clip_by_global_norm([gradient], case["clip_norm"])
    if "clip_value" in case:
        gradient = tf.clip_by_value(gradient, -case["clip_value"], case["clip_value"])
    return gradient


def tensorflow_step(tf, case, variable):
    """The operations that tf.compat.v1.train's optimizers run on a ps."""
    raw = tf.raw_ops
    double = lambda value: tf.constant(value, dtype=tf.float64)
    rate = double(case["learning_rate"])
    if case["kind"] == "momentum":
        velocity = tf.Variable(tf.zeros_like(variable))
        return lambda gradient: raw.ResourceApplyMomentum(
            var=variable.handle, accum=velocity.handle, lr=rate, grad=gradient,
            momentum=double(case.get("momentum", 0.9)), use_nesterov=case.get("nesterov", False))
    z = tf.Variable(tf.zeros_like(variable))
    n = tf.Variable(tf.fill(variable.shape, double(case.get("initial_accumulator", 0.1))))
    # TensorFlow's l2 counts twice, and its beta is a part of l2 (Keras's Ftrl).
    l2 = case.get("l2", 0.0) / 2 + case.get("beta", 0.0) / (2 * case["learning_rate"])
    return lambda gradient: raw.ResourceApplyFtrl(
        var=variable.handle, accum=n.handle, linear=z.handle, grad=gradient, lr=rate,
        l1=double(case.get("l1", 0.0)), l2=double(l2), lr_power=double(-0.5))


if __name__ == "__main__":
    {"torch": record_torch, "tensorflow": record_tensorflow}[sys.argv[1]]()
