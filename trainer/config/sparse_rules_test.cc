// Which keys go with sparse rows, and what a config with them says.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/config/load_test_util.h"

namespace dtrain {
namespace {

// The file of a job on such data.
std::string Job(const std::string& model, const std::string& data) {
  return WriteTestFile("job.yaml", "cluster: {ps: [\"a:1\"], worker: [\"a:2\"]}\nmodel: {" + model +
                                       "}\ndata: {" + data + "}\ntrain: {steps: 1}\n");
}

Config Load(const std::string& model, const std::string& data) {
  return LoadConfig(Job(model, data), {}, {});
}

// The report, without the places.
std::string Error(const std::string& model, const std::string& data) {
  std::string report = LoadError(Job(model, data));
  for (size_t at = 0; (at = report.find("job.yaml:", at)) != std::string::npos;) {
    const size_t line = report.rfind('\n', at) == std::string::npos ? 0 : report.rfind('\n', at) + 1;
    report.erase(line, report.find(": ", at) + 2 - line);
    at = line;
  }
  return report;
}

const char kLibsvm[] = "train: {format: libsvm, path: a.txt}";
const char kVw[] = "train: {format: vw, path: a.txt}";
const char kCsv[] = "train: {format: csv, path: a.csv, label: y}";

std::string With(const char* train, const std::string& keys) { return std::string(train) + ", " + keys; }

TEST_CASE("sparse rules: sparse rows have a table, unless the model takes all features of a row") {
  CHECK(UsesTable(Load("kind: logistic", kLibsvm)));
  CHECK(UsesTable(Load("kind: softmax, outputs: 3, table: range", kVw)));
  CHECK(UsesTable(Load("kind: linear", With(kCsv, "hash: [url]"))));
  CHECK_FALSE(UsesTable(Load("kind: logistic, table: none", kLibsvm)));
  CHECK_FALSE(UsesTable(Load("kind: mlp, hidden: [4], head: logistic", kLibsvm)));
  CHECK_FALSE(UsesTable(Load("kind: linear", kCsv)));
}

TEST_CASE("sparse rules: a factorization machine is logistic unless it says linear") {
  CHECK(Load("kind: fm", kVw).model.head == ModelHead::kLogistic);
  CHECK(Load("kind: fm, head: linear, factors: 4", kVw).model.head == ModelHead::kLinear);
  CHECK(Error("kind: fm, head: softmax", kVw) ==
        "model.head = softmax; must be logistic or linear: a factorization machine has one output. Try "
        "logistic.");
  CHECK(Error("kind: fm, table: none", kVw) ==
        "model.table = none; must be range, hash or auto: a factorization machine is a table of rows. Try "
        "auto.");
}

TEST_CASE("sparse rules: features of a hash table are keys, of which nothing says how many there are") {
  const Config config =
      Load("kind: fm, table: hash, admit_after: 3, evict_after: 1000, max_rows: 100000", kVw);
  CHECK(config.data.whole_keys);
  CHECK(*HashBits(config.data) == 64);
  CHECK(config.model.admit_after == 3);
  CHECK(TableOf(config) == TableKind::kHash);
  CHECK_FALSE(HashBits(Load("kind: logistic, table: hash", kLibsvm).data));
  CHECK(Error("kind: logistic, table: hash, inputs: 10", kLibsvm) ==
        "model.inputs = 10; has no effect with model.table = hash. Leave it out, or set model.table to auto, "
        "none or range.");
  CHECK(Error("kind: logistic, table: hash", With(kVw, "hash_bits: 20")) ==
        "data.hash_bits = 20; has no effect with model.table: hash, whose keys have all 64 bits. Leave it "
        "out, or null it: --set data.hash_bits=null.");
  CHECK(
      Error("kind: logistic, table: hash, init: {kind: glorot}", kVw) ==
      "model.init.kind = glorot; must be another one: glorot needs the number of features, and model.table: "
      "hash has none. Try zeros.");
  CHECK(*HashBits(Load("kind: wide_deep, hidden: [4], table: hash", kVw).data) == 64);
  CHECK(Error("kind: logistic, table: hash, max_rows: 1000", kVw) ==
        "model.max_rows = 1000; must be >= 65536 (rows). Try 10000000, or leave it out: without end.");
  CHECK(Error("kind: logistic, admit_after: 3", kVw) ==
        "model.admit_after = 3; has no effect with model.table = auto. Leave it out, or set model.table to "
        "hash.");
  CHECK(Error("kind: logistic, table: hash", kCsv) ==
        "model.table = hash; needs sparse rows: data.train.format libsvm, vw or criteo, or a table with "
        "data.hash or data.bags. "
        "Try auto.");
}

TEST_CASE("sparse rules: tables and factorization machines need sparse rows") {
  CHECK(Error("kind: fm", kCsv) ==
        "model.kind = fm; needs sparse rows: data.train.format libsvm, vw or criteo, or a table with "
        "data.hash or data.bags. "
        "Try logistic.");
  CHECK(Error("kind: linear, table: range", kCsv) ==
        "model.table = range; needs sparse rows: data.train.format libsvm, vw or criteo, or a table with "
        "data.hash or data.bags. Try auto.");
  CHECK(Error("kind: mlp, hidden: [4], table: range", kVw) ==
        "model.table = range; is not for mlp, whose first layer takes all features of a row. Try auto.");
}

TEST_CASE("sparse rules: what has changed is saved of the rows of a table alone") {
  const auto load = [](const char* model) {
    return LoadConfig(Job(model, kLibsvm), {"checkpoint.delta=3"}, {});
  };
  CHECK(load("kind: logistic").checkpoint.delta == 3);
  CHECK(load("kind: wide_deep, hidden: [4]").checkpoint.delta == 3);
  CHECK(load("kind: logistic, table: hash").checkpoint.delta == 3);
  for (const char* model : {"kind: logistic, table: none", "kind: mlp, hidden: [4], head: logistic"}) {
    CAPTURE(model);
    CHECK_THROWS_WITH_AS(
        load(model),
        doctest::Contains("checkpoint.delta = 3; is for models whose weights are rows of a "
                          "table (model.table), and this one's change in every step. Try 0."),
        UserError);
  }
}

TEST_CASE("sparse rules: keys of other formats have no effect, and are told") {
  for (const char* key : {"index_base: 0", "hash: [a]", "scale: unit", "categories: [a]", "missing: mean",
                          "dates: [a]", "weight: a", "delimiter: tab"}) {
    CAPTURE(key);
    CHECK(Error("kind: logistic", With(kVw, key)).find("has no effect with data.train.format = vw") !=
          std::string::npos);
  }
  for (const char* key : {"hash_bits: 20", "crosses: [ab]"}) {
    CAPTURE(key);
    CHECK(Error("kind: logistic", With(kLibsvm, key)).find("has no effect with data.train.format = libsvm") !=
          std::string::npos);
  }
  CHECK(Error("kind: logistic", With(kCsv, "hash_bits: 20")) ==
        "data.hash_bits = 20; has no effect without data.hash and data.bags. Leave it out, or name columns "
        "in data.hash.");
  CHECK(Error("kind: logistic", "train: {format: libsvm, path: a, label: y}")
            .find("has no effect with data.train.format = libsvm") != std::string::npos);
  CHECK(Error("kind: logistic", "train: {format: libsvm}") ==
        "data.train.path is missing; data.train.format = libsvm needs it. Write \"path: table.csv\" under "
        "data.train.");
}

TEST_CASE("sparse rules: what all texts have goes with sparse rows, too") {
  const Config config = Load("kind: logistic", With(kLibsvm,
                                                    "index_base: 0, bad_rows: skip, cache: none, "
                                                    "validation: 0.5, rename_labels: [\"a -> b\"], "
                                                    "class_weights: [balanced]"));
  CHECK(config.data.index_base == 0);
  CHECK(config.data.bad_rows == BadRows::kSkip);
}

TEST_CASE("sparse rules: of a table with hashed columns nothing is fitted") {
  const auto error = [](const std::string& key) {
    return Error("kind: linear", With(kCsv, "hash: [a], " + key));
  };
  CHECK(error("categories: [b]") ==
        "data.categories = [...]; is not read with data.hash. Name all columns of texts in data.hash.");
  CHECK(error("scale: unit") ==
        "data.scale = unit; is for dense rows, and of sparse ones for the numbers of wide_deep alone. Try "
        "none.");
  CHECK(error("missing: mean") == "data.missing = mean; is for tables without data.hash. Try zero.");
  CHECK(error("missing: zero, dates: [b], ignore: [c], weight: d, delimiter: tab") == "");
}

TEST_CASE("sparse rules: a hash says how many features there are") {
  CHECK(HashBits(Load("kind: linear", kVw).data) == 18);
  CHECK(HashBits(Load("kind: linear", With(kVw, "hash_bits: 20")).data) == 20);
  CHECK(HashBits(Load("kind: linear", kLibsvm).data) == std::nullopt);
  CHECK(Error("kind: linear, inputs: 1024", With(kVw, "hash_bits: 10")) == "");
  CHECK(Error("kind: linear, inputs: 1000", With(kVw, "hash_bits: 10")) ==
        "model.inputs = 1000; must be 1024, which data.hash_bits = 10 says. Leave it out.");
}

TEST_CASE("sparse rules: the factors of a factorization machine begin small and different from each other") {
  const InitConfig init = Load("kind: fm", kVw).model.init;
  CHECK(init.kind == InitKind::kNormal);
  CHECK(init.stddev == 0.01);
  CHECK(Load("kind: fm, init: {stddev: 0.1}", kVw).model.init.stddev == 0.1);
  CHECK(Load("kind: logistic, init: {kind: normal}", kVw).model.init.stddev == 1);
  for (const char* kind : {"zeros", "constant, value: 1", "glorot"}) {
    CAPTURE(kind);
    CHECK(Error(std::string("kind: fm, init: {kind: ") + kind + "}", kVw).find("must be normal") !=
          std::string::npos);
  }
}

TEST_CASE("sparse rules: progressive loss is told unless it is switched off") {
  CHECK(Load("kind: logistic", kVw).hooks.progressive);
  CHECK_FALSE(Load("kind: logistic", kCsv).hooks.progressive);
}

TEST_CASE("sparse rules: rows are dealt out in any way, and a test set has the same format") {
  CHECK(Error("kind: linear", With(kLibsvm, "split: feed")) == "");
  CHECK(
      Error("kind: linear", With(kLibsvm, "test: {format: csv, path: b, label: y}")) ==
      "data.test.format = csv; does not go with data.train.format = libsvm: libsvm is tested on libsvm. Use "
      "one for both.");
  CHECK(Error("kind: linear", With(kVw, "test: {format: vw, path: b}")) == "");
}

TEST_CASE("sparse rules: a pipe is a pipe whatever comes through it") {
  CHECK(ReadsPipe(Load("kind: linear", "train: {format: libsvm, path: \"exec:cat a\"}").data.train));
  CHECK(Error("kind: softmax", "train: {format: libsvm, path: \"exec:cat a\"}")
            .find("model.outputs is missing") == 0);
  CHECK(Error("kind: linear", "train: {format: vw, path: \"exec:cat a\"}, cache: file")
            .find("a cache is of files") != std::string::npos);
}

TEST_CASE("sparse rules: rows of Vowpal Wabbit have weights, which GPUs do not know") {
  CHECK(Load("kind: linear", kVw).device.kind == DeviceKind::kCpu);
  CHECK(
      LoadError(Job("kind: linear", kVw), {"device.kind=cuda"}) ==
      "--set device.kind=cuda: device.kind = cuda; rows of vw have weights, and GPUs compute all rows alike. "
      "Try cpu.");
  CHECK(Load("kind: linear", kLibsvm).device.kind == DeviceKind::kAuto);
}

TEST_CASE("sparse rules: of criteo a column behind the label, by its name or number, is the weight") {
  const auto error = [](const std::string& column) {
    return Error("kind: logistic", "train: {format: criteo, path: a.txt}, weight: " + column);
  };
  for (const char* good : {"I1", "I13", "C1", "C26", "1", "39"}) CHECK(error(good) == "");
  for (const char* bad : {"I0", "I14", "C27", "0", "40", "label", "\"1\""}) {
    CHECK_MESSAGE(
        error(bad).find("; must be a column behind the label: I1 to I13, C1 to C26") != std::string::npos,
        bad);
  }
}

TEST_CASE("sparse rules: weights that count features otherwise are of no use") {
  const Config saved = Load("kind: fm, factors: 4", With(kVw, "hash_bits: 20, crosses: [ab]"));
  const auto other = [&](const std::string& model, const std::string& data) {
    return OtherMeaning(saved, Load(model, data)).value_or("");
  };
  CHECK(other("kind: fm, factors: 4", With(kVw, "hash_bits: 20, crosses: [ab]")) == "");
  CHECK(other("kind: fm, factors: 5", With(kVw, "hash_bits: 20, crosses: [ab]")) ==
        "model.factors = 5; must be 4");
  CHECK(other("kind: fm, factors: 4", With(kVw, "crosses: [ab]")) == "data.hash_bits = 18; must be 20");
  CHECK(other("kind: fm, factors: 4", With(kVw, "hash_bits: 20")) == "data.crosses = null; must be [\"ab\"]");
  const Config by_default = Load("kind: logistic", kVw);
  CHECK(OtherMeaning(by_default, Load("kind: logistic, table: range", With(kVw, "hash_bits: 18"))) ==
        std::nullopt);
  CHECK(OtherMeaning(by_default, Load("kind: logistic, table: none", kVw)) ==
        "model.table = none; must be range");
  CHECK(OtherMeaning(Load("kind: linear", kLibsvm), Load("kind: linear", With(kLibsvm, "index_base: 0"))) ==
        "data.index_base = 0; must be 1");
}

TEST_CASE(
    "sparse rules: a checkpoint of a table has no rows that were never updated, so they begin as before") {
  const auto other = [](const std::string& then, const std::string& now) {
    return OtherMeaning(Load(then, kLibsvm), Load(now, kLibsvm)).value_or("");
  };
  CHECK(other("kind: fm, init: {seed: 3}", "kind: fm, init: {seed: 3, kind: normal, stddev: 0.01}") == "");
  CHECK(other("kind: fm, init: {seed: 3}", "kind: fm") == "model.init.seed = 1; must be 3");
  CHECK(other("kind: fm", "kind: fm, init: {stddev: 0.5}") == "model.init.stddev = 0.5; must be 0.01");
  CHECK(other("kind: logistic", "kind: logistic, init: {seed: 3}") == "");  // all zeros
  CHECK(other("kind: logistic", "kind: logistic, init: {kind: normal, stddev: 0.1}") ==
        "model.init.kind = normal; must be null");
  CHECK(other("kind: logistic", "kind: logistic, init: {kind: zeros}") == "");
  CHECK(other("kind: logistic, table: none", "kind: logistic, table: none, init: {seed: 3, kind: normal}") ==
        "");
}

TEST_CASE("loss rules: each loss is for its head, and its parameter for it alone") {
  CHECK(Error("kind: linear, loss: tweedie, loss_power: 1.2", kLibsvm) == "");
  CHECK(Error("kind: fm, head: linear, loss: poisson", kVw) == "");
  CHECK(Error("kind: mlp, hidden: [3], head: logistic, loss: hinge", kCsv) == "");
  CHECK(Error("kind: softmax, loss: hinge", kCsv) ==
        "model.loss = hinge; is for two classes, and model.kind = softmax. Try model.kind: logistic.");
  CHECK(Error("kind: fm, loss: huber", kVw) ==
        "model.loss = huber; is for labels that are numbers, and model.head = logistic. Try model.head: "
        "linear.");
  CHECK(Error("kind: linear, loss: squared_hinge", kCsv) ==
        "model.loss = squared_hinge; is for two classes, and model.kind = linear. Try model.kind: logistic.");
  CHECK(Error("kind: linear, loss: huber, loss_power: 1.2", kCsv) ==
        "model.loss_power = 1.2; has no effect with model.loss = huber. Leave it out, or set model.loss to "
        "tweedie.");
  CHECK(Error("kind: linear, loss: tweedie, loss_power: 2", kCsv) ==
        "model.loss_power = 2; must be <= 1.999. Try 1.5.");
  CHECK(Error("kind: linear, loss: tweedie, loss_power: 1", kCsv) ==
        "model.loss_power = 1; must be > 1. Try 1.5.");
  CHECK(Error("kind: linear, loss: quantile, loss_level: 1", kCsv).find("must be <= 0.999999") == 22);
  CHECK(Error("kind: linear, loss: gamma", "train: {format: synthetic, name: linear}") ==
        "model.loss = gamma; needs labels from 0 on, and those of data.train are drawn on both sides of it. "
        "Try huber.");
}

TEST_CASE("loss rules: squared is what a model without the key has, and another one is another model") {
  const auto other = [](const std::string& then, const std::string& now) {
    return OtherMeaning(Load(then, kCsv), Load(now, kCsv)).value_or("");
  };
  CHECK(other("kind: linear", "kind: linear, loss: squared") == "");
  CHECK(other("kind: linear, loss: huber", "kind: linear, loss: huber, loss_delta: 1") == "");
  CHECK(other("kind: linear", "kind: linear, loss: poisson") == "model.loss = poisson; must be null");
  CHECK(other("kind: linear, loss: huber", "kind: linear, loss: huber, loss_delta: 2") ==
        "model.loss_delta = 2; must be 1");
  CHECK(other("kind: logistic", "kind: logistic, loss: hinge") == "model.loss = hinge; must be null");
}

TEST_CASE("sparse rules: hashes of one format mean nothing to another") {
  CHECK(OtherMeaning(Load("kind: logistic", kVw),
                     Load("kind: logistic", "train: {format: criteo, path: a.txt}")) ==
        "data.train.format = criteo; must be vw");
}

TEST_CASE("sparse rules: wide_deep joins embeddings where rows have columns, and adds them up elsewhere") {
  const std::string model = "kind: wide_deep, hidden: [4]";
  const Config criteo = Load(model, "train: {format: criteo, path: a.txt}, hash_bits: 20");
  CHECK(criteo.model.combine == Combine::kJoin);
  CHECK(criteo.model.head == ModelHead::kLogistic);
  CHECK(criteo.model.init.kind == InitKind::kNormal);
  CHECK(criteo.model.columns == 26);
  CHECK(criteo.model.column_bits == 20);
  CHECK(criteo.data.by_column);
  CHECK(UsesTable(criteo));
  const Config csv = Load(model, With(kCsv, "hash: [url, plan]"));
  CHECK(csv.model.columns == 2);
  CHECK(csv.model.combine == Combine::kJoin);
  const Config vw = Load(model, kVw);
  CHECK(vw.model.columns == 0);
  CHECK(vw.model.combine == Combine::kSum);
  CHECK_FALSE(vw.data.by_column);
  CHECK_FALSE(Load("kind: fm", "train: {format: criteo, path: a.txt}").data.by_column);
}

TEST_CASE(
    "sparse rules: keys of wide_deep begin with their column, and are below 2^63 with those of numbers") {
  const std::string model = "kind: wide_deep, hidden: [4], table: hash";
  const Config criteo = Load(model, "train: {format: criteo, path: a.txt}");
  CHECK(criteo.model.column_bits == 58);  // 26 columns and the numbers need 5
  CHECK(TableFeatures(criteo.model) == int64_t{26} << 58);
  CHECK(Load(model, With(kCsv, "hash: [url]")).model.column_bits == 62);
  CHECK(Load(model, With(kCsv, "hash: [url, plan]")).model.column_bits == 61);
}

TEST_CASE("sparse rules: the numbers of wide_deep are scaled, and categories are not") {
  const std::string criteo = "train: {format: criteo, path: a.txt}, scale: standard";
  const std::string model = "kind: wide_deep, hidden: [4]";
  CHECK(Load(model, criteo).data.scale == FeatureScale::kStandard);
  CHECK(Load(model, With(kCsv, "hash: [url], scale: unit")).data.scale == FeatureScale::kUnit);
  CHECK(Error("kind: logistic", criteo).find("data.scale = standard; is for dense rows") == 0);
  CHECK(*OtherMeaning(Load(model, criteo), Load(model, "train: {format: criteo, path: a.txt}")) ==
        "data.scale = none; must be standard");
}

TEST_CASE("sparse rules: what wide_deep cannot have is refused by its key, with the remedy") {
  const std::string model = "kind: wide_deep, hidden: [4]";
  const std::string criteo = "train: {format: criteo, path: a.txt}";
  CHECK(Error(model, kCsv) ==
        "model.kind = wide_deep; needs sparse rows: data.train.format libsvm, vw or criteo, or a table with "
        "data.hash or data.bags. Try mlp.");
  CHECK(Error(model + ", combine: join", kVw) ==
        "model.combine = join; needs rows with columns: data.train.format criteo, or a table with data.hash "
        "or data.bags. Try "
        "sum.");
  CHECK(Error(model + ", head: softmax", kVw) ==
        "model.head = softmax; must be logistic or linear: wide_deep has one output. Try logistic.");
  CHECK(Error(model + ", table: none", kVw) ==
        "model.table = none; must be range, hash or auto: wide_deep has a table of rows. Try auto.");
  CHECK(
      Error(model + ", init: {kind: glorot}", kVw) ==
      "model.init.kind = glorot; must be normal: embeddings that begin alike stay alike, and what is learnt "
      "must be small at first. Try normal, with model.init.stddev: 0.01.");
  CHECK(Error("kind: wide_deep", kVw).find("model.hidden is missing; model.kind = wide_deep needs it.") == 0);
  CHECK(
      Error(model + ", inputs: 1000", criteo) ==
      "model.inputs = 1000; must be 6815757: 26 columns of 2^18 features, and the numbers of a row. Leave it "
      "out.");
  CHECK(Error(model, criteo + ", hash_bits: 35") ==
        "data.hash_bits = 35; must be at most 34 with 26 columns of so many features each. Try 20.");
  CHECK(Error("kind: logistic", criteo + ", numbers: plain") ==
        "data.numbers = plain; has no effect with model.kind = logistic. Leave it out, or set model.kind to "
        "wide_deep.");
}

TEST_CASE("sparse rules: net.compress takes rows of a table, but topk is for tensors alone") {
  const auto error = [](const std::string& model, const std::string& form) {
    return LoadError(Job(model, kVw), {"net.compress=" + form});
  };
  CHECK(
      error("kind: logistic", "topk")
          .find("net.compress.push = topk; must be none, bf16 or int8: topk is for tensors, and all weights "
                "are rows of a table. Try int8.") != std::string::npos);
  for (const char* const form : {"none", "bf16", "int8", "{pull: int8}"}) {
    CHECK_NOTHROW(LoadConfig(Job("kind: logistic", kVw), {std::string("net.compress=") + form}, {}));
  }
  CHECK_NOTHROW(LoadConfig(Job("kind: logistic, table: none", kLibsvm), {"net.compress=int8"}, {}));
  CHECK_NOTHROW(LoadConfig(Job("kind: wide_deep, hidden: [4]", kVw), {"net.compress=topk"}, {}));
}

}  // namespace
}  // namespace dtrain
