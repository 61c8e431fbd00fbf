#include "trainer/config/load.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "base/testing/files.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/config/load_test_util.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

const char* const kBad = "trainer/config/testdata/bad";
const char* const kSmall = "trainer/config/testdata/small.yaml";

Config Load(const std::string& path, const std::vector<std::string>& sets = {}) {
  return LoadConfig(path, sets, {});
}

TEST_CASE("load: where rows are held out they are what a run watches, unless the user says otherwise") {
  CHECK(Load(kSmall).eval.on == EvalOn::kTest);
  CHECK(Load(kSmall, {"data.validation=10"}).eval.on == EvalOn::kValidation);
  CHECK(Load(kSmall, {"data.validation=10", "eval.on=test"}).eval.on == EvalOn::kTest);
  CHECK(LoadError(kSmall, {"data.validation=10", "eval.on=test", "eval.every_steps=5"})
            .find("--set eval.on=test: eval.on = test; there are no test rows (no data.test).") == 0);
}

TEST_CASE("load: every file in testdata/bad is refused with the lines in the .txt beside it") {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(kBad)) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    ++files;
    const std::string expected = testing::FileContent(fs::path(entry.path()).replace_extension(".txt"));
    CHECK(LoadError(entry.path().string()) + "\n" == expected);
  }
  CHECK(files >= 20);
}

TEST_CASE("load: keys that are not given have their defaults") {
  const Config config = Load(kSmall);
  CHECK(config.train.batch_size == 100);
  CHECK(config.device.ids == std::vector<int64_t>{0});
  CHECK(config.train.optimizer.learning_rate == 0.01);
  CHECK(config.data.shuffle);
  CHECK_FALSE(config.model.outputs.has_value());
  CHECK_FALSE(config.train.epochs.has_value());
  CHECK(config.data.test.format == DataFormat::kNone);
  CHECK(config.net.bind == "");
}

TEST_CASE("load: adam learns at 0.001 where nothing else is said") {
  CHECK(Load(kSmall, {"train.optimizer.kind=adam"}).train.optimizer.learning_rate == 0.001);
  CHECK(Load(kSmall, {"train.optimizer={kind: adam, learning_rate: 0.01}"}).train.optimizer.learning_rate ==
        0.01);
  CHECK(Load(kSmall, {"train.optimizer=adam"}).train.optimizer.learning_rate == 0.001);
  CHECK(Load(kSmall, {"train.optimizer.kind=ftrl"}).train.optimizer.learning_rate == 0.01);
}

TEST_CASE("load: a kind alone stands for its map") {
  CHECK(Load(kSmall, {"model=linear"}).model.kind == ModelKind::kLinear);
  CHECK(LoadError(kSmall, {"train.optimizer=adma"}).find("train.optimizer.kind = adma; must be sgd") !=
        std::string::npos);
  CHECK(LoadError(kSmall, {"train.optimizer=adma"}).find("Did you mean adam?") != std::string::npos);
}

TEST_CASE("load: one form of net.compress is for both directions, and each direction may have its own form") {
  const auto compress = [](const std::string& value) {
    const CompressConfig forms = Load(kSmall, {"net.compress=" + value}).net.compress;
    return std::string(net::CompressionName(forms.push)) + " " + net::CompressionName(forms.pull);
  };
  CHECK(compress("none") == "none none");
  CHECK(compress("bf16") == "bf16 bf16");
  CHECK(compress("int8") == "int8 int8");
  CHECK(compress("topk") == "topk int8");
  CHECK(compress("{push: topk, pull: bf16}") == "topk bf16");
  CHECK(compress("{push: int8}") == "int8 none");
  CHECK(Load(kSmall, {"net.compress=int8", "net.compress=null"}).net.compress.pull ==
        net::Compression::kNone);
  CHECK(Load(kSmall, {"net.compress=int8", "net.compress.pull=none"}).net.compress.push ==
        net::Compression::kInt8);
  CHECK(LoadError(kSmall, {"net.compress=int4"})
            .find("net.compress.push = int4; must be none, bf16, int8 or topk") != std::string::npos);
  CHECK(LoadError(kSmall, {"net.compress.pull=topk"}).find("net.compress.pull = topk; must be") !=
        std::string::npos);
}

TEST_CASE("load: failure.peer_lost_exit is any code but those of other endings") {
  for (const int64_t code : {4, 5, 75, 126, 129, 138, 255}) {
    CHECK(Load(kSmall, {"failure.peer_lost_exit=" + std::to_string(code)}).failure.peer_lost_exit == code);
  }
  for (const int code : {1, 2, 3, 127, 128, 130, 137, 139, 143}) {
    CHECK(LoadError(kSmall, {"failure.peer_lost_exit=" + std::to_string(code)}) != "");
  }
}

TEST_CASE("load: hooks.stop_at_step is train.steps by another name") {
  CHECK(Load(kSmall).train.steps == 50);
  CHECK(Load(kSmall, {"hooks.stop_at_step=7"}).train.steps == 7);
  CHECK(Load(kSmall, {"train.steps=7"}).train.steps == 7);
  CHECK(Load(kSmall, {"train.steps=7", "hooks.stop_at_step=7"}).train.steps == 7);
  const std::string both = WriteTestFile("both.yaml", testing::FileContent(kSmall) + "train: {steps: 51}\n");
  CHECK(LoadError(both) != "");
  CHECK(Load(both, {"train.steps=7"}).train.steps == 7);  // a flag beats the file by either name
  CHECK(Load(both, {"hooks.stop_at_step=7"}).train.steps == 7);
  CHECK(LoadError(kSmall, {"train.steps=7", "hooks.stop_at_step=8"}) ==
        "--set hooks.stop_at_step=8: hooks.stop_at_step = 8; is another name for train.steps, which is 7. "
        "Leave one of them.");
}

TEST_CASE("load: checkpoints are in run.dir where they have no place of their own") {
  const std::string here = fs::current_path().string();
  CHECK(Load(kSmall).checkpoint.dir == "");
  CHECK(Load(kSmall, {"run.dir=none"}).checkpoint.dir == "");
  CHECK(Load(kSmall, {"run.dir=runs/a"}).checkpoint.dir == here + "/runs/a/checkpoints");
  CHECK(Load(kSmall, {"run.dir=runs/a", "checkpoint.dir=kept"}).checkpoint.dir == here + "/kept");
  CHECK(Load(kSmall,
             {"run.dir=runs/a", "eval={every_steps: 5, keep_best: true, on: validation}", "data.validation=5",
              "data.train={format: synthetic, name: digits, rows: 90}", "model={kind: softmax, inputs: 784}"})
            .eval.keep_best);
}

TEST_CASE("load: the best checkpoint needs a directory, which a command may make with that of the run") {
  const std::vector<std::string> best{
      "eval={every_steps: 5, keep_best: true, on: validation}", "data.validation=5",
      "data.train={format: synthetic, name: digits, rows: 90}", "model={kind: softmax, inputs: 784}"};
  const auto with = [&](const std::string& set) {
    std::vector<std::string> sets = best;
    sets.push_back(set);
    return sets;
  };
  CHECK(Load(kSmall, best).eval.keep_best);
  CHECK(LoadError(kSmall, with("run.dir=none")).find("eval.keep_best = true; needs checkpoint.dir") !=
        std::string::npos);
}

TEST_CASE("load: a command's own run.dir is for who has not said one") {
  LoadOptions options;
  options.made_up_run = "/made/up";
  CHECK(LoadConfig(kSmall, {}, options).checkpoint.dir == "/made/up/checkpoints");
  CHECK(LoadConfig(kSmall, {"run.dir=none"}, options).run.dir == kNoRunDirectory);
  CHECK(LoadConfig(kSmall, {"run.dir=/mine"}, options).run.dir == "/mine");
}

TEST_CASE("set: beats the file, and a later one an earlier") {
  const Config config = Load(kSmall, {"train.batch_size=5", "data.shuffle=false", "train.batch_size=6"});
  CHECK(config.train.batch_size == 6);
  CHECK_FALSE(config.data.shuffle);
}

TEST_CASE("set: null puts the default back, of a key, of its other name and of a section") {
  CHECK(Load(kSmall, {"train.steps=null", "train.epochs=1", "data.train.rows=9"}).train.steps ==
        std::nullopt);
  CHECK(Load(kSmall, {"hooks=null", "train.steps=9"}).hooks.log_every_steps == 0);
  CHECK(Load(kSmall, {"train.batch_size=5", "train.batch_size=~"}).train.batch_size == 100);
}

TEST_CASE("set: a map sets the keys that it names") {
  const Config config = Load(kSmall, {"train={batch_size: 5, optimizer: {kind: sgd, learning_rate: 0.5}}"});
  CHECK(config.train.batch_size == 5);
  CHECK(config.train.optimizer.learning_rate == 0.5);
  CHECK(config.train.steps == 50);
}

TEST_CASE("set: a list replaces the list") {
  const Config config = Load(kSmall, {"cluster.ps=[a:1, b:2]"});
  CHECK(config.cluster.ps == std::vector<std::string>{"a:1", "b:2"});
}

TEST_CASE("set: a flag that chooses another kind makes the file's settings of the old kind void") {
  const Config config = Load(kSmall, {"model.init.kind=zeros"});
  CHECK(config.model.init.kind == InitKind::kZeros);
  CHECK(LoadError(kSmall, {"model.init.kind=zeros", "model.init.stddev=2"}) ==
        "--set model.init.stddev=2: model.init.stddev = 2; has no effect with model.init.kind = zeros. Leave "
        "it out, or set model.init.kind to normal.");
}

TEST_CASE("set: mistakes are reported with the flag as their place") {
  CHECK(LoadError(kSmall, {"train.batch_size=0"}) ==
        "--set train.batch_size=0: train.batch_size = 0; must be >= 1 (examples per step). Try 64.");
  CHECK(LoadError(kSmall, {"train.batchsize=5"}) ==
        "--set train.batchsize=5: unknown key \"batchsize\" in train; did you mean \"batch_size\"?");
  CHECK(LoadError(kSmall, {"batch_size=5"}) ==
        "--set batch_size=5: unknown key \"batch_size\"; did you mean \"train.batch_size\"?");
  CHECK(LoadError(kSmall, {"train.batch_size"}) ==
        "--set train.batch_size: must be KEY=VALUE. Try --set train.batch_size=64.");
  CHECK(LoadError(kSmall, {"train.epochs"}) ==
        "--set train.epochs: must be KEY=VALUE. Try --set train.epochs=5.");
  CHECK(LoadError(kSmall, {"train.epoch"}) ==
        "--set train.epoch: must be KEY=VALUE. Write --set train.epoch=VALUE.");
  CHECK(LoadError(kSmall, {"=3"}) ==
        "--set =3: must be KEY=VALUE. Write the key in front of the =, as in --set train.batch_size=64.");
  CHECK(LoadError(kSmall, {"train.steps=a\nb: c"}).find("--set train.steps=a\\x0ab: c: ") == 0);
  CHECK(LoadError(kSmall, {"log.dir=\xff"}) ==
        "--set log.dir=\\xff: is not UTF-8 text. Check the terminal's encoding.");
}

TEST_CASE("load: a word of other tools is reported once, with the key in its place") {
  CHECK(LoadError(kSmall, {"train.optimizer.schedule={kind: exponential, gamma: 0.5, step_size: 10}"}) ==
        "--set train.optimizer.schedule={kind: exponential, gamma: 0.5, step_size: 10}: unknown key "
        "\"gamma\" in "
        "train.optimizer.schedule; did you mean \"decay_rate\"? It is the factor of the learning rate for "
        "each schedule.decay_steps updates.\n"
        "--set train.optimizer.schedule={kind: exponential, gamma: 0.5, step_size: 10}: unknown key "
        "\"step_size\" "
        "in train.optimizer.schedule; did you mean \"decay_steps\"? It counts updates, not epochs.");
  CHECK(LoadError(kSmall, {"train.optimizer={kind: sgd, momentum: 0.9}"})
            .find("train.optimizer.momentum = 0.9; has no effect with train.optimizer.kind = sgd. Leave it "
                  "out, or "
                  "set train.optimizer.kind to momentum.") != std::string::npos);
}

TEST_CASE("load: a table in place of a config leads to init") {
  for (const char* text : {"a,b,y\n1,2,0\n", "a: b,y\n\"1\" 2,0\n"}) {
    const std::string path = WriteTestFile("table.csv", text);
    CHECK(LoadError(path).find("dtrain init " + path + " writes a config for it") != std::string::npos);
  }
  CHECK(LoadError(WriteTestFile("own.yaml", "a,b,y\n")).find("dtrain init") == std::string::npos);
}

TEST_CASE(
    "load: a key that has ended is refused with its successor, but in the config.yaml of a checkpoint") {
  const std::string ended =
      "checkpoint.writer is no key any more: every ps writes its part of a checkpoint into checkpoint.dir of "
      "ps 0, and one that does not see that directory sends its part to ps 0. Leave it out.";
  const std::string set = "checkpoint.writer=ps";
  CHECK(LoadError(kSmall, {set}) == "--set " + set + ": " + ended);
  const std::string directory = testing::NewDirectory(), path = directory + "/config.yaml";
  fs::copy_file(kSmall, path);
  std::ofstream(path, std::ios::app) << "checkpoint: {writer: chief, keep: 3}\n";
  CHECK(LoadError(path).find(": " + ended) != std::string::npos);
  std::ofstream(directory + "/manifest") << "of a checkpoint";
  CHECK(Load(path).checkpoint.keep == 3);
  CHECK(LoadError(path, {set}) == "--set " + set + ": " + ended);
}

TEST_CASE("set: an empty value is refused, since it is more often a slip than a wish for the default") {
  const std::string refusal = "has no value. Write null for the default.";
  CHECK(LoadError(kSmall, {"train.steps="}) == "--set train.steps=: " + refusal);
  CHECK(LoadError(kSmall, {"train.steps= "}) == "--set train.steps= : " + refusal);
  CHECK(LoadError(kSmall, {"train.steps=#5"}) == "--set train.steps=#5: " + refusal);
}

TEST_CASE("set: a value that YAML reads otherwise is refused with the way to quote it") {
  const std::string error = LoadError(kSmall, {"net.bind=[::1]:9001"});
  CHECK(error.find("--set net.bind=[::1]:9001: the value is not valid YAML: ") == 0);
  CHECK(error.find("--set 'net.bind=\"...\"'") != std::string::npos);
  CHECK(Load(kSmall, {"net.bind=\"[::1]:9001\""}).net.bind == "[::1]:9001");
}

TEST_CASE("load: mistakes of the file and of several flags are listed together, the file's first") {
  CHECK(LoadError("trainer/config/testdata/bad/classes.yaml", {"train.epochs=0", "x=1"}) ==
        "trainer/config/testdata/bad/classes.yaml:2: model.kind = linear; needs real targets, and data.train "
        "has classes. Try softmax.\n"
        "--set train.epochs=0: train.epochs = 0; must be >= 1 (passes over the data). Try 5, or leave it "
        "out: no limit.\n"
        "--set x=1: unknown key \"x\"; this version knows cluster, model, data, train, placement, device, "
        "eval, hooks, failure, run, checkpoint, summary, net, log, security, metrics and launch.");
}

TEST_CASE("load: dtrain local needs no cluster, and checks the one that is there") {
  const std::string path = WriteTestFile(
      "local.yaml",
      "model: {kind: linear}\ndata: {train: {format: synthetic, name: linear}}\ntrain: {steps: 5}\n");
  LoadOptions local;
  local.cluster_optional = true;
  CHECK(LoadError(path, {}, local) == "");
  CHECK(LoadError(path, {"cluster.ps=[x]"}, local) != "");
  CHECK(LoadError(path).find("cluster.ps is missing") != std::string::npos);
}

TEST_CASE(
    "load: an input path in the file is relative to the file, an output path to the working directory") {
  const std::string path =
      WriteTestFile("paths.yaml",
                    "cluster: {ps: [a:1], worker: [a:2]}\nmodel: {kind: softmax}\ntrain: {epochs: 1}\nlog: "
                    "{dir: logs/./x}\n"
                    "data: {train: {format: idx, images: sub//images.gz, labels: /abs/../labels}}\n");
  const Config config = Load(path);
  const std::string directory = fs::path(path).parent_path().string();
  CHECK(config.data.train.images == std::vector<std::string>{directory + "/sub/images.gz"});
  CHECK(config.data.train.labels == std::vector<std::string>{"/labels"});
  CHECK(config.log.dir == (fs::current_path() / "logs/x").string());
}

TEST_CASE("load: what is not in shared/data of a file's path is looked for in DTRAIN_DATA") {
  const fs::path above = testing::NewDirectory();
  fs::create_directories(above / "shared/data/some");
  fs::create_directory(above / "job");
  const std::string path = above / "job/data.yaml";
  std::ofstream(path)
      << "cluster: {ps: [a:1], worker: [a:2]}\nmodel: {kind: softmax}\ntrain: {epochs: 1}\n"
         "data: {train: {format: idx, images: ../shared/data/no/i.gz, labels: ../shared/data/some/l.gz}}\n";
  setenv("DTRAIN_DATA", "/sets", 1);
  const Config found = Load(path);
  unsetenv("DTRAIN_DATA");
  CHECK(found.data.train.images == std::vector<std::string>{"/sets/no/i.gz"});
  CHECK(found.data.train.labels == std::vector{(above / "shared/data/some/l.gz").string()});
  CHECK(Load(path).data.train.images == std::vector{(above / "shared/data/no/i.gz").string()});
}

TEST_CASE("load: data that are not beside the config are looked for below DTRAIN_DATA") {
  const fs::path above = testing::NewDirectory();
  for (const char* const name : {"sets/mnist", "job/here"}) fs::create_directories(above / name);
  for (const char* const name : {"sets/mnist/i.gz", "sets/here.gz", "job/here.gz"})
    std::ofstream(above / name);
  const std::string path = above / "job/data.yaml";
  const auto images = [&](const std::string& name) {
    std::ofstream(path) << "cluster: {ps: [a:1], worker: [a:2]}\nmodel: {kind: softmax}\n"
                           "train: {epochs: 1}\nsecurity: {insecure: true}\n"
                           "data: {train: {format: idx, images: '"
                        << name << "', labels: l}}\n";
    return Load(path).data.train.images.at(0);
  };
  const std::string beside = above / "job", sets = above / "sets";
  CHECK(images("mnist/i.gz") == beside + "/mnist/i.gz");
  setenv("DTRAIN_DATA", sets.c_str(), 1);
  CHECK(images("mnist/i.gz") == sets + "/mnist/i.gz");
  CHECK(images("mnist/*.gz") == sets + "/mnist/*.gz");
  CHECK(images("here.gz") == beside + "/here.gz");
  CHECK(images("no/i.gz") == beside + "/no/i.gz");
  CHECK(images("../mnist/i.gz") == above.string() + "/mnist/i.gz");
  CHECK(images("/no/mnist/i.gz") == "/no/mnist/i.gz");
  unsetenv("DTRAIN_DATA");
}

TEST_CASE("load: IDX is read of lists of files and patterns, and not of a pipe") {
  const std::string cwd = fs::current_path().string();
  const auto sets = [](const std::string& images) {
    return std::vector<std::string>{"data.train={format: idx, images: " + images + ", labels: l}",
                                    "model.kind=softmax"};
  };
  CHECK(Load(kSmall, sets("[b, 'part-*']")).data.train.images == std::vector{cwd + "/b", cwd + "/part-*"});
  for (const char* pipe : {"'-'", "'exec:cat a'", "[b, 'exec:cat a']"}) {
    CAPTURE(pipe);
    CHECK(LoadError(kSmall, sets(pipe)).find("IDX is read of files, not of") != std::string::npos);
  }
}

TEST_CASE("load: a word that a path key takes stays a word") {
  CHECK(Load(kSmall, {"security.keys=auto"}).security.keys == "auto");
  CHECK(Load(kSmall, {"security.keys=keys"}).security.keys == (fs::current_path() / "keys").string());
}

TEST_CASE("load: paths in flags are relative to the working directory") {
  const Config config =
      Load(kSmall, {"data.train={format: idx, images: i, labels: l}", "model.kind=softmax"});
  CHECK(config.data.train.images == std::vector{(fs::current_path() / "i").string()});
}

TEST_CASE("load: '..' behind a link to a directory leads where the system would go") {
  const fs::path base = fs::path(WriteTestFile("unused", "")).parent_path();
  fs::create_directories(base / "real/deep/configs");
  std::error_code ignored;
  fs::create_directory_symlink(base / "real/deep/configs", base / "link", ignored);
  const std::string path =
      WriteTestFile("link/x.yaml",
                    "cluster: {ps: [a:1], worker: [a:2]}\nmodel: {kind: softmax}\ntrain: {epochs: 1}\n"
                    "data: {train: {format: idx, images: ../images, labels: l}}\n");
  CHECK(Load(path).data.train.images == std::vector{fs::canonical(base / "real/deep").string() + "/images"});
}

TEST_CASE("load: files that cannot be a config are refused by name") {
  const std::string directory = getenv("TEST_TMPDIR");
  CHECK(LoadError(directory + "/not-there.yaml") ==
        directory + "/not-there.yaml: cannot be opened: No such file or directory (2). Check the path.");
  CHECK(LoadError(directory) == directory + ": cannot be read: Is a directory (21). Give a YAML file.");
  const std::string gzip = WriteTestFile("gzip.yaml", std::string("\x1f\x8b\x08\x00", 4));
  CHECK(LoadError(gzip) == gzip + ":1: byte 0x1f at offset 0 is no text. Give a YAML file saved as UTF-8.");
  const std::string zero = WriteTestFile("zero.yaml", std::string("log:\n  dir: \"a\0b\"\n", 18));
  CHECK(LoadError(zero) == zero + ":2: byte 0x00 at offset 14 is no text. Give a YAML file saved as UTF-8.");
  const std::string latin = WriteTestFile("latin.yaml", "log: {dir: \"\xe9\"}\n");
  CHECK(LoadError(latin) ==
        latin + ":1: byte 0xe9 at offset 12 is no text. Give a YAML file saved as UTF-8.");
  const std::string large = WriteTestFile("large.yaml", std::string(2 << 20, '#'));
  CHECK(LoadError(large) == large + ": more than 1048576 bytes; that is no config. Give a YAML file.");
  const std::string empty = WriteTestFile("empty.yaml", "");
  CHECK(LoadError(empty) == empty + ": is empty. Give a YAML file with cluster, model, data and train.");
}

TEST_CASE("load: a damaged file is loaded or refused, never worse") {
  const std::string good = testing::FileContent(kSmall);
  const CounterRandom random(11);
  int loaded = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    std::string bad = good;
    bad[random.Below(2 * i, bad.size())] = "{}[]:,&*!|'\"#-? \n0"[random.Below(2 * i + 1, 18)];
    loaded += LoadError(WriteTestFile("damaged.yaml", bad)).empty() ? 1 : 0;
  }
  CHECK(loaded > 0);
  CHECK(loaded < 500);
}

TEST_CASE("load: rules on the number of workers are about those of a file, else about those that are told") {
  const std::string job =
      "model: {kind: linear, inputs: 2}\ndata: {train: {format: synthetic, name: linear}}\n"
      "train: {steps: 5, mode: sync, aggregate: 3}\n";
  const std::string without = WriteTestFile("without.yaml", job);
  const std::string with =
      WriteTestFile("with.yaml", job + "cluster: {ps: [\"a:1\"], worker: [\"b:1\", \"b:2\", \"b:3\"]}\n");
  LoadOptions options;
  options.cluster_optional = true;
  CHECK(LoadError(without, {}, options) == "");
  options.default_workers = 2;
  CHECK(LoadError(with, {}, options) == "");
  CHECK(LoadError(without, {}, options) ==
        without +
            ":3: train.aggregate = 3; must be at most the number of workers (2, those of dtrain local where "
            "cluster.worker is not set). Try 2.");
  options.workers = 1;
  CHECK(LoadError(with, {}, options) == with +
                                            ":3: train.aggregate = 3; must be at most the number of workers "
                                            "(1, by --workers). Try 1, or --workers 3.");
  options.workers = 4;
  CHECK(LoadError(with, {}, options) == "");
}

TEST_CASE("load: standard input goes to one worker, of those of a file, else of those that are told") {
  const std::string path = WriteTestFile(
      "input.yaml",
      "model: {kind: logistic, inputs: 2}\ndata: {train: {format: csv, path: \"-\", label: y}}\n"
      "train: {steps: 5}\n");
  LoadOptions options;
  options.cluster_optional = true;
  options.default_workers = 2;
  CHECK(LoadError(path, {}, options) ==
        path +
            ":2: data.train.path = \"-\"; standard input is read by one worker. Use exec:COMMAND, "
            "data.split: feed, or 1 worker (--workers 1).");
  CHECK(LoadError(path, {"data.split=feed"}, options) == "");
  options.workers = 1;
  CHECK(LoadError(path, {}, options) == "");
}

TEST_CASE("load: replicas are of two ps or more, in processes of their own, and of a ps that is waited for") {
  const std::string job =
      "model: {kind: linear, inputs: 2}\ndata: {train: {format: synthetic, name: linear}}\n"
      "train: {steps: 5}\nfailure: {replicas: 1}\n";
  const auto of = [&](const std::string& ps) {
    return WriteTestFile("replicas.yaml", job + "cluster: {ps: [" + ps + "], worker: [\"w:1\"]}\n");
  };
  const std::string two = of("\"a:1\", \"b:1\"");
  CHECK(Load(two).failure.replicas == 1);
  CHECK(Load(two).checkpoint.dir.empty());
  CHECK(Load(two, {"failure.replicas=0", "failure.ps_lost=fail"}).failure.replicas == 0);
  CHECK(LoadError(two, {"failure.replicas=2"}).find("failure.replicas = 2; must be <= 1 (replicas).") !=
        std::string::npos);
  const std::string key = two + ":4: failure.replicas = 1; ";
  CHECK(LoadError(two, {"failure.ps_lost=fail"}) ==
        key +
            "has no effect with failure.ps_lost = fail, which ends the run when a ps is lost. Try 0, or "
            "failure.ps_lost: wait.");
  LoadOptions options;
  options.one_process = true;
  CHECK(LoadError(two, {}, options) ==
        key +
            "has no effect with --in-process: all ps are threads of one process, and end with it. Try 0, or "
            "start without --in-process.");
  CHECK(LoadError(two, {"failure.replicas=0"}, options) == "");
  options = LoadOptions::WithoutCluster();
  options.ps = 1;
  CHECK(LoadError(two, {}, options) == key +
                                           "needs two ps or more, and the run has 1, by --ps: the next ps "
                                           "holds what a ps has. Try 0, or --ps 2.");
  const std::string one = of("\"a:1\"");
  CHECK(LoadError(one) == key +
                              "needs two ps or more, and the run has 1: the next ps holds what a ps has. Try "
                              "0, or name another ps in cluster.ps.");
  options.ps = 2;
  CHECK(LoadError(one, {}, options) == "");
  options.ps.reset();
  const std::string none = WriteTestFile("replicas.yaml", job);
  CHECK(LoadError(none, {}, options) == "");  // eval and others, which start no ps
  options.default_ps = 1;
  CHECK(LoadError(none, {}, options) ==
        key +
            "needs two ps or more, and the run has 1, that of dtrain local where cluster.ps is not set: the "
            "next ps holds what a ps has. Try 0, or --ps 2.");
}

TEST_CASE("load: rows are leased of data with an end that do not come through a pipe") {
  const std::string path = WriteTestFile(
      "leased.yaml",
      "model: {kind: linear, inputs: 2}\ndata: {split: dynamic, train: {format: csv, path: a.csv, "
      "label: y}}\ntrain: {steps: 5}\n");
  LoadOptions options;
  options.cluster_optional = true;
  options.default_workers = 1;
  CHECK(LoadError(path, {}, options) == "");
  const std::string key = path + ":2: data.split = dynamic; ";
  for (const char* pipe : {"-", "exec:cat a.csv"}) {
    CHECK(LoadError(path, {std::string("data.train.path=") + pipe}, options) ==
          key + "deals rows by their numbers in the data, and data.train comes through a pipe. Try shard.");
  }
  const std::string synthetic = WriteTestFile(
      "leased_synthetic.yaml",
      "model: {kind: linear, inputs: 2}\ndata: {split: dynamic, train: {format: synthetic, name: linear}}\n"
      "train: {steps: 5}\n");
  CHECK(LoadError(synthetic, {}, options) ==
        synthetic +
            ":2: data.split = dynamic; deals what is left of an epoch, and needs data with an end. Give "
            "data.train.rows, or try shard.");
  CHECK(LoadError(synthetic, {"data.train.rows=100"}, options) == "");
}

TEST_CASE(
    "load: a cluster from elsewhere takes the place of the file's, and its errors name where it is from") {
  const std::string path = WriteTestFile(
      "elsewhere.yaml",
      "cluster: {ps: [\"a:1\"], worker: [\"b:1\"]}\nmodel: {kind: linear, inputs: 2}\n"
      "data: {train: {format: synthetic, name: linear}}\ntrain: {steps: 5, mode: sync, aggregate: 2}\n");
  ClusterConfig given;
  LoadOptions options;
  options.cluster_source = "ELSEWHERE";
  options.new_cluster = [&](const ClusterConfig& cluster) {
    given = cluster;
    ClusterConfig other;
    other.ps = {"p:1"};
    other.worker = {"v:1", "w:1"};
    return other;
  };
  const Config config = LoadConfig(path, {}, options);
  CHECK(given.ps == std::vector<std::string>{"a:1"});
  CHECK(given.worker == std::vector<std::string>{"b:1"});
  CHECK(config.cluster.ps == std::vector<std::string>{"p:1"});
  CHECK(config.cluster.worker == std::vector<std::string>{"v:1", "w:1"});
  options.new_cluster = [](ClusterConfig cluster) {
    cluster.worker = {"a:1", "c:1"};
    return cluster;
  };
  CHECK(LoadError(path, {}, options) ==
        "ELSEWHERE: cluster.worker[0] = a:1; is the address of ps 0 too. Give each task its own.");
}

TEST_CASE(
    "load: digits in quotes name a column, and without them are its number; both come back from a dump") {
  const std::string path = testing::NewDirectory() + "/c.yaml";
  const auto load = [&](const std::string& data) {
    std::ofstream(path)
        << "model: {kind: softmax}\ntrain: {epochs: 1}\ncluster: {ps: [\"a:1\"], worker: [\"a:2\"]}\n"
        << "data:\n"
        << data;
    const Config config = Load(path);
    std::ofstream(path) << DumpConfig(config);
    CHECK(DumpConfig(Load(path)) == DumpConfig(config));
    return config.data;
  };
  const DataConfig data = load(
      "  train: {format: csv, path: t.csv, label: \"3\"}\n  ignore: [0, \"1\", id]\n  weight: \"2\"\n"
      "  categories: [\"\", x]\n");
  CHECK(data.train.label == "\"3\"");
  CHECK(data.weight == "\"2\"");
  CHECK(data.ignore == std::vector<std::string>{"0", "\"1\"", "id"});
  CHECK(data.categories == std::vector<std::string>{"", "x"});
  CHECK_FALSE(ColumnNumber(data.train.label));
  CHECK(ColumnNameIn(data.train.label) == "3");
  CHECK(load("  train: {format: csv, path: t.csv, label: 3}\n").train.label == "3");
  const DataConfig bare =
      load("  train: {format: csv, path: t.csv, label: \"3\", header: false}\n  ignore: [\"1\"]\n");
  CHECK(bare.train.label == "3");
  const std::string saved = testing::NewDirectory();
  std::ofstream(saved + "/manifest") << "";
  const auto saved_with = [&](const std::string& keys) {
    std::ofstream(saved + "/config.yaml")
        << "model: {kind: softmax}\ntrain: {epochs: 1}\ncluster: {ps: [\"a:1\"], worker: [\"a:2\"]}\n"
        << "data:\n  train: {format: csv, path: t.csv, label: \"3\"}\n"
        << keys;
    return Load(saved + "/config.yaml").data.train.label;
  };
  CHECK(saved_with("") == "3");
  CHECK(saved_with("  label_type: auto\n") == "\"3\"");
  CHECK(bare.ignore == std::vector<std::string>{"1"});
}

TEST_CASE("load: data.classes names each class once, in any order, and says how many a softmax has") {
  const auto file = [](const std::string& model, const std::string& classes) {
    return WriteTestFile(
        "classes.yaml",
        "model: " + model + "\ntrain: {epochs: 1}\ncluster: {ps: [\"a:1\"], worker: [\"a:2\"]}\n" +
            "data: {train: {format: csv, path: t.csv, label: y}, classes: " + classes + "}\n");
  };
  const auto error = [&](const std::string& model, const std::string& classes) {
    return LoadError(file(model, classes));
  };
  const Config config = Load(file("{kind: softmax}", "[10, \"9\", b a]"));
  CHECK(config.data.classes == std::vector<std::string>{"10", "9", "b a"});
  CHECK(config.model.outputs == 3);
  CHECK(error("{kind: logistic}", "[no, yes]").empty());
  CHECK(Load(file("{kind: softmax}", "[b, a]")).data.classes == std::vector<std::string>{"b", "a"});
  CHECK(error("{kind: softmax}", "[a, b, a]").find("must name each class once") != std::string::npos);
  CHECK(error("{kind: softmax, outputs: 3}", "[a, b]").find("has 2 names, and the model tells 3 classes") !=
        std::string::npos);
  CHECK(error("{kind: logistic}", "[a, b, c]").find("tells 2 classes") != std::string::npos);
  CHECK(error("{kind: linear}", "[a, b]").find("targets are real numbers") != std::string::npos);
}

TEST_CASE("load: how columns are written is said once for each, by a form or an example that is one") {
  const auto error = [&](const std::string& keys) {
    return LoadError(WriteTestFile(
        "written.yaml",
        "model: {kind: logistic}\ntrain: {epochs: 1}\ncluster: {ps: [\"a:1\"], worker: [\"a:2\"]}\n"
        "data: {train: {format: csv, path: t.csv, label: y}, " +
            keys + "}\n"));
  };
  const auto has = [&](const std::string& keys, const std::string& text) {
    CAPTURE(keys);
    CHECK(error(keys).find(text) != std::string::npos);
  };
  for (const char* form : {"%m/%d/%Y", "MM/DD/YYYY HH:MM", "yyyy.mm.dd"})
    has(std::string("dates: [\"d=") + form + "\"]", "names no form of dates; the forms are YYYY-MM-DD");
  has("dates: [\"d=MM/DD/YYYY\", \"d=DD/MM/YYYY\"]", "names its column for the second time");
  has("dates: [d, \"d=DD/MM/YYYY\"]", "names its column for the second time");
  has("number_format: [\"p=%.2f\"]", "shows no number");
  has("number_format: [\"p=$\"]", "shows no number");
  has("number_format: [\"p=1,234.50\", \"p=1.234,50\"]", "is the second format of the same numbers");
  has("missing: mean, missing_values: [\"p=\"]", "names no text");
  CHECK(error("dates: [a, \"b=DD/MM/YYYY\", \"x=y\"], number_format: [\"1,234.50\", \"p=12%\", \"q=% 12\"]")
            .empty());
}

// A job of wide_deep with this optimizer.
std::string PartsJob(const std::string& optimizer,
                     const std::string& model = "kind: wide_deep, hidden: [4]") {
  return WriteTestFile("parts.yaml", "cluster: {ps: [\"a:1\"], worker: [\"a:2\"]}\nmodel: {" + model +
                                         "}\ndata: {train: {format: criteo, path: a.txt}}\n"
                                         "train:\n  steps: 9\n  optimizer:\n" +
                                         optimizer);
}

TEST_CASE("load: a part has what it says, else what train.optimizer says, and a rate that is its kind's") {
  const Config config = LoadConfig(PartsJob("    kind: adagrad\n    l2: 0.5\n    clip_norm: 3\n"
                                            "    wide: {kind: ftrl, l1: 2, l2: 0.25}\n"
                                            "    deep: adam\n"),
                                   {}, {});
  const OptimizerConfig& wide = OptimizerOf(config.train, ModelHalf::kLinear).values;
  const OptimizerConfig& deep = OptimizerOf(config.train, ModelHalf::kOther).values;
  CHECK(wide.kind == OptimizerKind::kFtrl);
  CHECK(wide.l1 == 2);
  CHECK(wide.l2 == 0.25);
  CHECK(wide.learning_rate == 0.01);
  CHECK(deep.kind == OptimizerKind::kAdam);
  CHECK(deep.l1 == 0);
  CHECK(deep.l2 == 0.5);
  CHECK(deep.learning_rate == 0.001);
  CHECK(*config.train.optimizer.clip_norm == 3);
  const Config rate = LoadConfig(PartsJob("    learning_rate: 0.5\n    deep: adam\n"), {}, {});
  CHECK(OptimizerOf(rate.train, ModelHalf::kOther).values.learning_rate == 0.5);
  CHECK(OptimizerOf(rate.train, ModelHalf::kLinear).key == "train.optimizer");
  CHECK(OptimizersOf(rate.train).size() == 2);
  const std::string schedules =
      "    kind: adagrad\n    schedule: {kind: cosine, decay_steps: 9}\n"
      "    linear: {kind: sgd, schedule: {kind: exponential, decay_rate: 0.5, decay_steps: 5}}\n";
  CHECK_NOTHROW(LoadConfig(PartsJob(schedules, "kind: fm"), {}, {}));
  const Config fm = LoadConfig(PartsJob("    kind: adagrad\n    linear: {kind: ftrl}\n", "kind: fm"), {}, {});
  CHECK(OptimizersOf(fm.train)[0].key == "train.optimizer.linear");
  CHECK(OptimizersOf(fm.train)[1].key == "train.optimizer");
}

TEST_CASE("load: the keys of parts are dumped where they are given, and load to themselves") {
  CHECK(DumpConfig(LoadConfig(PartsJob("    kind: adam\n"), {}, {})).find(" wide:") == std::string::npos);
  const Config config = LoadConfig(PartsJob("    momentum: 0.5\n    schedule: {warmup_steps: 7}\n"
                                            "    wide: {kind: momentum}\n    deep: {kind: adam}\n"),
                                   {}, {});
  const std::string text = DumpConfig(config);
  CHECK(text.find(
            "    wide:\n      kind: momentum\n    deep:\n      kind: adam\n      learning_rate: 0.001\n") !=
        std::string::npos);
  const Config again = LoadConfig(WriteTestFile("again.yaml", text), {}, {});
  CHECK(DumpConfig(again) == text);
  CHECK(OptimizerOf(again.train, ModelHalf::kLinear).values.momentum == 0.5);
  CHECK(OptimizerOf(again.train, ModelHalf::kLinear).values.schedule.warmup_steps == 7);
  CHECK(OptimizerOf(again.train, ModelHalf::kOther).values.learning_rate == 0.001);
  // A flag takes the part away again, and gives it another kind.
  const Config none = LoadConfig(PartsJob("    wide: {kind: ftrl}\n"), {"train.optimizer.wide=null"}, {});
  CHECK(OptimizersOf(none.train).size() == 1);
  const Config other =
      LoadConfig(PartsJob("    wide: {kind: ftrl, beta: 1}\n"), {"train.optimizer.wide.kind=adam"}, {});
  CHECK(OptimizersOf(other.train)[0].values.kind == OptimizerKind::kAdam);
}

TEST_CASE("load: what a part cannot have is refused with its place, key and rule") {
  const auto says = [](const std::string& optimizer, const std::string& text,
                       const std::string& model = "kind: wide_deep, hidden: [4]") {
    CAPTURE(text);
    const std::string error = LoadError(PartsJob(optimizer, model));
    CAPTURE(error);
    CHECK(error.find(text) != std::string::npos);
  };
  says("    wide: {momentum: 0.5}\n",
       "parts.yaml:7: train.optimizer.wide.momentum = 0.5; has no effect with "
       "train.optimizer.wide.kind = sgd. Leave it out, or set train.optimizer.wide.kind to momentum.");
  says("    momentum: 0.5\n    wide: {kind: ftrl}\n",
       "parts.yaml:7: train.optimizer.momentum = 0.5; has no effect");
  says("    wide: {kind: ftrl}\n",
       "parts.yaml:7: train.optimizer.wide.kind = ftrl; has no effect with model.kind = fm. "
       "Leave it out, or set model.kind to wide_deep.",
       "kind: fm");
  says("    linear: {momentum: 1}\n", "train.optimizer.linear.momentum = 1; must be");
  says("    linear: {momentum: 0.5}\n",
       "has no effect with model.kind = wide_deep. Leave it out, or set model.kind to fm.");
  says("    deep: {clip_norm: 1}\n", "unknown key \"clip_norm\" in train.optimizer.deep; ");
  says("    deep: {schedule: {kind: cosine}}\n",
       "train.optimizer.deep.schedule.decay_steps is missing; "
       "train.optimizer.deep.schedule.kind = cosine needs it.");
  says("    wide: {kind: ftrl}\n    schedule: {warmup_steps: 3}\n",
       "parts.yaml:8: train.optimizer.schedule.warmup_steps = 3; is not for ftrl on rows of a table");
  says("    schedule: {kind: cosine, decay_steps: auto}\n    wide: {schedule: {warmup_steps: 3}}\n",
       "is auto for both parts of the model, and their warm-ups differ.");
  says("    wides: {kind: ftrl}\n", "unknown key \"wides\" in train.optimizer; did you mean \"wide\"?");
}

}  // namespace
}  // namespace dtrain
