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
  for (const char* command : {"check", "local"}) {
    const Done done =
        Run({command, "--config", job.config, "--set", "model.kind=softmax", "--set", "model.outputs=12"});
    CAPTURE(done.error);
    CHECK(done.code == 0);
    const std::string line = "model.outputs = 12, and the data has 2 names of classes: outputs 2 to 11 are";
    REQUIRE(Contains(done.error, line));
    CHECK(done.error.find(line) == done.error.rfind(line));
  }
}

TEST_CASE("csv: a run learns, evaluates on the test file and logs the classes") {
  const CsvJob job(kGood);
  const std::string result = job.directory + "/result.json";
  Process local({"local", "--config", job.config, "--result", result});
  CheckEnd(local);
  CHECK(Contains(local.standard_error(), "2 classes: 0 = elm and 1 = oak"));
  CHECK(ReadResult(result).at("global_step") == 80);
  CHECK(ReadResult(result).at("test_accuracy") == 1.0);
}

TEST_CASE("csv: a worker that reads another file than the chief says so, once; a ps needs none") {
  const std::string train = NewDirectory() + "/train.csv", half = train + ".half";
  WriteFile(train, kGood);
  WriteFile(half, "height,kind,width\n1,oak,2\n2,elm,1\n");
  const Cluster cluster(1, 2, JobOn(train, ""));
  const auto ps = cluster.Start("ps", 0, {"--set", "data.train.path=/not/there.csv"});
  const auto chief = cluster.Start("worker", 0);
  const auto other = cluster.Start("worker", 1, {"--set", "data.train.path=" + half});
  CheckEnds(std::vector<Process*>{ps.get(), chief.get(), other.get()});
  const std::string said = other->standard_error();
  CAPTURE(said);
  const std::string warning = "warning: data.train: 2 rows, and 4 at the chief. ";
  CHECK(Contains(said, warning));
  CHECK(said.find(warning) == said.rfind(warning));
  CHECK_FALSE(Contains(chief->standard_error(), "at the chief"));
}

TEST_CASE("csv: a bad file is exit 2 with file, line and column, of check and of a run") {
  const CsvJob job("height,kind,width\n1,0,2\n2,1,nan\n");
  for (const char* command : {"check", "local"}) {
    const Done done = Run({command, "--config", job.config});
    CAPTURE(done.error);
    CHECK(done.code == 2);
    CHECK(Contains(done.error, job.train + ":3:5: width = nan; must be a finite number."));
  }
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

}  // namespace
}  // namespace dtrain::testing
