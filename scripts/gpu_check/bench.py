"""Speeds beside their limits (bench/gpu_bench.cc), and PyTorch on the same small job."""
import json
import os
import re
import subprocess
import sys

from bundle import last_words

TORCH_SECONDS = 60


def judge(results, row):
    """One row; `to_reach` is a ratio or a speed."""
    ratio = row["ratio"]["median"] if row["ratio"] else None
    seen = "%.4g %s, limit %.4g, ratio %.2f; to reach %s" % (
        row["dtrain"]["median"], row["unit"], row["limit"]["median"], ratio, row["to_reach"])
    wanted = re.match(r"[0-9.]+", row["to_reach"])
    if results.smoke:
        return results.add(row["name"], "passed", "it runs")
    value = row["dtrain"]["median"] if "steps/s" in row["to_reach"] else ratio
    return results.check(row["name"], value >= float(wanted.group()), seen)


def speeds(bundle, results):
    report = results.path("gpu_bench.json")
    if os.path.exists(report):
        os.remove(report)
    command = ["bench/gpu_bench", "--bin", bundle.folder, "--json", report]
    command += ["--data", bundle.data()] if bundle.data() else []
    command += ["--smoke"] if results.smoke else []
    try:
        done = bundle.run(command, results.seconds_left(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as late:
        text = late.stdout if isinstance(late.stdout, str) else (late.stdout or b"").decode(errors="replace")
        return results.add("gpu_bench", "failed", "not done in time:\n" + text)
    results.tell(done.stdout.rstrip())
    if not os.path.exists(report):
        return results.add("gpu_bench", "failed", "ended with %d: %s" % (done.returncode, last_words(done.stdout)))
    with open(report) as file:
        figures = json.load(file)
    results.table("gpu_bench", figures)
    for row in figures["rows"]:
        judge(results, row)
    if done.returncode != 0:
        results.add("gpu_bench", "failed", "a case was left out; see above")


def torch(results):
    """Runs PyTorch in this Python, without the bundle's libraries. It is for comparison only."""
    command = [sys.executable, "bench/torch_softmax.py"] + (["--steps", "20"] if results.smoke else [])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TORCH_SECONDS)
    except subprocess.TimeoutExpired:
        return results.add("torch_softmax", "failed", "not done in %d s" % TORCH_SECONDS)
    if done.returncode == 3:
        return results.add("torch_softmax", "skipped", done.stderr.strip())
    if done.returncode != 0:
        return results.add("torch_softmax", "failed", last_words(done.stderr))
    figures = json.loads(done.stdout)
    results.table("torch_softmax", figures)
    results.add("torch_softmax", "passed", ", ".join("%s %.0f steps/s" % item
                                                     for item in figures["steps_per_s"].items()))


def check(bundle, results):
    torch(results)
    speeds(bundle, results)
