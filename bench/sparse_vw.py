"""One pass of logistic regression over sparse rows: dtrain beside Vowpal Wabbit, at equal progressive loss.

    python bench/sparse_vw.py [--rounds 3] [--rows 1048576] [--shuffle] [--dtrain bazel-bin/cmd/dtrain]

Needs vowpalwabbit 9.11.9 for the other side, which is left out where it is missing. Both read what `dtrain synth vw`
writes, 39 features of 10,000,000 by Zipf's law, some with a value, and hash it to 24 bits: the text, or the cache of
each side that is there already. Updates are adaptive or plain sgd, with the best of some rates on 2^20 rows
(RATES). dtrain is `local --in-process`, 1 ps and 1 worker as threads, async, train.reduce: sum. It keeps the order of
the file as Vowpal Wabbit does, unless --shuffle is given. With data.cache: none it parses
a file once, behind a scan for the ends of lines; a pipe (`exec:cat FILE`) is read once.

  training   rows/s from the first step to the last; of Vowpal Wabbit from the making of its Workspace to its end
  whole      rows/s of the process from its start to its end; of Vowpal Wabbit with the start of Python
  processor  user and system seconds of the whole process; in brackets of Vowpal Wabbit's Workspace alone
  ratios     medians of the rounds' own

Exit 1 if progressive losses differ by more than 0.003 where the number of rows is that of RATES.
"""
import argparse
import importlib.util
import os
import statistics
import sys
import time

import race

RATES = {"vw adaptive": 0.25, "vw sgd": 0.006, "dtrain adaptive": 0.04, "dtrain sgd": 0.006}
RATES_ROWS, LOSS_WITHIN, BAR = 1 << 20, 0.003, 2
STEPS = ((32, 1), (32, 2), (128, 1), (128, 2))  # batch, train.in_flight


def vowpal_wabbit(arguments):
    """This process becomes Vowpal Wabbit's command line, and says what its Workspace took."""
    import vowpalwabbit
    begin, used = time.perf_counter(), time.process_time()
    workspace = vowpalwabbit.Workspace(arg_list=arguments)
    loss, weight = workspace.get_sum_loss(), workspace.get_weighted_examples()
    workspace.finish()
    print(time.perf_counter() - begin, time.process_time() - used, loss / weight)


class Pass:
    def __init__(self, run, rows, train_s, processor, loss):
        self.training, self.whole = rows / train_s, rows / run.wall_s
        self.processor_s, self.threads, self.processor, self.loss = run.processor_s, run.threads, processor, loss


def main():
    if sys.argv[1:2] == ["--vw"]:
        return vowpal_wabbit(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=RATES_ROWS)
    parser.add_argument("--shuffle", action="store_true", help="dtrain shuffles")
    parser.add_argument("--dtrain", default=race.DTRAIN)
    options = parser.parse_args()
    race.print_machine()
    work = race.work_directory()
    race.Run([options.dtrain, "synth", "vw", "--rows", options.rows, "--width", 10_000_000, "--out", "rows.vw"], work)

    def vw(source, kind):
        flags = ["--quiet", "-d", "rows.vw", "-b", 24, "--loss_function", "logistic", "-l", RATES[f"vw {kind}"]]
        flags += ["--cache_file", "rows.cache"] if source == "cache" else []
        flags += ["--sgd", "--power_t", 0] if kind == "sgd" else []
        run = race.Run([sys.executable, os.path.abspath(__file__), "--vw", *flags], work)
        train_s, processor_s, loss = map(float, run.stdout.split())
        return Pass(run, options.rows, train_s, f" ({processor_s:.2f})", loss)

    def dtrain(source, kind, batch, in_flight):
        data = {"train": {"format": "vw", "path": "exec:cat rows.vw" if source == "pipe" else "rows.vw"},
                "hash_bits": 24, "shuffle": options.shuffle, "cache": "file" if source == "cache" else "none"}
        if source == "cache":
            data["cache_dir"] = "cache"
        run = race.dtrain_local(options.dtrain, work, {
            "model": {"kind": "logistic"}, "data": data, "hooks": {"log_every_steps": 0},
            "train": {"mode": "async", "reduce": "sum", "epochs": 1, "batch_size": batch, "in_flight": in_flight,
                      "optimizer": {"kind": "sgd" if kind == "sgd" else "adagrad",
                                    "learning_rate": RATES[f"dtrain {kind}"]}}}, "--in-process")
        return Pass(run, options.rows, run.result["train_s"], "", run.result["progressive_loss"])

    sides, there = {}, importlib.util.find_spec("vowpalwabbit") is not None
    if there:
        vw("cache", "sgd")
    else:
        print("vowpalwabbit: not installed")
    dtrain("cache", "sgd", 128, 2)  # both caches are made now
    for source in ("text", "cache"):
        for kind in ("adaptive", "sgd"):
            if there:
                sides[source, kind, "vw"] = lambda s=source, k=kind: vw(s, k)
            for batch, opened in STEPS:
                sides[source, kind, f"dtrain, batch {batch}, in_flight {opened}"] = (
                    lambda s=source, k=kind, b=batch, o=opened: dtrain(s, k, b, o))
            if source == "text":
                sides[source, kind, "dtrain, batch 128, in_flight 2, pipe"] = lambda k=kind: dtrain("pipe", k, 128, 2)
    passes = race.by_turns(sides, options.rounds)
    table, equal = [], True
    for (source, kind, name), ours in passes.items():
        values = {figure: [getattr(p, figure) for p in ours] for figure in ("training", "whole", "processor_s", "loss")}
        row = [source, kind, name, round(statistics.median(values["training"])),
               round(statistics.median(values["whole"])), max(p.threads for p in ours),
               f"{statistics.median(values['processor_s']):.2f}{ours[0].processor}", f"{ours[0].loss:.4f}"]
        theirs = passes.get((source, kind, "vw"))
        if name != "vw" and theirs:
            row += ["%.2f (%.2f to %.2f)" % race.ratios(values["training"], [p.training for p in theirs]),
                    "%.2f" % race.ratios(values["whole"], [p.whole for p in theirs])[0], str(BAR)]
            equal &= abs(ours[0].loss - theirs[0].loss) <= LOSS_WITHIN
        table.append(row + [""] * (11 - len(row)))
    race.print_table(["source", "update", "side", "rows/s, training", "rows/s, whole", "threads", "processor s",
                      "progressive loss", "ratio, training", "ratio, whole", "to reach"], table)
    equal |= options.rows != RATES_ROWS  # the rates are not for these rows
    if not equal:
        print(f"progressive losses differ by more than {LOSS_WITHIN}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
