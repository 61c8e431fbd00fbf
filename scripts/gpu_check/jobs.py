"""The tutorial's jobs, shortened, on the GPU and on the processor by the same program, and weights after 1,000
synchronous steps beside each other."""
import array
import glob
import json
import math
import os
import shutil
import subprocess
import tempfile

from bundle import last_words

GPU = ["device.kind=cuda", "device.soft_placement=false"]
CPU = ["device.kind=cpu"]
SHARD_HEADER = 64  # bytes; docs/checkpoint.md
CLOSE = 1e-4


class Failed(Exception):
    pass


def flags(settings):
    return [word for setting in settings for word in ("--set", setting)]


def images(bundle, short):
    """Returns flags for MNIST, or for as many drawn digits if it is missing; with `short`, for a few drawn digits."""
    data, settings = "" if short else bundle.data(), ["train.batch_size=10"] if short else []
    for name, files, rows in [("train", "train", 600 if short else 60000), ("test", "t10k", 100 if short else 10000)]:
        for key, kind in [("images", "images-idx3"), ("labels", "labels-idx1")]:
            path = "%s/mnist/%s-%s-ubyte.gz" % (data, files, kind) if data else "null"
            settings.append("data.%s.%s=%s" % (name, key, path))
        if not data:
            settings += ["data.validation=%d" % (100 if short else 5000)] if name == "train" else []
            settings.append("data.%s={format: synthetic, name: digits, rows: %d}" % (name, rows))
    return settings


def train(bundle, results, name, config, settings, in_process=True):
    """Returns the result of a run; raises Failed."""
    result = results.path(name + ".result.json")
    if os.path.exists(result):
        os.remove(result)
    command = ["cmd/dtrain", "local", "--run", "none", "--config", "configs/%s.yaml" % config, "--result", result]
    command += (["--in-process"] if in_process else []) + flags(settings)
    try:
        done = bundle.run(command, results.seconds_left(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        raise Failed("not done in time")
    with open(results.path(name + ".log"), "w") as file:
        file.write(done.stdout)
    if done.returncode != 0:
        raise Failed("dtrain ended with %d: %s" % (done.returncode, last_words(done.stdout)))
    with open(result) as file:
        return json.load(file)


def on_gpu(result):
    return "cuda" in json.dumps(result["device"])


def compare_linear(results, gpu, cpu):
    for key, tensor, truth in [("w", "weights/W1", 2), ("b", "biases/b1", 10)]:
        on_device, here = gpu["weights"][tensor][0], cpu["weights"][tensor][0]
        good = results.smoke or (abs(on_device - truth) < 0.05 and abs(on_device - here) < 0.02)
        results.check("linear_regression: %s" % key, good,
                      "%.4f on the GPU, %.4f on the processor, %g in truth" % (on_device, here, truth))


def compare_accuracy(results, name, gpu, cpu, near):
    on_device, here = gpu["test_accuracy"], cpu["test_accuracy"]
    results.check("%s: accuracy" % name, results.smoke or abs(on_device - here) < near,
                  "%.4f on the GPU, %.4f on the processor" % (on_device, here))
    loss, loss_here = gpu["test_loss"], cpu["test_loss"]
    results.check("%s: loss" % name, results.smoke or abs(loss - loss_here) < 0.05 * loss_here,
                  "%.4f on the GPU, %.4f on the processor" % (loss, loss_here))


def job(bundle, results, name, config, settings, compare, in_process=True):
    try:
        gpu = train(bundle, results, name + "_gpu", config, settings + GPU, in_process)
        cpu = train(bundle, results, name + "_cpu", config, settings + CPU, in_process)
        if not on_gpu(gpu):
            raise Failed("it computed on %s" % gpu["device"])
        compare(results, gpu, cpu)
        results.tell("        %.0f steps/s on the GPU, %.0f on the processor" % (gpu["steps_per_s"],
                                                                              cpu["steps_per_s"]))
        results.table("job_" + name, {"gpu": gpu["steps_per_s"], "cpu": cpu["steps_per_s"]})
    except Failed as problem:
        results.add(name, "failed", str(problem))


def weights_of(folder):
    """Returns the floats of the newest checkpoint. With one ps and sgd these are the weights, with zeros between
    tensors that change no norm; two runs of one model have them at the same places."""
    shards = sorted(glob.glob(os.path.join(folder, "step-*", "shard-0-of-1")))
    if not shards:
        raise Failed("there is no checkpoint in %s" % folder)
    with open(shards[-1], "rb") as file:
        file.seek(SHARD_HEADER)
        values = array.array("f", file.read())
    return values


def distance(a, b):
    """||a - b|| / ||b||"""
    if len(a) != len(b):
        raise Failed("%d weights beside %d" % (len(a), len(b)))
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b))


def sync_weights(bundle, results, folder, name, settings, in_process=True):
    directory = os.path.join(folder, name)
    result = train(bundle, results, name, "mnist_softmax", settings + ["checkpoint={dir: %s}" % directory],
                   in_process)
    if "cpu" not in name and not on_gpu(result):
        raise Failed("it computed on %s" % result["device"])
    return weights_of(directory)


def compare_weights(bundle, results, folder, start):
    """Compares the weights, from random initial ones or from 0; against small weights errors show better."""
    steps = 20 if results.smoke else 1000
    shared = images(bundle, results.smoke) + ["train.mode=sync", "train.epochs=null", "train.steps=%d" % steps,
                               "eval.at_end=false"]
    shared += ["model.init={kind: zeros}"] if start == "zeros" else []
    run = lambda name, settings, in_process=True: sync_weights(
        bundle, results, folder, "sync_%s_%s" % (start, name), shared + settings, in_process)
    try:
        here = run("cpu", CPU)
        there = run("gpu_in_process", GPU)
        for name, found in [("parameters on the GPU", there), ("parameters that travel",
                                                              run("gpu_processes", GPU, in_process=False))]:
            far = distance(found, here)
            results.check("softmax, %d sync steps from %s, %s: weights" % (steps, start, name), far < CLOSE,
                          "%.2e from the processor's, below %g" % (far, CLOSE))
        again = run("gpu_again", GPU)
        results.check("softmax, %d sync steps from %s: the same bits again" % (steps, start), again == there)
        kept = run("gpu_cached", GPU + ["data.cache=device"])
        results.check("softmax, %d sync steps from %s: the same bits with data.cache" % (steps, start),
                      kept == there)
    except Failed as problem:
        results.add("softmax, sync from %s" % start, "failed", str(problem))


def check(bundle, results):
    short = results.smoke
    results.tell("data: %s" % (not short and bundle.data() or "drawn digits"))
    pictures = images(bundle, short)
    folder = tempfile.mkdtemp(prefix="dtrain-gpu-check-")
    try:
        job(bundle, results, "linear", "linear_regression",
            ["train.steps=%d" % (40 if short else 30000), "train.optimizer.learning_rate=0.001",
             "checkpoint.dir=null"], compare_linear)
        softmax = pictures + (["train.epochs=null", "train.steps=20"] if short else ["train.epochs=5"])
        mlp = pictures + (["train.epochs=null", "train.steps=20"] if short else ["train.epochs=4"])
        near = lambda name, limit: lambda results, gpu, cpu: compare_accuracy(results, name, gpu, cpu, limit)
        job(bundle, results, "softmax", "mnist_softmax", softmax, near("mnist_softmax", 0.01))
        job(bundle, results, "softmax_processes", "mnist_softmax", softmax,
            near("mnist_softmax as processes", 0.01), in_process=False)
        job(bundle, results, "mlp", "mnist_mlp", mlp, near("mnist_mlp", 0.01))
        for start in ["drawn", "zeros"]:
            compare_weights(bundle, results, folder, start)
    finally:
        shutil.rmtree(folder)
