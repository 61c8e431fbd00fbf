// dtrain check of a job that goes on from a named checkpoint.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// `dtrain check` of the job with these settings, and of local's with them.
Done Check(const LocalJob& job, const std::vector<std::string>& sets, const char* command = "check") {
  std::vector<std::string> arguments = {command, "--config", job.config};
  for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
  return Run(arguments);
}

const std::vector<std::string> kElsewhere = {"cluster.ps=[\"203.0.113.1:9001\"]",
                                             "cluster.worker=[\"127.0.0.1:9001\"]", "security.insecure=true"};

TEST_CASE(
    "check: a checkpoint.resume that is not there is an error, in the words of the run; elsewhere a "
    "warning") {
  const LocalJob job(LinearJob(10));
  const std::string path = job.directory + "/step-000000004", resume = "checkpoint.resume=" + path;
  for (const char* command : {"check", "local"}) {
    const Done here = Check(job, {resume}, command);
    CHECK(here.code == 2);
    CHECK(Contains(here.error, path + ": there is no such directory. dtrain inspect"));
  }
  std::vector<std::string> sets = kElsewhere;
  sets.push_back(resume);
  const Done there = Check(job, sets);
  CHECK(there.code == 0);
  CHECK(Contains(there.error, "dtrain: warning: checkpoint.resume, as this machine sees it: " + path +
                                  ": there is no such directory."));
  CHECK(Contains(there.error, "ps 0 reads it where it runs."));
}

TEST_CASE("check: says that rows are read as the checkpoint has them, and tells what it has not seen") {
  const LocalJob job(
      "model: {kind: logistic}\ntrain: {batch_size: 2, steps: 2}\ncheckpoint: {dir: ckpt}\n"
      "data: {scale: unit, categories: [c], train: {format: csv, path: rows.csv, label: y}}\n");
  const std::string rows = "y,a,c\n0,1,p\n1,2,q\n0,3,p\n1,4,q\n";
  const std::string path = job.directory + "/rows.csv";
  const std::string set = "checkpoint.dir=" + job.directory + "/ckpt";
  std::ofstream(path) << rows;
  const auto check = [&] {
    const Done done = Check(job, {set, "train.steps=4"});
    CAPTURE(done.error);
    CHECK(done.code == 0);
    return done;
  };
  REQUIRE(RunLocal(job.config, {"--set", set}).is_object());
  const std::string as_saved =
      ", at global step 2, and reads its rows with its categories, fill values and scale\n";
  CHECK(Contains(check().output, as_saved));
  std::ofstream(path) << rows << "0,50,r\n1,7,q\n1,3,r\n";
  CHECK(Contains(check().output, as_saved));
  const std::string told =
      "data.train: 2 unseen texts in data.categories, each taken as other or as none of the features: c in 2 "
      "rows, most often \"r\" (2)";
  CHECK(Contains(check().error, told));
  // Every task of a cluster of processes reads them so.
  const std::vector<std::string> cluster = {"local",    job.config, "--ps", "2",     "--workers",
                                            "2",        "--set",    set,    "--set", "train.steps=6",
                                            "--result", job.result};
  const Done done = Run(cluster);
  CAPTURE(done.error);
  CHECK(done.code == 0);
  CHECK(Contains(done.error, told));
  CHECK(ReadResult(job.result).at("global_step") == 6);
}

TEST_CASE(
    "check: tells which checkpoint of checkpoint.dir the run would go on from, and refuses another model's") {
  const LocalJob job(LinearJob(10));
  const std::string dir = job.directory + "/ckpt", path = dir + "/step-000000010",
                    set = "checkpoint.dir=" + dir;
  const std::string named = "checkpoint.resume=" + path, adam = "train.optimizer.kind=adam";
  CHECK(Contains(Check(job, {set}).output, "\nstart: anew, since " + dir + " has no checkpoint\n"));
  CHECK_FALSE(std::filesystem::exists(dir));
  REQUIRE(RunLocal(job.config, {"--in-process", "--set", set}).is_object());
  CHECK(Contains(Check(job, {set}).output, "\nstart: from " + path + ", at global step 10\n"));
  const Done good = Check(job, {named, "train.steps=20"});
  CHECK(good.code == 0);
  CHECK(good.error == "");
  CHECK_FALSE(Contains(Check(job, {set, "checkpoint.resume=never"}).output, "start: "));
  for (const std::string& from : {set, named}) {
    const Done other = Check(job, {from, adam});
    CHECK(other.code == 2);
    CHECK(Contains(other.error, "dtrain: " + path + ": another optimizer: "));
  }
  std::vector<std::string> far = kElsewhere;
  far.insert(far.end(), {set, adam});
  const Done elsewhere = Check(job, far);
  CHECK(elsewhere.code == 0);
  CHECK_FALSE(Contains(elsewhere.output, "start: "));
  CHECK(Contains(elsewhere.error, "warning: checkpoint.dir, as this machine sees it: " + path));
  std::filesystem::resize_file(path + "/manifest", 20);
  const Done by_name = Check(job, {named});
  CHECK(by_name.code == 2);
  CHECK(Contains(by_name.error, "manifest is damaged"));
  const Done damaged = Check(job, {set});
  CHECK(damaged.code == 0);
  CHECK(Contains(damaged.error, "warning: " + dir + ": step-000000010: manifest is damaged"));
  CHECK(Contains(damaged.output, "\nstart: from " + dir + "/step-000000000, at global step 0\n"));
  std::filesystem::resize_file(dir + "/step-000000000/manifest", 20);
  const Done none_left = Check(job, {set});
  CHECK(none_left.code == 2);
  CHECK(Contains(none_left.error, dir + ": none of its checkpoints is complete (see above)"));
}

TEST_CASE("check: a run that goes on with other batches ends where check says") {
  const LocalJob job(
      "model: {kind: logistic}\ntrain: {batch_size: 2, epochs: 2}\n"
      "data: {train: {format: csv, path: rows.csv, label: y}}\n");
  std::ofstream(job.directory + "/rows.csv") << "y,a\n0,1\n1,2\n0,3\n1,4\n";
  const std::string set = "checkpoint.dir=" + job.directory + "/ckpt";
  CHECK(RunLocal(job.config, {"--set", set}).at("global_step") == 4);
  const std::vector<std::string> sets = {set, "train.batch_size=1"};
  CHECK(Contains(Check(job, sets).output, "ends at global step 12\n"));
  CHECK(RunLocal(job.config, {"--set", set, "--set", sets[1]}).at("global_step") == 12);
}

TEST_CASE("check: the keys that changed since the checkpoint stand in columns, in check and in the run") {
  const LocalJob job(LinearJob(10));
  const std::string set = "checkpoint.dir=" + job.directory + "/ckpt";
  REQUIRE(RunLocal(job.config, {"--set", set}).is_object());
  const Done same = Check(job, {set});
  CHECK_FALSE(Contains(same.output, "in the checkpoint"));
  const std::vector<std::string> sets = {set, "train.steps=20", "train.optimizer.learning_rate=0.125",
                                         "device.kind=cpu"};
  const std::string rate = "  train.optimizer.learning_rate  ", steps = "  train.steps                    ";
  for (const char* command : {"check", "local"}) {
    const Done done = Check(job, sets, command);
    const std::string said = done.output + done.error;
    CAPTURE(said);
    CHECK(done.code == 0);
    CHECK(Contains(said, "  key                            in the checkpoint  now\n"));
    CHECK(Contains(said, steps + "10                 20\n"));
    CHECK(Contains(said, rate));
    CHECK(Contains(said, "0.125\n"));
    for (const char* other : {"  cluster.", "  checkpoint.", "  run.", "  log.", "  device."}) {
      CHECK_FALSE(Contains(said, other));
    }
  }
}

TEST_CASE("check: checkpoint.resume may name a directory of checkpoints, and takes its newest one") {
  const LocalJob job(
      "model: {kind: mlp, hidden: [3], outputs: 2}\n"
      "data: {train: {format: csv, path: PATH, label: y}}\n"
      "train: {batch_size: 2, epochs: 2, optimizer: {learning_rate: 0.1}}\n");
  WriteFile(job.directory + "/t.csv", "a,b,y\n1,9,no\n2,8,yes\n3,7,no\n4,5,yes\n");
  const std::string path = "data.train.path=" + job.directory + "/t.csv", old = job.directory + "/old";
  REQUIRE(RunToEnd(*job.Start({"--set", path, "--set", "checkpoint.dir=" + old})) == 0);
  for (const char* command : {"check", "local"}) {
    const Done done = Check(
        job, {path, "train.epochs=3", "checkpoint.dir=" + job.directory + "/new", "checkpoint.resume=" + old},
        command);
    CAPTURE(done.error);
    CHECK(done.code == 0);
    CHECK(Contains(done.output + done.error, old + "/step-"));
  }
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
  const std::string same = "log.level=info";
  const struct {
    std::string set, more, expected;
  } cases[] = {
      {data("order.csv", "b,a,y\n" + rows), same,
       "feature 0 is \"a\" in the checkpoint and \"b\" in data.train"},
      {data("classes.csv", "a,b,y\n1,2,yes\n3,4,zno\n5,7,yes\n6,6,zno\n"), same,
       "y = zno; must be no or yes (data.classes, or those of the checkpoint)"},
      {data("numbers.csv", "a,b,y\n1,2,0\n3,4,1\n5,7,0\n6,6,1\n"), same,
       "y = 0; must be no or yes (data.classes, or those of the checkpoint)"},
      {trained, "data.scale=unit", "data.scale = unit; must be standard"},
      {trained, "model.activation=tanh", "model.activation = tanh; must be "},
  };
  for (const auto& [set, more, expected] : cases) {
    CAPTURE(expected);
    for (const char* command : {"check", "local"}) {
      const Done done = Check(job, {dir, set, "train.epochs=3", more}, command);
      CHECK(done.code == 2);
      CHECK(Contains(done.error, expected));
      if (*command == 'l') CHECK(Contains(done.error, "checkpoint.resume"));
    }
  }
  // More rows of the same are no other model.
  const std::string more_rows = data("more.csv", "a,b,y\n" + rows + "5,5,no\n6,1,yes\n");
  CHECK(RunToEnd(*job.Start({"--set", dir, "--set", more_rows, "--set", "train.epochs=3"})) == 0);
}

TEST_CASE(
    "resume, start_from, eval: the order of classes is the checkpoint's, where the rows would give another") {
  const LocalJob job(
      "model: {kind: softmax}\ntrain: {batch_size: 4, epochs: 30, optimizer: {learning_rate: 0.5}}\n"
      "data: {label_type: names, train: {format: csv, path: rows.csv, label: y}}\n");
  std::string rows = "a,b,c,y\n";
  for (int i = 0; i < 20; ++i) rows += "1,0,0,1\n0,1,0,10\n0,0,1,2.0\n";
  std::ofstream(job.directory + "/rows.csv") << rows;
  const std::string dir = "checkpoint.dir=" + job.directory + "/ckpt", next = job.directory + "/next";
  const std::string by_bytes = "data.classes=[\"1\", \"10\", \"2\"]";  // as older versions had them
  REQUIRE(RunLocal(job.config, {"--set", dir, "--set", by_bytes}).is_object());
  REQUIRE(RunLocal(job.config, {"--set", dir, "--set", "train.epochs=31"}).is_object());
  REQUIRE(RunLocal(job.config, {"--set", "checkpoint.dir=" + next, "--set", "train.epochs=1", "--set",
                                "checkpoint.start_from=" + job.directory + "/ckpt"})
              .is_object());
  for (const std::string& checkpoint : {job.directory + "/ckpt", next}) {
    const Done predicted = Run({"predict", checkpoint, "--data", job.directory + "/rows.csv"});
    CHECK(Contains(predicted.output, "probability_1,probability_10,probability_2\n"));
    const Done figures = Run({"eval", checkpoint, "--data", job.directory + "/rows.csv"});
    CHECK(figures.code == 0);
    CHECK(Contains(figures.output, "accuracy 1.0000"));
  }
}

TEST_CASE("run: weights that no step has changed are told, beside biases that have") {
  const LocalJob job(
      "model: {kind: mlp, hidden: [4]}\ntrain: {batch_size: 2, epochs: 20, optimizer: {kind: adam}}\n"
      "data: {train: {format: csv, path: rows.csv, label: y}}\n");
  std::ofstream(job.directory + "/rows.csv") << "y,a\n1,0.5\n0,-1.5\n1,2.5\n0,-0.5\n";
  const auto told = [&](const std::string& rate) {
    const Done done =
        Run({"local", job.config, "--ps", "2", "--set", "train.optimizer.learning_rate=" + rate});
    CHECK(done.code == 0);
    return Contains(done.error,
                    "all weights of the model are as they began, biases aside: nothing was learned");
  };
  CHECK(told("1e-12"));
  CHECK_FALSE(told("0.01"));
}

TEST_CASE("run: a class that the checkpoint has not is told, also where it comes first") {
  const LocalJob job(
      "model: {kind: logistic}\ntrain: {batch_size: 2, epochs: 2}\n"
      "data: {train: {format: csv, path: rows.csv, label: y}}\n");
  const auto run = [&](const std::string& first, const char* epochs) {
    std::ofstream(job.directory + "/rows.csv") << "y,a\n" << first << ",1\nyes,0\nno,2\nyes,3\n";
    return Run({"local", job.config, "--set", "checkpoint.dir=ckpt", "--set",
                std::string("train.epochs=") + epochs});
  };
  CHECK(run("no", "2").code == 0);
  const Done done = run("maybe", "4");
  CHECK(done.code == 2);
  CHECK(Contains(done.error,
                 "rows.csv:2:1: y = maybe; must be no or yes (data.classes, or those of the checkpoint)"));
}

TEST_CASE("run: weights that are all 0 at the end are told, and not where l1 makes them so") {
  const LocalJob job(
      "model: {kind: logistic}\ntrain: {batch_size: 2, epochs: 2}\n"
      "data: {train: {format: csv, path: rows.csv, label: y}}\n");
  const auto told = [&](const std::string& rows, const std::string& l1) {
    std::ofstream(job.directory + "/rows.csv") << "y,a\n" << rows;
    const Done done = Run({"local", job.config, "--ps", "2", "--set", "train.optimizer.l1=" + l1});
    CHECK(done.code == 0);
    return Contains(done.error, "all weights of the model are 0, biases aside: nothing was learned");
  };
  CHECK(told("1,0\n0,0\n1,0\n", "0"));
  CHECK_FALSE(told("1,0\n0,0\n1,0\n", "0.1"));
  CHECK_FALSE(told("1,0\n0,1\n1,0\n", "0"));
}

}  // namespace
}  // namespace dtrain::testing
