// Held-out rows that are drawn (data.validation_by): which they are, and that all else is as if they had
// stood in front, wherever the rows lie.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/order/held_out.h"
#include "trainer/sets/class_weights.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_warnings.h"

namespace dtrain {
namespace {

Config Drawn(Config config, HeldOutBy by) {
  config.data.validation_share = 0.2;
  config.data.validation_by = by;
  return config;
}

TEST_CASE("held out: drawn rows are the same from memory, files and a cache, and batches are of the others") {
  for (const HeldOutBy by : {HeldOutBy::kSeed, HeldOutBy::kStratified}) {
    for (const bool packed : {false, true}) {
      Config config = Drawn(TableConfig(Table(3000), DataCache::kMemory), by);
      if (packed) config.data.train.path = {WriteGzip("drawn.csv.gz", Table(3000))};
      const LoadedData memory = LoadData(config);
      const Rows rows = RowsOf(*memory.train);
      const std::vector<float> held_out(rows.features.begin(),
                                        rows.features.begin() + 600 * memory.train->inputs());
      const LabelCounts counts = CountLabels(memory, 600);
      for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
        CAPTURE(packed);
        CAPTURE(static_cast<int>(cache));
        config.data.cache = cache;
        const LoadedData loaded = LoadData(config);
        const DataSet& set = *loaded.train;
        const Rows here = RowsOf(set);
        CHECK(here.features == rows.features);
        CHECK(here.labels == rows.labels);
        CHECK(FingerprintOf(set) == FingerprintOf(*memory.train));
        CHECK(CountLabels(loaded, 600).held_out == counts.held_out);
        CHECK(CountLabels(loaded, 600).trained == counts.trained);
        std::vector<float> evaluated;
        const auto evaluation = MakeSequentialSource(loaded.train, 0, 600, 70);
        for (Batch batch; evaluation->Next(&batch);) {
          evaluated.insert(evaluated.end(), batch.inputs, batch.inputs + batch.rows * batch.columns);
        }
        CHECK(evaluated == held_out);
        std::vector<float> seen = FirstFeatures(*MakeBatchSource(config, loaded.train, 0, 1), 0), others;
        for (size_t row = 600; row < 3000; ++row) {
          others.push_back(rows.features[row * static_cast<size_t>(set.inputs())]);
        }
        std::sort(seen.begin(), seen.end());
        CHECK(seen == others);
      }
    }
  }
}

TEST_CASE("held out: blocks of rows that are read together stay together") {
  Config config = Drawn(TableConfig(Table(5000), DataCache::kNone), HeldOutBy::kSeed);
  const std::shared_ptr<const DataSet> set = LoadData(config).train;
  REQUIRE(static_cast<bool>(set->view() != nullptr));
  config.data.validation_share = 0;
  config.data.validation_by = HeldOutBy::kFirst;
  const RowBlocks of_files = LoadData(config).train->blocks();
  REQUIRE(of_files->size() > 2);
  CHECK(set->blocks()->size() == of_files->size() + 1);  // the held-out rows are one
  for (size_t block = 1; block < set->blocks()->size(); ++block) {
    const int64_t first = set->view()->FileRow((*set->blocks())[block]);
    CHECK(first >= (*of_files)[block - 1]);
    CHECK(first < (*of_files)[block - 1] + 1024);
  }
}

TEST_CASE("held out: a set with drawn rows has the fingerprint of a table in which they stand in front") {
  std::string table, sparse, table_in_order = "x,w,y\n", sparse_in_order;
  std::vector<std::string> rows, lines;
  std::vector<int32_t> classes;
  for (int i = 0; i < 200; ++i) {
    classes.push_back(i % 3 == 0 ? 1 : 0);
    rows.push_back(fmt::format("{},{},{}\n", i, 1 + i % 7, classes.back()));
    lines.push_back(fmt::format("{} {}:1 {}:{}\n", classes.back(), 1 + i, 300, 1 + i % 5));
  }
  Config config = CsvConfig(ModelKind::kLogistic, "", "y");
  config.data.weight = "w";
  Config libsvm = config;
  libsvm.data.train.format = DataFormat::kLibsvm;
  libsvm.data.train.label.clear();
  libsvm.data.weight.clear();
  libsvm.model.inputs = 300;
  for (Config* one : {&config, &libsvm}) *one = Drawn(*one, HeldOutBy::kStratified);
  const std::vector<bool> marks = HeldOutMarks(config.data, classes);
  for (const bool held_out : {true, false}) {
    for (size_t row = 0; row < rows.size(); ++row) {
      if (marks[row] != held_out) continue;
      table_in_order += rows[row];
      sparse_in_order += lines[row];
    }
  }
  for (const std::string& row : rows) table += row;
  for (const std::string& line : lines) sparse += line;
  const auto print = [](Config of, const std::string& content, HeldOutBy by) {
    of.data.train.path = {WritePlain("rows.txt", content)};
    of.data.validation_by = by;
    const DataFingerprint print = FingerprintOf(*LoadData(of).train);
    CHECK(print.features != 0);
    return print;
  };
  CHECK(print(config, "x,w,y\n" + table, HeldOutBy::kStratified) ==
        print(config, table_in_order, HeldOutBy::kFirst));
  CHECK(print(config, "x,w,y\n" + table, HeldOutBy::kFirst) !=
        print(config, table_in_order, HeldOutBy::kFirst));
  CHECK(print(libsvm, sparse, HeldOutBy::kStratified) == print(libsvm, sparse_in_order, HeldOutBy::kFirst));
  CHECK(print(libsvm, sparse, HeldOutBy::kFirst) != print(libsvm, sparse_in_order, HeldOutBy::kFirst));
}

TEST_CASE("held out: a scale and weights of classes are fitted on the rows that are not drawn") {
  const std::string content = Table(2000);
  for (const FeatureScale scale : {FeatureScale::kUnit, FeatureScale::kStandard}) {
    Config config = Drawn(TableConfig(content, DataCache::kMemory), HeldOutBy::kStratified);
    config.data.scale = scale;
    config.data.class_weights = {"balanced"};
    const LoadedData memory = LoadData(config);
    // The same rows as a table of their own, with nothing held out.
    const std::shared_ptr<const DataSet> set =
        LoadData(Drawn(TableConfig(content, DataCache::kMemory), HeldOutBy::kStratified)).train;
    std::vector<int64_t> others(1600);
    std::iota(others.begin(), others.end(), 400);
    const Rows rows = RowsOf(*set, others);
    const FittedScale fitted =
        FitScale(scale, gpu::MatrixView<const float>(rows.features.data(), 1600, set->inputs()));
    CHECK(memory.form.scale.shift[0] == fitted.shift[0]);
    CHECK(memory.form.scale.factor[0] == fitted.factor[0]);
    for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
      config.data.cache = cache;
      const LoadedData loaded = LoadData(config);
      CHECK(loaded.form.scale.shift[0] == doctest::Approx(fitted.shift[0]).epsilon(1e-9));
      const gpu::Span<const float> here = loaded.train->class_weights(),
                                   there = memory.train->class_weights();
      REQUIRE(here.size == 2);
      CHECK(std::equal(here.begin(), here.end(), there.begin()));
    }
  }
}

TEST_CASE("held out: rows of images are drawn too, in memory and mapped, and batches are bytes") {
  std::string images = IdxImageContent(250, 2, 3);
  std::vector<uint8_t> labels(250);
  for (size_t row = 0; row < labels.size(); ++row) {
    labels[row] = static_cast<uint8_t>(row / 25);
    images[16 + row * 6] = static_cast<char>(row);
  }
  Config config = Drawn(
      IdxConfig(WritePlain("drawn-images", images), WritePlain("drawn-labels", IdxLabelContent(labels))),
      HeldOutBy::kStratified);
  config.train.batch_size = 20;
  config.train.epochs = 1;
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone}) {
    CAPTURE(static_cast<int>(cache));
    config.data.cache = cache;
    const std::shared_ptr<const DataSet> set = LoadData(config).train;
    const Rows rows = RowsOf(*set);
    CHECK(CountClasses(*set, 50).held_out == std::vector<int64_t>(10, 5));
    for (size_t row = 0; row < 250; ++row) {
      CHECK(rows.labels[row] == static_cast<int32_t>(std::lround(rows.features[row * 6] * 255)) / 25);
    }
    const std::vector<float> batches = FirstFeatures(*MakeBatchSource(config, set, 0, 1), 0);
    const std::set<float> seen(batches.begin(), batches.end());
    CHECK(seen.size() == 200);
    for (size_t row = 0; row < 50; ++row) {
      CHECK(seen.count(std::round(rows.features[row * 6] * 255)) == 0);
    }
  }
}

}  // namespace
}  // namespace dtrain
