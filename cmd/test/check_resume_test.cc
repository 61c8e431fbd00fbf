// dtrain check of a job that goes on from a named checkpoint.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

std::string Resume(const std::string& path) { return "checkpoint.resume=" + path; }

TEST_CASE("check: a checkpoint.resume that is not there is an error, in the words of the run") {
  const LocalJob job(LinearJob(10));
  const std::string path = job.directory + "/step-000000004";
  Process check({"check", "--config", job.config, "--set", Resume(path)});
  CHECK(RunToEnd(check) == 2);
  CHECK(Contains(check.standard_error(), "dtrain: " + path + ": there is no such directory. dtrain inspect"));
  const auto run = job.Start({"--set", Resume(path)});
  CHECK(RunToEnd(*run) == 2);
  CHECK(Contains(run->standard_error(), path + ": there is no such directory. dtrain inspect"));
}

TEST_CASE("check: where ps 0 is on another machine, that checkpoint.resume is not here is a warning") {
  const LocalJob job(LinearJob(10));
  Process check({"check", "--config", job.config, "--set", Resume("no/such"), "--set",
                 "cluster.ps=[\"203.0.113.1:9001\"]", "--set", "cluster.worker=[\"127.0.0.1:9001\"]", "--set",
                 "security.insecure=true"});
  CHECK(RunToEnd(check) == 0);
  CHECK(Contains(
      check.standard_error(),
      "dtrain: warning: checkpoint.resume, as this machine sees it: no/such: there is no such directory."));
  CHECK(Contains(check.standard_error(), "ps 0 reads it where it runs."));
}

TEST_CASE("check: a good checkpoint.resume is good, and one of another model or a damaged one is not") {
  const LocalJob job(LinearJob(10));
  REQUIRE(RunLocal(job.config, {"--in-process", "--set", "checkpoint.dir=" + job.directory + "/ckpt"})
              .is_object());
  const std::string path = job.directory + "/ckpt/step-000000010";
  const auto check = [&](const std::string& more, std::string* said) {
    Process process({"check", "--config", job.config, "--set", Resume(path), "--set", more});
    const int code = RunToEnd(process);
    *said = process.standard_error();
    return code;
  };
  std::string said;
  CHECK(check("train.steps=20", &said) == 0);
  CHECK(said == "");
  CHECK(check("train.optimizer.kind=adam", &said) == 2);
  CHECK(Contains(said, path));
  std::filesystem::resize_file(path + "/manifest", 20);
  CHECK(check("train.steps=20", &said) == 2);
  CHECK(Contains(said, "manifest is damaged"));
}

TEST_CASE("check: says where the checkpoint's data.scale is not that of the rows") {
  const LocalJob job(
      "model: {kind: logistic}\ntrain: {batch_size: 2, steps: 2}\ncheckpoint: {dir: ckpt}\n"
      "data: {scale: unit, train: {format: csv, path: rows.csv, label: y}}\n");
  const std::string rows = "y,a\n0,1\n1,2\n0,3\n1,4\n";
  const std::string path = job.directory + "/rows.csv";
  const std::string set = "checkpoint.dir=" + job.directory + "/ckpt";
  std::ofstream(path) << rows;
  const auto check = [&] {
    Process process({"check", "--config", job.config, "--set", set, "--set", "train.steps=4"});
    CHECK(RunToEnd(process) == 0);
    return process.standard_output();
  };
  REQUIRE(RunLocal(job.config, {"--set", set}).is_object());
  CHECK(Contains(check(), "/step-000000002, at global step 2\n"));
  std::ofstream(path) << rows << "0,50\n";
  CHECK(Contains(check(), ", at global step 2, with its data.scale: that of these rows is another one\n"));
}

TEST_CASE(
    "check: tells which checkpoint of checkpoint.dir the run would go on from, and refuses another model's") {
  const LocalJob job(LinearJob(10));
  const std::string dir = job.directory + "/ckpt";
  const auto check = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"check", "--config", job.config, "--set", "checkpoint.dir=" + dir};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto process = std::make_unique<Process>(arguments);
    RunToEnd(*process);
    return process;
  };
  const auto none = check({});
  CHECK(Contains(none->standard_output(), "\nstart: anew, since " + dir + " has no checkpoint\n"));
  CHECK_FALSE(std::filesystem::exists(dir));
  REQUIRE(RunLocal(job.config, {"--in-process", "--set", "checkpoint.dir=" + dir}).is_object());
  const std::string path = dir + "/step-000000010";
  CHECK(Contains(check({})->standard_output(), "\nstart: from " + path + ", at global step 10\n"));
  CHECK_FALSE(Contains(check({"--set", "checkpoint.resume=never"})->standard_output(), "start: "));
  const std::vector<std::string> adam = {"--set", "train.optimizer.kind=adam"};
  const auto other = check(adam);
  CHECK(RunToEnd(*other) == 2);
  CHECK(Contains(other->standard_error(), "dtrain: " + path + ": another optimizer: "));
  std::vector<std::string> far = adam;
  for (const char* set : {"cluster.ps=[\"203.0.113.1:9001\"]", "cluster.worker=[\"203.0.113.2:9001\"]",
                          "security.insecure=true"}) {
    far.insert(far.end(), {"--set", set});
  }
  const auto elsewhere = check(far);
  CHECK(RunToEnd(*elsewhere) == 0);
  CHECK_FALSE(Contains(elsewhere->standard_output(), "start: "));
  CHECK(Contains(elsewhere->standard_error(), "warning: checkpoint.dir, as this machine sees it: " + path));
  std::filesystem::resize_file(path + "/manifest", 20);
  const auto damaged = check({});
  CHECK(RunToEnd(*damaged) == 0);
  CHECK(Contains(damaged->standard_error(), "warning: " + dir + ": step-000000010: manifest is damaged"));
  CHECK(Contains(damaged->standard_output(), "\nstart: from " + dir + "/step-000000000, at global step 0\n"));
  std::filesystem::resize_file(dir + "/step-000000000/manifest", 20);
  const auto none_left = check({});
  CHECK(RunToEnd(*none_left) == 2);
  CHECK(Contains(none_left->standard_error(), dir + ": none of its checkpoints is complete (see above)"));
}

TEST_CASE(
    "check: what the weights of a checkpoint mean is the run's, too: names and order of columns, classes") {
  const LocalJob job(
      "model: {kind: mlp, hidden: [3], outputs: 2}\n"
      "data: {train: {format: csv, path: PATH, label: y}, scale: standard}\n"
      "train: {batch_size: 2, epochs: 2, optimizer: {learning_rate: 0.1}}\n");
  const auto data = [&](const std::string& name, const std::string& text) {
    WriteFile(job.directory + "/" + name, text);
    return "data.train.path=" + job.directory + "/" + name;
  };
  const std::string dir = "checkpoint.dir=" + job.directory + "/ckpt";
  const std::string rows = "1,9,no\n2,8,yes\n3,7,no\n4,5,yes\n";
  const std::string trained = data("trained.csv", "a,b,y\n" + rows);
  REQUIRE(RunToEnd(*job.Start({"--set", dir, "--set", trained})) == 0);
  const auto said = [&](std::string* of_run, const std::string& set, const std::string& more) {
    const std::vector<std::string> flags = {"--config", job.config, "--set",          dir,     "--set",
                                            set,        "--set",    "train.epochs=3", "--set", more};
    std::string of_check;
    for (const char* command : {"check", "local"}) {
      std::vector<std::string> arguments = flags;
      arguments.insert(arguments.begin(), command);
      Process process(arguments);
      CHECK(RunToEnd(process) == 2);
      std::string& text = *command == 'c' ? of_check : *of_run;
      text = process.standard_error();
    }
    return of_check;
  };
  const std::string same = "log.level=info";
  const struct {
    std::string set, more, expected;
  } cases[] = {
      {data("order.csv", "b,a,y\n" + rows), same,
       "feature 0 is \"a\" in the checkpoint and \"b\" in data.train"},
      {data("classes.csv", "a,b,y\n1,2,yes\n3,4,zno\n5,7,yes\n6,6,zno\n"), same,
       "class 0 is \"no\" in the checkpoint and \"yes\" in data.train"},
      {data("numbers.csv", "a,b,y\n1,2,0\n3,4,1\n5,7,0\n6,6,1\n"), same, "its classes have names"},
      {trained, "data.scale=unit", "data.scale = unit; must be standard"},
      {trained, "model.activation=tanh", "model.activation = tanh; must be "},
  };
  for (const auto& [set, more, expected] : cases) {
    CAPTURE(expected);
    std::string of_run;
    CHECK(Contains(said(&of_run, set, more), expected));
    CHECK(Contains(of_run, expected));
    CHECK(Contains(of_run, "checkpoint.resume: never"));
  }
  // More rows of the same are no other model.
  const std::string more_rows = data("more.csv", "a,b,y\n" + rows + "5,5,no\n6,1,yes\n");
  CHECK(RunToEnd(*job.Start({"--set", dir, "--set", more_rows, "--set", "train.epochs=3"})) == 0);
}

}  // namespace
}  // namespace dtrain::testing
