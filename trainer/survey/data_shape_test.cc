#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "trainer/config/config.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_shape.h"

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
  Config config = IdxConfig(WriteGzip("images.gz", IdxImageContent(10000, 4, 5)), "");
  config.model.inputs = 20;
  config.data.test = config.data.train;
  const DataSize size = EstimateDataSize(config);
  CHECK(size.bytes == 2 * 10000 * 21);
  CHECK(size.test_rows == 10000);
}

TEST_CASE(
    "data shape: packed images are refused where they would be mapped as they are, before they are read") {
  Config config;
  config.data.train.format = DataFormat::kIdx;
  config.data.train.images = {WriteGzip("images.gz", IdxImageContent(10, 4, 5))};
  for (const DataCache cache : {DataCache::kMemory, DataCache::kFile}) {
    config.data.cache = cache;
    CHECK(PeekShape(config).inputs == 20);
  }
  config.data.cache = DataCache::kNone;
  CHECK(UserErrorOf([&] { PeekShape(config); }).find("Set data.cache: file, which unpacks it once") !=
        std::string::npos);
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
    CHECK(Of(kind, "x,y\n1,0\n2,1\n3.5,1\n4,0\n") != whole);
  }
}

TEST_CASE("data fingerprint: a feature or a weight that changes shows, however the rows are kept") {
  const std::string csv = "x,w,y\n1,1,0\n2,1,1\n3,2,1\n4,1,0\n", svm = "0 1:1\n1 1:2 3:0.5\n0 2:1\n";
  const auto changed = [](std::string text, const char* from, const char* to) {
    return text.replace(text.find(from), std::strlen(from), to);
  };
  const auto of = [](Config config, DataCache cache) {
    SetCache(cache, &config);
    return FingerprintOf(*LoadData(config).train);
  };
  const auto table = [](const std::string& text) {
    Config config = CsvConfig(ModelKind::kLogistic, text, "y");
    config.data.weight = "w";
    return config;
  };
  const auto lines = [](const std::string& text) {
    Config config = LibsvmConfig(ModelKind::kLogistic, text);
    config.model.inputs = 3;
    return config;
  };
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    const DataFingerprint whole = of(table(csv), cache), sparse = of(lines(svm), cache);
    CHECK(whole.features != 0);
    CHECK(of(table(csv), cache) == whole);
    CHECK(of(table(changed(csv, "3,2,1", "3,3,1")), cache) != whole);
    CHECK(of(table(changed(csv, "3,2,1", "5,2,1")), cache) != whole);
    CHECK(sparse.features != 0);
    CHECK(of(lines(svm), cache) == sparse);
    CHECK(of(lines(changed(svm, "3:0.5", "3:0.25")), cache) != sparse);
    CHECK(of(lines(changed(svm, "2:1", "3:1")), cache) != sparse);
  }
  CHECK(of(table(csv), DataCache::kMemory) ==
        of(table(csv), DataCache::kNone));  // of two forms: not compared
}

TEST_CASE("data fingerprint: what differs from before is said, and nothing where one side is not known") {
  CHECK(DataDifference({90, 7}, {100, 7}) == "90 rows, and 100 before");
  CHECK(DataDifference({9, 6}, {9, 7}) == "other labels than before, or in another order");
  CHECK(DataDifference({9, 7, 0x101}, {9, 7, 0x201}) == "other features than before, or in another order");
  CHECK(DataDifference({9, 7, 0x101}, {9, 7, 0x202}) == "");
  CHECK(DataDifference({9, 7, 0x101}, {9, 7}) == "");
  CHECK(DataDifference({0, 7}, {9, 6}) == "");
}

TEST_CASE("data fingerprint: other rows are told, and nothing where one side is not known") {
  CHECK(OtherRowsText({3, 7}, {4, 7}).find("data.train: 3 rows, and 4 at the chief. ") == 0);
  CHECK(OtherRowsText({4, 6}, {4, 7}).find("data.train: other labels than at the chief, or") == 0);
  CHECK(OtherRowsText({4, 7, 0x101}, {4, 7, 0x201}).find("data.train: other features than at the chief") ==
        0);
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

TEST_CASE("decay_steps: auto with train.aggregate and no train.steps is refused by the names of both") {
  Config config;
  config.train.optimizer.schedule.kind = ScheduleKind::kCosine;
  config.train.optimizer.schedule.decay_steps = kAutoDecay;
  CHECK(AutoDecaySteps(config, 90) == 90);
  config.train.mode = TrainMode::kSync;
  config.train.aggregate = 2;
  const std::string refused = UserErrorOf([&] { AutoDecaySteps(config, std::nullopt); });
  CHECK(Has(refused, "decay_steps = auto; "));
  CHECK(Has(refused, "train.aggregate = 2"));
}

}  // namespace
}  // namespace dtrain
