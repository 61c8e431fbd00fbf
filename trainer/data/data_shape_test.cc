#include <doctest/doctest.h>

#include "trainer/data/data_shape.h"
#include "trainer/data/files/data_test_util.h"
#include "trainer/data/load_data.h"
#include "trainer/data/source.h"

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
  config.data.train.path = {"/nowhere/train.csv"};
  CHECK(EstimateDataSize(config).bytes == 0);
}

TEST_CASE("data size: a gzip file of either set counts as many images as its header says") {
  Config config;
  config.model.inputs = 20;
  for (DataSourceConfig* source : {&config.data.train, &config.data.test}) {
    source->format = DataFormat::kIdx;
    source->images = {WriteGzip("images.gz", IdxImageContent(10000, 4, 5))};
  }
  const DataSize size = EstimateDataSize(config);
  CHECK(size.bytes == 2 * 10000 * 21);
  CHECK(size.test_rows == 10000);
}

constexpr char kRows[] = "x,y\n1,0\n2,1\n3,1\n4,0\n";

DataFingerprint Of(ModelKind kind, const std::string& content) {
  const LoadedData data = LoadData(CsvConfig(kind, content, "y"));
  return FingerprintOf(*data.train);
}

TEST_CASE("data fingerprint: rows, labels and their order tell files apart, in every kind of model") {
  for (const ModelKind kind : {ModelKind::kLogistic, ModelKind::kLinear}) {
    const DataFingerprint whole = Of(kind, kRows);
    CHECK(whole.rows == 4);
    CHECK(Of(kind, kRows) == whole);
    CHECK(Of(kind, "x,y\n1,0\n2,1\n3,1\n").rows == 3);
    CHECK(Of(kind, "x,y\n2,1\n1,0\n3,1\n4,0\n") != whole);
  }
}

TEST_CASE("data fingerprint: other rows are told, and nothing where one side is not known") {
  CHECK(OtherRowsText({3, 7}, {4, 7}).find("data.train: 3 rows here and 4 at the chief. ") == 0);
  CHECK(OtherRowsText({4, 6}, {4, 7}).find("data.train: the labels here are others") == 0);
  CHECK(OtherRowsText({4, 7}, {4, 7}).empty());
  CHECK(OtherRowsText({0, 0}, {4, 7}).empty());
  CHECK(OtherRowsText({4, 7}, {0, 0}).empty());
  Config endless;
  endless.data.train.format = DataFormat::kSynthetic;
  endless.data.train.name = SyntheticName::kLinear;
  CHECK(FingerprintOf(*LoadData(endless).train) == DataFingerprint());
  endless.data.train.rows = 5000;
  CHECK(FingerprintOf(*LoadData(endless).train).rows == 5000);
}

}  // namespace
}  // namespace dtrain
