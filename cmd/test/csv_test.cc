// CSV jobs with the real binary: what check and the log say, a ps without the file, bad files.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

constexpr const char* kGood = "height,kind,width\n1,oak,2\n2,elm,1\n1.5,oak,2.5\n2,\"elm\",0.5\n";

std::string JobOn(const std::string& train, const std::string& more) {
  return fmt::format(
      "model: {{kind: logistic, inputs: 2}}\n"
      "data: {{train: {{format: csv, path: \"{}\", label: kind}}{}}}\n"
      "train: {{batch_size: 1, epochs: 20}}\n",
      train, more);
}

// A job of these files in a directory of its own.
struct CsvJob {
  std::string directory = NewDirectory();
  std::string train = directory + "/train.csv";
  std::string test = directory + "/test.csv";
  std::string config = directory + "/job.yaml";

  explicit CsvJob(const std::string& train_content, const std::string& test_content = kGood) {
    WriteFile(train, train_content);
    WriteFile(test, test_content);
    WriteFile(config, JobOn(train, fmt::format(", test: {{format: csv, path: \"{}\", label: 1}}", test)));
  }
};

// `dtrain check` and `dtrain local` both end with 2 and say `line`.
void CheckRefused(const CsvJob& job, const std::string& line) {
  Process check({"check", "--config", job.config});
  Process local({"local", "--config", job.config});
  for (Process* process : {&check, &local}) {
    CHECK(RunToEnd(*process) == 2);
    const std::string said = process->standard_error();
    CAPTURE(said);
    CHECK(Contains(said, line));
  }
}

TEST_CASE("csv: check tells rows, classes and the number of steps") {
  const CsvJob job(kGood);
  Process check({"check", "--config", job.config});
  REQUIRE(RunToEnd(check) == 0);
  const std::string said = check.standard_output();
  CAPTURE(said);
  CHECK(Contains(said, "train: 4 rows of " + job.train));
  CHECK(Contains(said, "test: 4 rows of " + job.test));
  CHECK(Contains(said, "\n  2 features: height and width\n"));
  CHECK(Contains(said, "2 classes: 0 = elm and 1 = oak"));
  CHECK(Contains(said, "20 epochs per worker, ends at global step 80"));
}

TEST_CASE("csv: outputs above the largest label are a warning, in check and once in a run") {
  const CsvJob job(kGood);
  const std::vector<std::string> wrong = {"--config",           job.config, "--set",
                                          "model.kind=softmax", "--set",    "model.outputs=12"};
  for (const char* command : {"check", "local"}) {
    std::vector<std::string> arguments = {command};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    Process process(arguments);
    CHECK(RunToEnd(process) == 0);
    const std::string said = process.standard_error();
    CAPTURE(said);
    const std::string line = "model.outputs = 12, and the data has 2 names of classes: outputs 2 to 11 are";
    REQUIRE(Contains(said, line));
    CHECK(said.find(line) == said.rfind(line));
  }
}

TEST_CASE(
    "csv: held-out rows of a class that training never sees, and values that become equal, are warnings") {
  const CsvJob job(
      "time,kind,width\n1700000001,oak,2\n1700000002,elm,1\n1700000003,elm,2.5\n1700000004,elm,0.5\n");
  for (const char* command : {"check", "local"}) {
    Process process(
        {command, "--config", job.config, "--set", "data.validation=1", "--set", "data.test=null"});
    CHECK(RunToEnd(process) == 0);
    const std::string said = process.standard_error();
    CAPTURE(said);
    for (const std::string line :
         {"warning: class oak is in 1 of the 1 held-out rows (data.validation) and in no row that is trained "
          "on",
          "warning: feature time: the 4 values that differ in the first 4 rows of "}) {
      REQUIRE(Contains(said, line));
      CHECK(said.find(line) == said.rfind(line));
    }
  }
}

TEST_CASE("csv: a run learns, evaluates on the test file and logs the classes") {
  const CsvJob job(kGood);
  const std::string result = job.directory + "/result.json";
  Process local({"local", "--config", job.config, "--result", result});
  const int code = RunToEnd(local);
  CAPTURE(local.standard_error());
  REQUIRE(code == 0);
  CHECK(Contains(local.standard_error(), "2 classes: 0 = elm and 1 = oak"));
  CHECK(ReadResult(result).at("global_step") == 80);
  CHECK(ReadResult(result).at("test_accuracy") == 1.0);
}

TEST_CASE("csv: a ps needs no file where model.inputs is given") {
  const CsvJob job(kGood);
  const Cluster cluster(1, 1, JobOn(job.train, ""));
  const auto ps = cluster.Start("ps", 0, {"--set", "data.train.path=/not/there.csv"});
  const auto worker = cluster.Start("worker", 0);
  CHECK(RunToEnd(*worker) == 0);
  CHECK(RunToEnd(*ps) == 0);
}

TEST_CASE("csv: a worker that reads another file than the chief says so, once") {
  const std::string train = NewDirectory() + "/train.csv", half = train + ".half";
  WriteFile(train, kGood);
  WriteFile(half, "height,kind,width\n1,oak,2\n2,elm,1\n");
  const Cluster cluster(1, 2, JobOn(train, ""));
  const auto ps = cluster.Start("ps", 0);
  const auto chief = cluster.Start("worker", 0);
  const auto other = cluster.Start("worker", 1, {"--set", "data.train.path=" + half});
  for (Process* task : {ps.get(), chief.get(), other.get()}) CHECK(RunToEnd(*task) == 0);
  const std::string said = other->standard_error();
  CAPTURE(said);
  const std::string warning = "warning: data.train: 2 rows here and 4 at the chief. ";
  CHECK(Contains(said, warning));
  CHECK(said.find(warning) == said.rfind(warning));
  CHECK_FALSE(Contains(chief->standard_error(), "at the chief"));
}

TEST_CASE("csv: bad files are exit 2 with file, line and column") {
  const CsvJob nan("height,kind,width\n1,0,2\n2,1,nan\n");
  CheckRefused(nan, nan.train + ":3:5: width = nan; must be a finite number.");
  const CsvJob text("height,kind,width\n1,0,2\ntall,1,3\n");
  CheckRefused(text, text.train + ":3:1: height = tall; must be a number.");
  const CsvJob ragged("height,kind,width\n1,0\n");
  CheckRefused(ragged, ragged.train + ":2:4: 2 fields; must be 3");
  const CsvJob label("height,kinds,width\n1,0,2\n");
  CheckRefused(label,
               label.train +
                   ":1:1: no column \"kind\" (data.train.label); the columns are \"height\", \"kinds\" "
                   "and \"width\". Did you mean \"kinds\"?");
  const CsvJob test(kGood, "height,kind,width\n1,yew,2\n");
  CheckRefused(test, test.test + ":2:3: kind = yew; must be a class of data.train: elm or oak.");
}

TEST_CASE("csv: check refuses to hold out all rows") {
  const CsvJob job(kGood);
  Process check({"check", "--config", job.config, "--set", "data.validation=4"});
  CHECK(RunToEnd(check) == 2);
  CHECK(Contains(check.standard_error(),
                 "data.validation = 4; must be below the number of training rows, 4. Hold out fewer."));
}

TEST_CASE("csv: check names missing files with their keys") {
  const CsvJob job(kGood);
  unlink(job.train.c_str());
  unlink(job.test.c_str());
  Process check({"check", "--config", job.config});
  CHECK(RunToEnd(check) == 2);
  CHECK(Contains(check.standard_error(), "Set data.train.path to where the file is."));
  CHECK(Contains(check.standard_error(), "Set data.test.path to where the file is."));
}

TEST_CASE("csv: a worker that meets a bad row ends the run; the ps ends with 4 and names it") {
  const CsvJob job("height,kind,width\n1,0,2\n2,1,nan\n");
  CheckWorkerRefusesData(JobOn(job.train, ""), ":3:5: width = nan");
}

}  // namespace
}  // namespace dtrain::testing
