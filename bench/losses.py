"""Linear models with each model.loss beside scikit-learn, glum and LIBLINEAR on drawn tables.

    python bench/losses.py path/to/dtrain WORK_DIRECTORY

Needs scikit-learn, glum and their dependencies. Tables of claims are drawn: frequencies with exposure (poisson),
severities weighted by claims (gamma) and pure premiums with exposure (tweedie 1.5), counts with the logarithm of the
exposure as their offset (poisson), and others for huber, quantile and squared hinge. dtrain trains full batches in sync. Exit 1 if a bar is missed: coefficients within 1e-3 of glum's
and scikit-learn's, deviance within 1e-5 (relative), huber and quantile within 1e-3, the objective of squared hinge
within 1e-4 (relative) of LIBLINEAR's.
"""
import json
import pathlib
import subprocess
import sys

import numpy as np
from glum import GeneralizedLinearRegressor, TweedieDistribution
from sklearn.linear_model import HuberRegressor, QuantileRegressor, TweedieRegressor
from sklearn.metrics import mean_pinball_loss, mean_tweedie_deviance
from sklearn.svm import LinearSVC

FEATURES = 6
failed = []


def check(name, value, bar):
    print(f"  {name}: {value:.2e}{'' if value <= bar else f', above {bar:g}'}", flush=True)
    if not value <= bar:
        failed.append(name)


class Run:
    def __init__(self, program, work, name, model, x, y, weight=None, steps=4000, rate=0.05, l2=0.0, offset=None):
        folder = pathlib.Path(work) / name
        folder.mkdir(parents=True, exist_ok=True)
        more = {key: column for key, column in (("weight", weight), ("offset", offset)) if column is not None}
        columns = [x, y[:, None]] + [column[:, None] for column in more.values()]
        names = [f"x{i}" for i in range(x.shape[1])] + ["y", *more]
        np.savetxt(folder / "rows.csv", np.hstack(columns), delimiter=",", header=",".join(names), comments="",
                   fmt="%.9g")
        keys = "".join(f", {key}: {key}" for key in more)
        (folder / "job.yaml").write_text(
            f"model: {{{model}}}\n"
            f"data: {{train: {{format: csv, path: rows.csv, label: y}}, test: {{format: csv, path: rows.csv, label: y}}{keys}}}\n"
            f"train:\n  mode: sync\n  batch_size: {len(y)}\n  steps: {steps}\n"
            f"  optimizer: {{kind: adam, learning_rate: {rate}, l2: {l2:.9g}, decay_biases: true,\n"
            f"              schedule: {{kind: cosine, decay_steps: auto, end_learning_rate: 1e-6}}}}\n")
        self.folder, self.program = folder, program
        self.call("local", "--config", "job.yaml", "--workers", "1", "--in-process", "--run", "none", "--result",
                  "result.json", "--set", "checkpoint.dir=ckpt", "--set", "checkpoint.resume=never")
        self.result = json.loads((folder / "result.json").read_text())
        self.figures = json.loads(self.call("eval", "ckpt", "--json"))
        weights = self.result["weights"]
        self.coefficients = np.array(weights["weights/W1"] + weights["biases/b1"])

    def call(self, *arguments):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{self.folder}: dtrain {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout


def claims(rows):
    random = np.random.default_rng(53)
    x = random.normal(size=(rows, FEATURES)).round(3)
    exposure = random.uniform(0.2, 1, rows).round(3)
    rate = np.exp(x @ [0.3, -0.2, 0.1, 0, 0.2, -0.1] - 1)
    count = random.poisson(rate * exposure)
    size = np.exp(x @ [0.1, 0.2, 0, -0.3, 0, 0.1] + 1)
    amount = np.array([random.gamma(2 * c, s / 2) if c else 0.0 for c, s in zip(count, size)])
    return x, exposure, count, amount


def glm(program, work, name, power, model, x, y, weight):
    mean = np.average(y, weights=weight)
    run = Run(program, work, name, f"{model}, init: {{output_bias: {np.log(mean):.6g}}}", x, y, weight)
    theirs = TweedieRegressor(power=power, alpha=0, link="log", tol=1e-10, max_iter=10000)
    theirs.fit(x, y, sample_weight=weight)
    glum = GeneralizedLinearRegressor(family=TweedieDistribution(power), link="log", alpha=0, gradient_tol=1e-10)
    glum.fit(x, y, sample_weight=weight)
    print(f"{name}: {len(y)} rows, deviance {run.figures['deviance']:.7g}, D2 {run.figures['d2']:.5f}")
    for who, model in (("scikit-learn", theirs), ("glum", glum)):
        check(f"coefficients off {who}'s", np.abs(run.coefficients - np.append(model.coef_, model.intercept_)).max(), 1e-3)
        deviance = mean_tweedie_deviance(y, model.predict(x), sample_weight=weight, power=power)
        check(f"deviance off {who}'s, relative", abs(run.figures["deviance"] / deviance - 1), 1e-5)
    check("D2 off scikit-learn's", abs(run.figures["d2"] - theirs.score(x, y, sample_weight=weight)), 1e-5)


def main():
    program, work = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
    x, exposure, count, amount = claims(20000)
    glm(program, work, "poisson", 1, "kind: linear, loss: poisson", x, count / exposure, exposure)
    # The same model of counts in place of rates.
    run = Run(program, work, "offset", "kind: linear, loss: poisson, init: {output_bias: -1}", x, count.astype(float),
              offset=np.log(exposure))
    glum = GeneralizedLinearRegressor(family="poisson", alpha=0, gradient_tol=1e-10)
    glum.fit(x, count, offset=np.log(exposure))
    print(f"offset: {len(count)} rows, deviance {run.figures['deviance']:.7g}")
    check("coefficients off glum's", np.abs(run.coefficients - np.append(glum.coef_, glum.intercept_)).max(), 1e-3)
    deviance = mean_tweedie_deviance(count, glum.predict(x, offset=np.log(exposure)), power=1)
    check("deviance off glum's, relative", abs(run.figures["deviance"] / deviance - 1), 1e-5)
    some = count > 0
    glm(program, work, "gamma", 2, "kind: linear, loss: gamma", x[some], amount[some] / count[some],
        count[some].astype(float))
    glm(program, work, "tweedie", 1.5, "kind: linear, loss: tweedie, loss_power: 1.5", x, amount / exposure, exposure)

    random = np.random.default_rng(7)
    x = random.normal(size=(2000, FEATURES)).round(3)
    y = x @ [1, -2, 0.5, 0, 3, 1] + 2 + random.standard_t(1.5, 2000)
    theirs = HuberRegressor(alpha=0, epsilon=1.35, tol=1e-9, max_iter=10000).fit(x, y)
    run = Run(program, work, "huber", f"kind: linear, loss: huber, loss_delta: {1.35 * theirs.scale_:.9g}", x, y)
    print(f"huber: D2 {run.figures['d2']:.5f}")
    check("coefficients off scikit-learn's", np.abs(run.coefficients - np.append(theirs.coef_, theirs.intercept_)).max(), 1e-3)

    theirs = QuantileRegressor(quantile=0.8, alpha=0, solver="highs").fit(x, y)
    run = Run(program, work, "quantile", "kind: linear, loss: quantile, loss_level: 0.8", x, y, steps=20000)
    print(f"quantile 0.8: share below {run.figures['share_below']:.4f}, D2 {run.figures['d2']:.5f}")
    best = mean_pinball_loss(y, theirs.predict(x), alpha=0.8)
    check("pinball loss off scikit-learn's, relative", abs(run.figures["deviance"] / best - 1), 1e-5)
    check("coefficients off scikit-learn's", np.abs(run.coefficients - np.append(theirs.coef_, theirs.intercept_)).max(), 1e-3)

    label = (x @ [1, -1, 0.5, 0, 0.3, 0.2] + random.normal(size=2000) > 0).astype(float)
    c = 0.1
    theirs = LinearSVC(C=c, loss="squared_hinge", tol=1e-9, max_iter=1000000).fit(x, label)
    run = Run(program, work, "squared_hinge", "kind: logistic, loss: squared_hinge", x, label, l2=1 / (c * len(label)))

    def objective(w):
        margin = np.maximum(0, 1 - (2 * label - 1) * (x @ w[:-1] + w[-1]))
        return w @ w / 2 + c * (margin ** 2).sum()
    of_theirs = objective(np.append(theirs.coef_, theirs.intercept_))
    print(f"squared hinge: objective {objective(run.coefficients):.7g}, LIBLINEAR's {of_theirs:.7g}")
    check("objective off LIBLINEAR's, relative", objective(run.coefficients) / of_theirs - 1, 1e-4)
    if failed:
        sys.exit(f"missed: {', '.join(failed)}")


main()
