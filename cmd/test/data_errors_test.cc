// Bad data files, met by the real binary: exit 2, and a line that names the file and what is wrong.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cmd/testing/job.h"
#include "trainer/data/files/data_test_util.h"

namespace dtrain::testing {
namespace {

constexpr uint32_t kRows = 6;

std::string GoodImages() { return IdxImageContent(kRows, 2, 2); }
std::string GoodLabels() { return IdxLabelContent({0, 1, 0, 1, 1, 0}); }

// A job of these two files in a directory of its own.
struct DataJob {
  std::string directory = NewDirectory();
  std::string images = directory + "/images";
  std::string labels = directory + "/labels";
  std::string config = directory + "/job.yaml";

  DataJob(const std::string& image_content, const std::string& label_content) {
    WriteFile(images, image_content);
    WriteFile(labels, label_content);
    WriteFile(config,
              "model: {kind: softmax, inputs: 4, outputs: 2}\n"
              "data: {train: {format: idx, images: images, labels: labels}}\n"
              "train: {batch_size: 2, steps: 10}\n");
  }
};

// `dtrain check` and `dtrain local` both end with 2, and say each of `parts`.
void CheckRefused(const DataJob& job, const std::vector<std::string>& parts) {
  Process check({"check", "--config", job.config});
  Process local({"local", "--config", job.config});
  for (Process* process : {&check, &local}) {
    CHECK(RunToEnd(*process) == 2);
    const std::string said = process->standard_error();
    CAPTURE(said);
    for (const std::string& part : parts) {
      CAPTURE(part);
      CHECK(Contains(said, part));
    }
  }
}

TEST_CASE("data: good files train") {
  const DataJob job(GoodImages(), GoodLabels());
  Process check({"check", "--config", job.config});
  CHECK(RunToEnd(check) == 0);
  CHECK(Contains(check.standard_output(), "6 rows of " + job.images));
  Process local({"local", "--config", job.config, "--set", "train.epochs=1"});
  const int code = RunToEnd(local);
  CAPTURE(local.standard_error());
  CHECK(code == 0);
}

TEST_CASE("data: a truncated IDX file is exit 2") {
  const std::string whole = GoodImages();
  const DataJob images(whole.substr(0, whole.size() - 1), GoodLabels());
  CheckRefused(images, {images.images, "fetch it anew"});
  const DataJob header(whole.substr(0, 7), GoodLabels());
  CheckRefused(header, {header.images, "ends at byte 7"});
  const DataJob labels(whole, GoodLabels().substr(0, 10));
  CheckRefused(labels, {labels.labels, "fetch it anew"});
}

TEST_CASE("data: a file of another kind is exit 2 with both magic numbers") {
  const DataJob exchanged(GoodLabels(), GoodImages());
  CheckRefused(exchanged, {"magic = 0x0000080", "are the two exchanged?"});
  const DataJob text("this is no IDX file at all", GoodLabels());
  CheckRefused(text, {text.images, "magic = 0x74686973", "0x00000803"});
}

TEST_CASE("data: images and labels of different counts are exit 2 with both counts") {
  const DataJob job(GoodImages(), IdxLabelContent({0, 1, 0, 1, 1}));
  CheckRefused(job, {job.labels, "number of labels = 5", "6 images"});
}

TEST_CASE("data: an empty file is exit 2") {
  const DataJob images("", GoodLabels());
  CheckRefused(images, {images.images});
  const DataJob labels(GoodImages(), "");
  CheckRefused(labels, {labels.labels});
}

TEST_CASE("data: a missing file is exit 2 with its path and the key that names it") {
  const DataJob job(GoodImages(), GoodLabels());
  unlink(job.images.c_str());
  CheckRefused(job, {job.images, "No such file or directory (2)", "data.train.images"});
}

TEST_CASE("data: check names every missing file at once") {
  const DataJob job(GoodImages(), GoodLabels());
  unlink(job.images.c_str());
  unlink(job.labels.c_str());
  Process check({"check", "--config", job.config});
  CHECK(RunToEnd(check) == 2);
  CHECK(Contains(check.standard_error(), "data.train.images"));
  CHECK(Contains(check.standard_error(), "data.train.labels"));
}

TEST_CASE("data: a label outside of 0..outputs-1 is exit 2 with its row") {
  const DataJob job(GoodImages(), IdxLabelContent({0, 1, 0, 1, 2, 0}));
  CheckRefused(job, {job.labels, "label of row 4 = 2", "0..1", "labels start at 0"});
}

TEST_CASE("data: a worker that meets a bad file ends the run; the others end with 2 and name it") {
  const DataJob job(GoodImages(), IdxLabelContent({0, 1, 0, 1, 2, 0}));
  const std::string data = fmt::format(
      "model: {{kind: softmax, inputs: 4, outputs: 2}}\n"
      "data: {{train: {{format: idx, images: \"{}\", labels: \"{}\"}}}}\n"
      "train: {{batch_size: 2, steps: 10}}\n",
      job.images, job.labels);
  CheckWorkerRefusesData(data, "label of row 4 = 2");
}

}  // namespace
}  // namespace dtrain::testing
