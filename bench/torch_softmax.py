#!/usr/bin/env python3
"""PyTorch on softmax 784-10, batch 100, sgd 0.01, data in the GPU's memory as bytes: steps per second.

What dtrain's rows model_softmax and run_softmax_* do: a batch of shuffled rows, bytes as floats in [0, 1], the
gradient of the mean cross-entropy, the update; `read`: the loss of every step comes to this machine, as in
dtrain. Prints JSON. Exits with 3 and a line where it cannot be run: no PyTorch, no GPU.
"""
import argparse
import json
import statistics
import sys
import time

ROWS, PIXELS, CLASSES, BATCH, RATE = 55000, 784, 10, 100, 0.01
WARM_STEPS = 30

try:
    import torch
except ImportError as error:
    print("no PyTorch: %s" % error, file=sys.stderr)
    sys.exit(3)


class Job:
    def __init__(self):
        torch.manual_seed(1)
        self.images = torch.randint(0, 256, (ROWS, PIXELS), dtype=torch.uint8, device="cuda")
        self.labels = torch.randint(0, CLASSES, (ROWS,), device="cuda")
        self.weights = torch.randn(PIXELS, CLASSES, device="cuda", requires_grad=True)
        self.biases = torch.randn(CLASSES, device="cuda", requires_grad=True)
        self.order = torch.randperm(ROWS)
        self.rows = torch.zeros(BATCH, dtype=torch.int64, device="cuda")
        self.pinned = torch.zeros(BATCH, dtype=torch.int64).pin_memory()
        self.next = 0

    def take_batch(self):
        if self.next + BATCH > ROWS:
            self.next = 0
        self.pinned.copy_(self.order[self.next:self.next + BATCH])
        self.rows.copy_(self.pinned, non_blocking=True)
        self.next += BATCH

    def compute(self):
        x = self.images[self.rows].to(torch.float32) / 255
        logits = torch.addmm(self.biases, x, self.weights)
        loss = torch.nn.functional.cross_entropy(logits, self.labels[self.rows])
        slopes = torch.autograd.grad(loss, (self.weights, self.biases))
        with torch.no_grad():
            self.weights.sub_(slopes[0], alpha=RATE)
            self.biases.sub_(slopes[1], alpha=RATE)
        return loss


def steps_per_s(steps, rounds, step):
    for _ in range(WARM_STEPS):
        step()
    speeds = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        speeds.append(steps / (time.perf_counter() - begin))
    return statistics.median(speeds)


def captured(job):
    """The whole step but the batch's numbers as one graph, and the loss that it writes."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            job.compute()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = job.compute()
    return graph, loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU", file=sys.stderr)
        return 3
    job = Job()
    graph, loss = captured(job)

    def eager(read):
        job.take_batch()
        found = job.compute()
        return found.item() if read else None

    def replay(read):
        job.take_batch()
        graph.replay()
        return loss.item() if read else None

    measure = lambda step: steps_per_s(options.steps, options.rounds, step)
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(),
                      "steps_per_s": {"eager_read": measure(lambda: eager(True)),
                                      "eager": measure(lambda: eager(False)),
                                      "graph_read": measure(lambda: replay(True)),
                                      "graph": measure(lambda: replay(False))}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
