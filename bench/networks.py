"""Steps/s over slow links, with and without net.compress, beside what the link can carry (docs/networks.md).

    python bench/networks.py [--rounds 3] [--seconds 3] [--link "1 Gbit/s"]... [--data DIRECTORY] [--layers]

Links are pairs of network devices between two network namespaces, one for the worker and one for the ps, each way limited by
a token bucket (tc tbf); that needs root and iproute2. Two jobs, each with 1 ps, 1 worker and in_flight 2: the perceptron of
configs/mnist_mlp.yaml (318 KB of weights), and a model of 64 MiB that computes next to nothing. The limit of a link is what a
plain TCP connection carries each way while the other way is full, too.

With --layers a perceptron of several blocks instead, one exchange open at a time: its gradients as they are sent, layer by
layer, beside gradients that are sent whole, since their norm has a limit (clip_norm), which none of them reaches.

With tensorflow-cpu 2.21 its parameter server runs the same two models on the same link, its better of 1 and 2 threads, with two
steps open at a time, each from a thread of its own. The rows of a batch lie in a variable of the worker.
"""
import argparse
import importlib.util
import os
import socket
import statistics
import subprocess
import sys
import threading
import time

import race
import scale

FORMS = ("none", "bf16", "int8", "topk")
FEATURES = 64 << 18  # of the large model
STREAM = """
import socket, sys, threading, time
def pump(s):
    try:
        while True: s.sendall(bytes(1 << 20))
    except OSError: pass
if sys.argv[1] == "serve":
    s = socket.create_server((sys.argv[2], int(sys.argv[3]))).accept()[0]
else:
    for _ in range(100):
        try: s = socket.create_connection((sys.argv[2], int(sys.argv[3]))); break
        except OSError: time.sleep(0.05)
threading.Thread(target=pump, args=(s,), daemon=True).start()
got, begun, warm = 0, time.monotonic(), float(sys.argv[4]) / 4
while (now := time.monotonic()) < begun + warm + float(sys.argv[4]):
    if now < begun + warm: got, first = 0, now
    got += len(s.recv(1 << 20))
print(got / (now - first))
"""


def jobs(work, data):
    if data:
        files = {part: {"format": "idx", "images": f"{data}/mnist/{name}-images-idx3-ubyte.gz",
                        "labels": f"{data}/mnist/{name}-labels-idx1-ubyte.gz"}
                 for part, name in (("train", "train"), ("test", "t10k"))}
    else:
        files = {"train": {"format": "synthetic", "name": "digits", "rows": 10000}}
    (work / "rows.svm").write_text("".join(f"{i % 2} {i * 7919 + 1}:1 {i * 104729 % FEATURES + 1}:1\n" for i in range(1000)))
    return {
        "mlp, 318 KB": {"model": {"kind": "mlp", "inputs": 784, "hidden": [100], "outputs": 10}, "data": files,
                        "train": {"batch_size": 100, "optimizer": {"kind": "sgd", "learning_rate": 0.001}}},
        "64 MiB": {"model": {"kind": "logistic", "inputs": FEATURES - 1, "table": "none"},
                   "data": {"train": {"format": "libsvm", "path": str(work / "rows.svm")}},
                   "train": {"batch_size": 1, "optimizer": {"kind": "sgd", "learning_rate": 0.001}}}}


def layers(program, work, link, hosts, seconds):
    """The sides of --layers: (batch, net.compress, whether whole) -> steps/s."""
    def run(batch, form, whole):
        train = {"batch_size": batch, "max_secs": seconds, "optimizer": {"kind": "sgd", "learning_rate": 0.001}}
        if whole:
            train["optimizer"]["clip_norm"] = 1e30
        job = {"model": {"kind": "mlp", "inputs": 784, "hidden": [1024] * 4, "outputs": 10}, "net": {"compress": form},
               "data": {"train": {"format": "synthetic", "name": "digits", "rows": 10000}}, "train": train}
        return scale.Cluster(program, work, job, 1, 1, link, hosts).rate

    cases = [(batch, form, whole) for batch in (100, 400) for form in ("none", "int8") for whole in (True, False)]
    return {(link, *case): lambda case=case: run(*case) for case in cases}


def print_layers(rates):
    rows = []
    for link, batch, form, whole in rates:
        if whole:
            by_layer = rates[link, batch, form, False]
            ratio, least, most = race.ratios(by_layer, rates[link, batch, form, True])
            rows.append([link, batch, form, f"{statistics.median(rates[link, batch, form, True]):.2f}",
                         f"{statistics.median(by_layer):.2f}", f"{ratio:.2f} ({least:.2f} to {most:.2f})"])
    race.print_table(["link", "rows", "net.compress", "whole, steps/s", "layer by layer", "ratio"], rows)


def limit_of(hosts, seconds):
    """Bytes/s of each way, by plain TCP."""
    port = race.free_ports(1)[0]
    tasks = []
    for side, what in (("ps", "serve"), ("worker", "connect")):
        command = [*race.inside(hosts[side][0]), sys.executable, "-c", STREAM, what, hosts["ps"][1], port, seconds]
        tasks.append(race.start(command, stdout=subprocess.PIPE, text=True))
    return statistics.mean(float(task.communicate(timeout=race.LIMIT_S)[0]) for task in tasks)


def step_bytes(program, work, job, form):
    """Bytes of a step there and back, as dtrain plan says them."""
    config = work / "plan.yaml"
    config.write_text(scale.json.dumps({**job, "net": {"compress": form}, "train": {**job["train"], "steps": 1}}))
    plan = subprocess.run([program, "plan", "--config", config, "--json", "--ps", "1", "--workers", "1"],
                          capture_output=True, text=True, check=True)
    ps = scale.json.loads(plan.stdout)["ps"][0]
    return ps["in_bytes_per_step"], ps["out_bytes_per_step"]


def serve(task, addresses, threads, job):
    """A TensorFlow task. The worker reads a number of seconds a line and answers each with its steps a second."""
    import tensorflow as tf
    v1 = tf.compat.v1
    server, config = race.tensorflow_server(task, addresses, threads)

    def weights(name, *shape):
        with tf.device("/job:ps/task:0"):
            return v1.get_variable(name, shape, initializer=v1.zeros_initializer(), use_resource=True)

    def rows(*shape):
        with tf.device("/job:worker/task:0"):
            return v1.get_variable("rows", shape, initializer=v1.zeros_initializer(), use_resource=True, trainable=False)

    if job == "64 MiB":
        model = [weights("weights", FEATURES)]
        with tf.device("/job:worker/task:0"):
            loss = tf.nn.softplus(tf.reduce_sum(model[0] * rows(FEATURES)))
    else:
        model = [weights("weights1", 784, 100), weights("bias1", 100), weights("weights2", 100, 10), weights("bias2", 10)]
        with tf.device("/job:worker/task:0"):
            hidden = tf.sigmoid(tf.matmul(rows(100, 784), model[0]) + model[1])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.zeros([100], tf.int32), logits=tf.matmul(hidden, model[2]) + model[3]))
    with tf.device("/job:worker/task:0"):
        optimizer = v1.train.GradientDescentOptimizer(0.001)
        step = optimizer.minimize(loss, var_list=model)
    session = v1.Session(server.target, config=config)
    session.run(v1.global_variables_initializer())
    step = session.make_callable(step)
    step()
    print("ready", flush=True)
    for line in sys.stdin:
        begin, done = time.perf_counter(), [0, 0]

        def train(thread):
            while time.perf_counter() < begin + float(line):
                step()
                done[thread] += 1

        other = threading.Thread(target=train, args=(1,))
        other.start()
        train(0)
        other.join()
        print(sum(done) / (time.perf_counter() - begin), flush=True)
    os._exit(0)


def main():
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--link", action="append", choices=sorted(scale.LINKS))
    parser.add_argument("--data", default="")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--dtrain", default=race.DTRAIN)
    options = parser.parse_args()
    program, data = os.path.abspath(options.dtrain), options.data and os.path.abspath(options.data)
    race.print_machine()
    work = race.work_directory()
    links = options.link or list(scale.LINKS)
    hosts = {link: scale.namespaces(link) for link in links}

    if options.layers:
        sides = {}
        for link in links:
            sides.update(layers(program, work, link, hosts, options.seconds))
        return print_layers(race.by_turns(sides, options.rounds))

    def run(link, job, form):
        limits = {"in_flight": 2, "max_secs": options.seconds}
        one = {**jobs_of[job], "train": {**jobs_of[job]["train"], **limits}, "net": {"compress": form}}
        return scale.Cluster(program, work, one, 1, 1, link, hosts).rate

    jobs_of = jobs(work, data)
    limits = {link: limit_of(hosts[link], options.seconds / 2) for link in links}
    sides = {(link, job, form): lambda case=(link, job, form): run(*case) for link in links for job in jobs_of for form in FORMS}
    if importlib.util.find_spec("tensorflow") is None:
        print("tensorflow: not installed")
    else:
        for link, job in [(link, job) for link in links for job in jobs_of]:
            place = work / f"tensorflow{len(sides)}"
            place.mkdir()
            clusters = [race.TensorFlow(__file__, place, threads, job, hosts=hosts[link]) for threads in (1, 2)]
            sides[link, job, "TensorFlow"] = (
                lambda clusters=clusters: max(cluster.rate(options.seconds / 2) for cluster in clusters))
    rates = race.by_turns(sides, options.rounds)
    rows, plain = [], {}
    for (link, job, form), measured in sorted(rates.items(), key=lambda side: side[0][:2]):
        rate = statistics.median(measured)
        plain.setdefault((link, job), rate)
        there, back = step_bytes(program, work, jobs_of[job], "none" if form == "TensorFlow" else form)
        rows.append([link, job, form, f"{there / 1e3:,.1f}", f"{back / 1e3:,.1f}", f"{rate:,.1f}",
                     f"{rate * max(there, back) / scale.LINKS[link]:.3f}", f"{rate * max(there, back) / limits[link]:.3f}",
                     f"{rate / plain[link, job]:.2f}"])
    race.print_table(["link", "model", "net.compress, or peer", "KB there", "KB back", "steps/s", "of the link", "of plain TCP",
                      "of none"], rows)
    for link, limit in limits.items():
        print(f"plain TCP over {link}: {limit / 1e6:.1f} MB/s each way, {limit / scale.LINKS[link]:.3f} of the link")


if __name__ == "__main__":
    main()
