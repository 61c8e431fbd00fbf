#!/usr/bin/env python3
"""The check of dtrain on a machine with a GPU; scripts/gpu_check.sh says how to call it."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import traceback

import bench
import jobs
import ops
import sanitizer
from bundle import Bundle, Unusable
from results import Results

# In this order, so that errors show before slowness. Seconds: the limit of each part.
PARTS = {"ops": (ops.check, 100), "jobs": (jobs.check, 150), "bench": (bench.check, 150),
         "sanitizer": (sanitizer.check, 170)}


def arguments():
    parser = argparse.ArgumentParser(description="Checks dtrain on the GPU of this machine.")
    parser.add_argument("bundle", nargs="?", default="gpu-bundle", help="what scripts/gpu_bundle.sh made")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="a part; may be repeated")
    parser.add_argument("--out", default="run/gpu-check", help="a directory for the results")
    parser.add_argument("--minutes", type=float, default=9.5, help="how long all may take")
    parser.add_argument("--smoke", action="store_true", help="everything as short as can be: no figures")
    return parser.parse_args()


def driver():
    """Returns what nvidia-smi reports of the driver, if it is installed."""
    try:
        command = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem",
                   "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return "nvidia-smi is not there"


def describe(bundle):
    """Returns facts about the machine; raises Unusable if dtrain finds no GPU."""
    found = json.loads(bundle.output(["cmd/dtrain", "devices", "--json"], 60))
    if not found["gpus"]:
        raise Unusable("no GPU: %s" % found["why_no_gpu"])
    for gpu in found["gpus"]:
        if gpu["why_not"]:
            raise Unusable("GPU %d cannot be used: %s" % (gpu["id"], gpu["why_not"]))
    if found["why_no_cublas"]:
        raise Unusable("no cuBLAS: %s; looked in %s" % (found["why_no_cublas"], bundle.library_path()))
    return {"gpu": found["gpus"][0]["name"], "versions": found["versions"], "driver": driver(),
            "processor": found["cpu"]["name"], "bundle": bundle.about(), "library_path": bundle.library_path()}


def main():
    options = arguments()
    os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dtrain-gpu-check-") as scratch:
        unpacked, logs = os.path.join(scratch, "bundle"), os.path.join(scratch, "logs")
        os.mkdir(logs)
        results = Results(options.out, logs, options.minutes, options.smoke)
        try:
            bundle = Bundle(options.bundle, unpacked)
            results.about(describe(bundle))
        except Unusable as problem:
            print("gpu_check: %s" % problem, file=sys.stderr)
            return 1
        for name, (check, seconds) in PARTS.items():
            if options.only and name not in options.only:
                continue
            results.begin(name, seconds)
            try:
                check(bundle, results)
            except Exception:  # a mistake in one part leaves the others
                results.add(name, "failed", traceback.format_exc())
            results.write()
        return results.end()


if __name__ == "__main__":
    sys.exit(main())
