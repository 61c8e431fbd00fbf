// Tables with the real binary: a first look, a config for a table, and tables that are made.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// Runs a line of bash in which `dtrain` is the program under test.
Done Shell(const std::string& line) {
  return Run({"-c", "dtrain() { cmd/dtrain \"$@\"; }\n" + line}, Program{"/bin/bash", {}});
}

TEST_CASE(
    "tables: check shows each column, every kind of fault and a config, and a table with faults is exit 0") {
  const std::string path = NewDirectory() + "/people.csv";
  std::string text = "id,age,plan,churned\n";
  for (int i = 0; i < 50; ++i) {
    text += fmt::format("{},{},{},{}\n", i + 1, i == 9 ? "NA" : "4" + std::to_string(i % 7),
                        i % 3 ? "pro" : "free", i % 2 ? "yes" : "no");
  }
  WriteFile(path, text + "51,old,pro,yes\n52,40,pro\n");
  const Done done = Run({"check", path});
  CAPTURE(done.output);
  CHECK(done.code == 0);
  CHECK(done.error.empty());
  CHECK(Contains(done.output, path + ": 51 rows of 4 columns, separated by commas; the first line names"));
  CHECK(Contains(done.output, "  age      whole number        1         7  40 to 46\n"));
  CHECK(Contains(done.output, path + ":52:4: age = old; must be a number (1 value)\n"));
  CHECK(Contains(done.output, path + ":53:1: 3 fields; must be 4 (1 row)\n"));
  CHECK(Contains(done.output, "  id counts the rows: an index\n"));
  CHECK(Contains(done.output, "label: churned, because its name says so; another one: --label NAME\n"));
  CHECK(Contains(done.output, "\nmodel: {kind: logistic}    # churned: two classes\n"));
  CHECK(
      Contains(done.output, "  ignore:\n    - id    # an index: it counts the rows\n  categories: [plan]\n"));
  CHECK(Contains(done.output, "  bad_rows: skip "));
}

TEST_CASE("tables: init writes a config with which the next command trains and eval evaluates") {
  const std::string directory = NewDirectory(), config = directory + "/flowers.yaml";
  const Done init = Run({"init", "configs/data/flowers.csv", "--label", "species", "--out", config});
  CAPTURE(init.output);
  CAPTURE(init.error);
  REQUIRE(init.code == 0);
  CHECK(Contains(init.output, "label: species\n"));
  CHECK(Contains(init.output, fmt::format("wrote {0}. Next: dtrain local {0}\n", config)));
  const std::string yaml = FileContent(config);
  CAPTURE(yaml);
  CHECK(Contains(yaml, "model: {kind: softmax, outputs: 3}"));
  const Json result = RunLocal(config, {"--set", "checkpoint.dir=" + directory + "/run"});
  REQUIRE_FALSE(result.is_null());
  const Done eval = Run({"eval", directory + "/run"});
  CAPTURE(eval.error);
  CHECK(eval.code == 0);
  CHECK(Contains(eval.output, "accuracy"));
}

TEST_CASE(
    "tables: one with an id, dates, texts, gaps and a bad row trains, is evaluated and predicted as it is") {
  const std::string directory = NewDirectory(), path = directory + "/customers.csv",
                    config = directory + "/c.yaml";
  std::string text = "customer_id;signup;plan;age;churned\n";
  for (int i = 0; i < 600; ++i) {
    const int plan = i * 7 % 3;
    text += fmt::format("C{:05d};2024-{:02d}-11;{};{};{}\n", i * 31 % 997, i % 12 + 1,
                        plan == 0   ? "free"
                        : plan == 1 ? "pro"
                                    : "team",
                        i % 9 == 0 ? "" : std::to_string(20 + i * 13 % 50), plan == 0 ? "yes" : "no");
  }
  WriteFile(path, text + "C99999;2024-01-11;pro;old;no\n");
  const Done init = Run({"init", path, "--label", "churned", "--out", config});
  CAPTURE(init.output);
  REQUIRE(init.code == 0);
  CAPTURE(FileContent(config));
  const Json result = RunLocal(config, {"--set", "checkpoint.dir=" + directory + "/run"});
  REQUIRE_FALSE(result.is_null());
  const Done eval = Run({"eval", directory + "/run"});
  CAPTURE(eval.error);
  CHECK(eval.code == 0);
  CHECK(Contains(eval.output, "accuracy 1.0000"));
  WriteFile(directory + "/new.csv", "age,plan,signup\n33,free,2024-05-11\n,gold,2024-06-11\n");
  const Done predict = Run({"predict", directory + "/run", "--data", directory + "/new.csv"});
  CAPTURE(predict.error);
  CHECK(predict.code == 0);
  CHECK(Contains(predict.output, "\nyes,"));
}

TEST_CASE(
    "tables: markers of gaps, money and dates of another form are read alike by init, local, eval and "
    "predict") {
  const std::string directory = NewDirectory(), path = directory + "/t.csv", config = directory + "/c.yaml";
  std::string text = "seen,spent,dose,price\n";
  for (int i = 0; i < 300; ++i) {
    text += fmt::format("{:02}/{:02}/2024 9:30 PM,\"$1,{:03}.50\",{},${}\n", 1 + i % 12, 1 + i % 28,
                        i % 50 * 10, i % 7 == 2 ? "\\N" : std::to_string(i % 11), 10 + i % 50);
  }
  WriteFile(path, text);
  const Done init = Run({"init", path, "--out", config});
  CAPTURE(init.output);
  REQUIRE(init.code == 0);
  CHECK(Contains(init.output, "seen: 01/01/2024 9:30 PM and the like are dates, written as MM/DD/YYYY"));
  CHECK(Contains(init.output, "dose: \\N in 43 rows is taken for a missing value"));
  CHECK(Contains(init.output, "label: price, because it is the last column"));
  const Json result = RunLocal(config, {"--set", "checkpoint.dir=" + directory + "/run"});
  REQUIRE_FALSE(result.is_null());
  CHECK(result.at("workers").at(0).at("rows_skipped") == 0);
  const Done eval = Run({"eval", directory + "/run", "--data", path});
  CAPTURE(eval.error);
  CHECK(eval.code == 0);
  CHECK(Contains(eval.output, " of 300 rows"));
  const Done predict = Run({"predict", directory + "/run", "--data", path});
  CAPTURE(predict.error);
  CHECK(predict.code == 0);
  CHECK(std::count(predict.output.begin(), predict.output.end(), '\n') == 301);
  CHECK_FALSE(Contains(predict.output, "$"));
}

// Runs init and local with two workers. Returns what init said, at most 12 lines, and the result.
std::pair<std::string, Json> InitAndTrain(const std::string& table, const std::string& config,
                                          const std::vector<std::string>& label = {}) {
  std::vector<std::string> words = {"init", table, "--out", config};
  words.insert(words.end(), label.begin(), label.end());
  const Done init = Run(words);
  CAPTURE(init.error);
  CAPTURE(init.output);
  REQUIRE(init.code == 0);
  CHECK(std::count(init.output.begin(), init.output.end(), '\n') <= 12);
  const Json result = RunLocal(config, {"--set", "checkpoint.dir=" + config + ".run"});
  REQUIRE_FALSE(result.is_null());
  return {init.output, result};
}

TEST_CASE("tables: the first screen of init tells of a rare class, of three, and of a skewed target") {
  const std::string directory = NewDirectory(), path = directory + "/t.csv";
  std::string text = "visits,day,plan,kind,spent,bought\n";
  for (int i = 0; i < 400; ++i) {
    const int visits = i * 37 % 50;
    text += fmt::format("{},2024-{:02}-{:02},{},{},{:.2f},{}\n", visits, 1 + i % 12, 1 + i % 28,
                        i % 4 == 0 ? "Pro" : "pro",
                        visits < 10   ? "low"
                        : visits < 30 ? "mid"
                                      : "high",
                        visits == 49 ? 50000.0 : visits * 1.5, visits >= 46 ? 1 : 0);
  }
  WriteFile(path, text);
  const auto bought = InitAndTrain(path, directory + "/b.yaml", {"--label", "bought"}).first;
  CAPTURE(bought);
  CHECK(Contains(bought, "the rarest, 1, is 8.0 % of the rows; always \"0\" is right in 92.0 %"));
  CHECK(Contains(bought, "dates, which become days since 1970: day"));
  CHECK(Contains(bought, "plan has pro/Pro"));
  const auto kind = InitAndTrain(path, directory + "/k.yaml", {"--label", "kind"}).first;
  CHECK(Contains(kind, "model: softmax; kind has 3 classes; the rarest, low, is "));
  const auto spent = InitAndTrain(path, directory + "/s.yaml", {"--label", "spent"}).first;
  CHECK(Contains(spent, "skewed (skewness "));
  CHECK(Contains(spent, "docs/data.md, A skewed target"));
}

TEST_CASE("tables: init writes the config for libsvm, vw and criteo, and labels -1 and 1 stay so") {
  const std::string directory = NewDirectory();
  for (const std::string format : {"libsvm", "vw", "criteo"}) {
    CAPTURE(format);
    const std::string path = directory + "/rows." + format, config = directory + "/" + format + ".yaml";
    REQUIRE(Run({"synth", format, "--rows", "500", "--out", path}).code == 0);
    if (format != "criteo") {
      std::string rows = FileContent(path);
      for (size_t at = 0; at < rows.size(); at = rows.find('\n', at) + 1) {
        if (rows[at] == '0') rows.replace(at, 1, "-1");
      }
      WriteFile(path, rows);
    }
    InitAndTrain(path, config);
    CHECK(Contains(FileContent(config), "{format: " + format + ", path: "));
    const Done eval = Run({"eval", config + ".run"}),
               predict = Run({"predict", config + ".run", "--data", path});
    CAPTURE(eval.error);
    CHECK(Contains(eval.output, format == "criteo" ? "\n0 " : "\n-1 "));
    CHECK(Contains(predict.output, format == "criteo" ? "probability_0," : "probability_-1,probability_1\n"));
  }
}

TEST_CASE(
    "tables: init reads weights of libsvm's rows and leaves out rows of vw without a label, which are told") {
  const std::string directory = NewDirectory();
  std::string weighted, some;
  for (int i = 0; i < 60; ++i) {
    weighted += fmt::format("{}:{} {}:1 {}:0.5\n", i % 2, i % 3 + 1, 1 + i % 2, 3 + i % 4);
    some += i % 4 == 3 ? fmt::format("|f a{}\n", i % 2) : fmt::format("{} |f a{} b\n", i % 2 ? 1 : -1, i % 2);
  }
  WriteFile(directory + "/w.svm", weighted);
  WriteFile(directory + "/s.vw", some);
  InitAndTrain(directory + "/w.svm", directory + "/w.yaml");
  CHECK(Contains(FileContent(directory + "/w.yaml"), "  weight: label"));
  WriteFile(directory + "/new.svm", "0 1:1 9:1\n1:3 2:1\n-1 2:1 8:1\n");
  const Done answers = Run({"predict", directory + "/w.yaml.run", "--data", directory + "/new.svm"});
  CHECK(answers.code == 0);
  CHECK(std::count(answers.output.begin(), answers.output.end(), '\n') == 4);
  CHECK(Contains(answers.error, "2 features that the model has not"));
  const Json result = InitAndTrain(directory + "/s.vw", directory + "/s.yaml").second;
  CHECK_FALSE(Contains(FileContent(directory + "/s.yaml"), "bad_rows"));
  CHECK(result["workers"].at(0).at("rows_dropped") == 15);
  CHECK(Contains(Run({"check", directory + "/s.yaml"}).error, "15 rows without a label"));
  const Done all = Run({"predict", directory + "/s.yaml.run", "--data", directory + "/s.vw"});
  CHECK(std::count(all.output.begin(), all.output.end(), '\n') == 61);
}

TEST_CASE("tables: classes whose numbers count from 1 are names for every task of a run") {
  const std::string directory = NewDirectory(), config = directory + "/c.yaml";
  std::string rows = "x,y\n";
  for (int i = 0; i < 60; ++i) rows += fmt::format("{},{}\n", i, 1 + i % 3);
  WriteFile(directory + "/rows.csv", rows);
  WriteFile(config,
            "model: {kind: softmax}\ndata: {train: {format: csv, path: rows.csv, label: y}}\n"
            "train: {batch_size: 10, epochs: 1, optimizer: {kind: sgd, learning_rate: 0.1}}\n");
  for (const std::vector<std::string>& more : {std::vector<std::string>(), {"--in-process"}})
    CHECK(RunLocal(config, more).is_object());
}

TEST_CASE("tables: decay_steps: auto is the run's updates in every mode and number of epochs") {
  const std::string directory = NewDirectory(), path = directory + "/linear.csv",
                    config = directory + "/l.yaml";
  REQUIRE(Run({"synth", "linear", "--rows", "330", "--out", path}).code == 0);
  WriteFile(
      config,
      fmt::format("model: linear\ndata: {{train: {{format: csv, path: {}, label: y}}, validation: 0.1}}\n"
                  "train:\n  batch_size: 16\n  optimizer:\n    learning_rate: 0.01\n    schedule: {{kind: "
                  "cosine, decay_steps: auto, warmup_steps: 5}}\n",
                  path));
  for (const char* mode : {"async", "sync", "ssp"}) {
    for (const char* length : {"train.epochs=1", "train.epochs=3", "train.steps=17"}) {
      const std::string run = fmt::format("{}/{}-{}", directory, mode, length);
      const Json result = RunLocal(
          config, {"--set", fmt::format("train.mode={}", mode), "--set", length, "--set", "log.dir=" + run});
      REQUIRE_FALSE(result.is_null());
      const int64_t steps = result.at("global_step").get<int64_t>();
      CAPTURE(run);
      CHECK(Contains(FileContent(run + "/ps-0.log"), fmt::format("decay_steps: auto is {}\n", steps - 5)));
    }
  }
  const Done early =
      Run({"check", config, "--set", "train.epochs=9", "--set", "train.optimizer.schedule.decay_steps=9"});
  CHECK(Contains(early.output + early.error,
                 "the learning rate is at its end, 0, after 14 of the run's 171 updates. Set "
                 "it to auto, or to 166."));
  const Done none = Run(
      {"check", config, "--set", "data.train={format: csv, path: '-', label: y}", "--set", "train.epochs=1"});
  CHECK(none.code == 2);
  CHECK(Contains(none.error, "Set train.steps, or give a number."));
}

TEST_CASE(
    "tables: parts with other quotes and the header again are initialised, trained on, evaluated and "
    "predicted") {
  const std::string directory = NewDirectory(), parts = directory + "/out", config = directory + "/t.yaml";
  std::filesystem::create_directories(parts);
  for (int part = 0; part < 3; ++part) {
    std::string text = "tilt,side,leak\n";
    for (int i = 0; i < 40; ++i) {
      text += fmt::format("{},\"{} \\\"x\\\", old\",{}\n", i * 7 % 11, i % 3 ? "north" : "south",
                          i % 3 ? "yes" : "no");
      if (i == 25) text += "tilt,side,leak\n\n";
    }
    WriteFile(fmt::format("{}/part-{}", parts, part), part == 1 ? "" : text);
  }
  WriteFile(parts + "/_SUCCESS", "x");
  const Done init = Run({"init", parts, "--out", config});
  CAPTURE(init.output);
  CAPTURE(init.error);
  REQUIRE(init.code == 0);
  CHECK(Contains(init.output, "part-0:28:1: the header again"));
  CHECK(Contains(FileContent(config), "  quotes: backslash\n"));
  const Json result = RunLocal(config, {"--set", "checkpoint.dir=" + directory + "/run"});
  REQUIRE_FALSE(result.is_null());
  const Done eval = Run({"eval", directory + "/run"});
  CHECK(eval.code == 0);
  const Done predict = Run({"predict", directory + "/run", "--data", parts});
  CAPTURE(predict.error);
  CHECK(predict.code == 0);
  CHECK(std::count(predict.output.begin(), predict.output.end(), '\n') == 81);
  CHECK(Contains(predict.error, "part-2:28:1: the header again, which is no row"));
}

TEST_CASE("tables: a packed table, and one of which most rows are faulty, are refused with what to do") {
  const std::string directory = NewDirectory(), packed = directory + "/t.bz2", faulty = directory + "/f.csv";
  WriteFile(packed, "BZh91AY&SY...");
  WriteFile(faulty, "a,b,y\n1,2\n3,4\n5,6,1\n");
  for (const char* command : {"init", "check"}) {
    CAPTURE(command);
    const Done done = Run({command, packed});
    CHECK(done.code == 2);
    CHECK(Contains(done.error, "is packed with bzip2"));
    CHECK(Contains(done.error, "\"exec:bzcat " + packed + "\""));
    CHECK(Contains(Run({command, faulty}).error, "2 of 3 rows cannot be read:"));
  }
}

TEST_CASE("tables: init replaces no file, and with --out - prints the config alone") {
  const std::string directory = NewDirectory(), config = directory + "/own.yaml";
  WriteFile(config, "mine");
  const Done refused = Run({"init", "configs/data/flowers.csv", "--out", config});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error, config + ": is there already, and init replaces no file."));
  CHECK(FileContent(config) == "mine");
  const Done missing = Run({"init", directory + "/no.csv.gz", "--out", config});
  CHECK(missing.code == 2);
  CHECK(Contains(missing.error, directory + "/no.csv.gz: cannot be opened: No such file"));
  const Done printed = Run({"init", "configs/data/flowers.csv", "--out", "-"});
  CHECK(printed.code == 0);
  CHECK(printed.output.find("# Made by dtrain from ") == 0);
  CHECK(Contains(printed.output, "path: configs/data/flowers.csv, label: species"));
  CHECK(Contains(printed.error, "label: species"));
}

TEST_CASE("tables: init refuses what comes through a pipe, and check proposes no config for it") {
  const std::string directory = NewDirectory(), config = directory + "/c.yaml";
  const Done command = Run({"init", "exec:cat configs/data/flowers.csv", "--out", config});
  CHECK(command.code == 2);
  CHECK(Contains(command.error, "Save them to one: cat configs/data/flowers.csv > FILE"));
  CHECK(Run({"init", "-", "--out", config}).code == 2);
  const Done check = Run({"check", "exec:cat configs/data/flowers.csv"});
  CHECK(check.code == 0);
  CHECK(Contains(check.output, "Of rows in a file, dtrain init FILE writes a config"));
}

TEST_CASE("tables: a label that is none and a table that is not there are exit 2") {
  const Done label = Run({"init", "configs/data/flowers.csv", "--label", "spezies", "--out", "-"});
  CHECK(label.code == 2);
  CHECK(Contains(label.error, "--label spezies: configs/data/flowers.csv has no such column"));
  CHECK(Contains(label.error, "Did you mean species?"));
  const Done table = Run({"check", "/not/there.csv"});
  CHECK(table.code == 2);
  CHECK(Contains(table.error, "/not/there.csv: cannot be opened"));
}

TEST_CASE("tables: a linear table that was made is learnt down to its noise") {
  const std::string directory = NewDirectory(), path = directory + "/linear.csv",
                    config = directory + "/l.yaml";
  REQUIRE(Run({"synth", "linear", "--rows", "3000", "--features", "3", "--out", path}).code == 0);
  REQUIRE(Run({"init", path, "--out", config}).code == 0);
  const Json result = RunLocal(config, {"--set", "checkpoint.dir=" + directory + "/run"});
  REQUIRE_FALSE(result.is_null());
  CAPTURE(result.dump());
  CHECK(result.at("final_loss").get<double>() < 0.14);  // the noise alone is 0.33^2 = 0.109
}

TEST_CASE("tables: synth ends quietly when its reader goes away, and with its reason on a full disk") {
  const Done gone = Shell("dtrain synth criteo --rows 1000000000 | head -n 1; echo \"rc ${PIPESTATUS[0]}\"");
  CAPTURE(gone.output);
  CHECK(gone.error.empty());
  CHECK(Contains(gone.output, "\nrc 0\n"));
  const Done full = Run({"synth", "linear", "--rows", "100", "--out", "/dev/full"});
  CHECK(full.code == 1);
  CHECK(Contains(full.error, "--out /dev/full: cannot be written: No space left on device"));
}

TEST_CASE("tables: synth makes the same rows again from any first row on, and tells the truth when asked") {
  const Done all = Run({"synth", "criteo", "--rows", "300", "--seed", "5"});
  const Done begin = Run({"synth", "criteo", "--rows", "100", "--seed", "5"});
  const Done rest = Run({"synth", "criteo", "--rows", "200", "--first", "100", "--seed", "5", "--truth"});
  CHECK(all.output == begin.output + rest.output);
  CHECK(begin.error.empty());
  CHECK(rest.error.find("200 rows, ") == 0);
  CHECK(Contains(rest.error, "log loss"));
  CHECK(Run({"synth", "criteo", "--rows", "1", "--header"}).output.find("label,I1,I2,") == 0);
  CHECK(Run({"synth", "digits", "--rows", "2"}).output.find("label,p0,p1,") == 0);
}

TEST_CASE("tables: init takes a test file, and local and eval measure on it") {
  const std::string directory = NewDirectory(), config = directory + "/adult.yaml";
  std::string train, test = "|1x3 Cross validator\n";
  for (int i = 0; i < 300; ++i) {
    const auto row = [](int n, const char* dot) {
      return fmt::format("{}, {}, {}{}\n", 20 + n * 7 % 40,
                         n % 11 == 0  ? "?"
                         : n % 3 == 0 ? "Private"
                                      : "State-gov",
                         n % 3 == 0 ? ">50K" : "<=50K", dot);
    };
    train += row(i, "");
    if (i < 90) test += row(i + 5, ".");
  }
  WriteFile(directory + "/adult.data", train);
  WriteFile(directory + "/adult.test", test);
  const Done init =
      Run({"init", directory + "/adult.data", "--test", directory + "/adult.test", "--out", config});
  CAPTURE(init.error);
  REQUIRE(init.code == 0);
  const Json result = RunLocal(config, {"--set", "checkpoint.dir=" + directory + "/run"});
  REQUIRE_FALSE(result.is_null());
  REQUIRE(result["test_accuracy"].is_number());
  CHECK(result["test_accuracy"].get<double>() > 0.9);
  const Done eval = Run({"eval", directory + "/run", "--json"});
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  const Json measured = Json::Parse(eval.output);
  CHECK(measured["rows"] == 90);
  CHECK(measured["accuracy"] == result["test_accuracy"]);
}

}  // namespace
}  // namespace dtrain::testing
