#include "trainer/data/data_size.h"

#include <doctest/doctest.h>

#include "trainer/data/csv_test_util.h"

namespace dtrain {
namespace {

TEST_CASE("data size: a CSV file takes what its numbers take, however long they are as text") {
  for (const std::string number : {"0", "1.234567890123456789e-01"}) {
    CAPTURE(number);
    std::string content = "x,y\n";
    for (int row = 0; row < 1000; ++row) content += number + "," + number + "\n";
    Config config = CsvConfig(ModelKind::kLinear, content, "y");
    config.model.inputs = 1;
    const DataSize size = EstimateDataSize(config);
    CHECK(size.bytes == doctest::Approx(1000 * 2 * 4).epsilon(0.01));
    CHECK(static_cast<double>(size.train_rows.value_or(0)) == doctest::Approx(1000).epsilon(0.01));
  }
}

TEST_CASE("data size: a file that is not there counts nothing") {
  Config config = CsvConfig(ModelKind::kLinear, "x,y\n1,2\n", "y");
  config.model.inputs = 1;
  config.data.train.path = "/nowhere/train.csv";
  CHECK(EstimateDataSize(config).bytes == 0);
}

}  // namespace
}  // namespace dtrain
