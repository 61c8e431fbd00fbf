// How often the tasks of a cluster in one process read the text of data.train.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/input/data_test_util.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// The bytes that a run of 2 ps and 3 workers on such a table reads, in parts of its size.
double ReadingsOf(const std::string& text, std::optional<int64_t> classes) {
  Config config = LinearCluster(2, 3, 0);
  config.train.steps.reset();
  config.train.epochs = 1;
  config.train.batch_size = 1000;
  config.model.kind = ModelKind::kSoftmax;
  config.model.inputs.reset();
  config.model.outputs = classes;
  config.data.train = CsvSource("once.csv", text, "y");
  const int64_t before = BytesRead();
  CHECK(Run(config).status == "done");
  return static_cast<double>(BytesRead() - before) / static_cast<double>(text.size());
}

TEST_CASE("read once: text is read to count classes, and to train, once for all tasks of a process") {
  std::string text = "a,b,y\n";
  for (int row = 0; row < 1'200'000; ++row) text += fmt::format("{}.25,-{}.5,{}\n", row % 1000, row, row % 3);
  const double counted = ReadingsOf(text, std::nullopt);
  const double given = ReadingsOf(text, 3);
  CHECK(counted < 2.4);  // each opening reads the first MiB
  CHECK(given < 1.4);
  CHECK(counted > given + 0.8);
}

}  // namespace
}  // namespace dtrain
