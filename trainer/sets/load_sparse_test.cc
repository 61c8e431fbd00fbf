// Texts of sparse rows as a run reads them: LoadData, PeekShape, batches.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_shape.h"
#include "trainer/survey/data_warnings.h"

namespace dtrain {
namespace {

TEST_CASE("sparse: a row has its features, and as a dense row zeros beside them") {
  const LoadedData data =
      LoadAsRun(LibsvmConfig(ModelKind::kLogistic, "1 1:2 4:1\n# comment\n\n0 2:3\n1\n0 4:1 4:1"));
  CHECK(data.train->sparse());
  CHECK(data.train->inputs() == 4);
  CHECK(data.train->rows() == 4);
  const Rows rows = RowsOf(*data.train);
  CHECK(rows.sparse.offsets == std::vector<int64_t>{0, 2, 3, 3, 5});
  CHECK(rows.sparse.ids == std::vector<uint64_t>{0, 3, 1, 3, 3});
  CHECK(rows.sparse.values == std::vector<float>{2, 1, 3, 1, 1});
  CHECK(rows.features == std::vector<float>{2, 0, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
  CHECK(rows.labels == std::vector<int32_t>{1, 0, 1, 0});
  CHECK(data.form.classes.empty());
}

TEST_CASE("sparse: labels are numbers of classes, -1 and +1, names, or real targets") {
  const auto of = [](ModelKind kind, const std::string& content) {
    Config config = LibsvmConfig(kind, content);
    if (kind == ModelKind::kSoftmax) config.model.outputs = 3;
    return RowsOf(*LoadAsRun(config).train);
  };
  CHECK(of(ModelKind::kLogistic, "-1 1:1\n+1 1:1\n1 1:1\n").labels == std::vector<int32_t>{0, 1, 1});
  CHECK(of(ModelKind::kSoftmax, "2 1:1\n0 1:1\n").labels == std::vector<int32_t>{2, 0});
  CHECK(of(ModelKind::kSoftmax, "oak 1:1\nelm 1:1\nyew 1:1\n").labels == std::vector<int32_t>{1, 0, 2});
  CHECK(of(ModelKind::kLinear, "-0.5 1:1\n1e3 1:1\n").targets == std::vector<float>{-0.5f, 1000});
}

TEST_CASE("sparse: what is wrong is told with file, line, column, value and remedy") {
  const auto error = [](ModelKind kind, const std::string& content) {
    const Config config = LibsvmConfig(kind, content);
    const std::string text = LoadError(config);
    const std::string path = config.data.train.path[0];
    return text.substr(0, path.size()) == path ? text.substr(path.size()) : text;
  };
  CHECK(error(ModelKind::kLogistic, "1 1:1\n\n# c\n0 2:x\n") ==
        ":4:5: the value of feature 2 = x; must be a number. Correct it, or remove the row.");
  CHECK(
      error(ModelKind::kLogistic, "-1 1:1\r\n0 2:1\r\n") ==
      ":2:1: the label = 0; must be as in the rows before: two classes are 0 and 1, or -1 and 1. Correct it, "
      "or remove the row.");
  CHECK(error(ModelKind::kLogistic, "0 1:1\n1 1:1\n 2 1:1\n")
            .find(":3:2: the label = 2; must be a whole number in 0..1") == 0);
  CHECK(error(ModelKind::kLinear, "1 1:1\nabc 1:1").find(":2:1: the label = abc; must be a number") == 0);
  CHECK(error(ModelKind::kLogistic, "1 0:1\n") ==
        ":1:3: feature 0; indexes begin at 1. If those of this file begin at 0, set data.index_base: 0.");
  CHECK(error(ModelKind::kLogistic, "# only a comment\n") ==
        ": no rows; data.train.path must name files with data. Fetch them anew.");
}

TEST_CASE("sparse: with data.index_base 0 the largest index is the number of features less one") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 0:1 2:1\n");
  config.data.index_base = 0;
  CHECK(PeekShape(config).inputs == 3);
  CHECK(RowsOf(*LoadAsRun(config).train).sparse.ids == std::vector<uint64_t>{0, 2});
}

TEST_CASE("sparse: model.inputs is the width, and a feature beyond it is told") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:1\n0 9:1\n");
  config.model.inputs = 20;
  CHECK(LoadAsRun(config).train->inputs() == 20);
  config.model.inputs = 8;
  CHECK(PeekShape(config).inputs == 8);
  CHECK(LoadError(config) ==
        config.data.train.path[0] +
            ":2:3: feature 9; must be 1 to 8 (model.inputs = 8; where it is not set, the features of "
            "data.train). Raise model.inputs, or remove the row.");
}

TEST_CASE("sparse: the width is that of data.train, and a feature that it lacks in data.test is told") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:1\n0 3:1\n");
  TestOn("1 2:1\n0 4:1\n", &config);
  ResolveModelShape(PeekShape(config), &config);
  CHECK(config.model.inputs == 3);
  const std::string text = LoadError(config);
  CHECK(Has(text, "test.txt:2:3: feature 4; must be 1 to 3 (model.inputs = 3;"));
  config.model.inputs = 4;
  CHECK(RowsOf(*LoadAsRun(config).test).sparse.ids == std::vector<uint64_t>{1, 3});
}

TEST_CASE("sparse: a softmax counts its classes") {
  CHECK(PeekShape(LibsvmConfig(ModelKind::kSoftmax, "0 1:1\n1 3:1\n2 1:1\n")).classes == 3);
  const DataShape gap = PeekShape(LibsvmConfig(ModelKind::kSoftmax, "4 1:1\n0.0 3:1\n"));
  CHECK(gap.classes == 2);
  CHECK(gap.form.classes == std::vector<std::string>{"0.0", "4"});
  CHECK(PeekShape(LibsvmConfig(ModelKind::kSoftmax, "oak 1:1\nelm 3:1\nash 2:1")).classes == 3);
}

TEST_CASE("sparse: a softmax of a hash table counts its classes, whatever keys the rows have") {
  Config config = LibsvmConfig(ModelKind::kSoftmax, "0 5000000000:1\n2 1:1\n1 18446744073709551000:1\n");
  config.model.table = TableKind::kHash;
  config.data.whole_keys = true;
  CHECK(PeekShape(config).classes == 3);
  CHECK(PeekShape(config).inputs == kKeyInputs);
}

TEST_CASE("sparse: where files are not here, or come through a pipe, model.inputs says the width") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:1\n");
  config.data.train.path = {"not-here.txt"};
  config.cluster.ps = {"10.0.0.1:9001"};
  CHECK(Has(UserErrorOf([&] { PeekShape(config); }), "needs model.inputs in its place"));
  config.data.train.path = {"exec:echo 1 1:1"};
  CHECK(Has(UserErrorOf([&] { PeekShape(config); }), "Set model.inputs"));
  config.model.inputs = 7;
  CHECK(PeekShape(config).inputs == 7);
}

TEST_CASE("sparse: files that are too large to be read by each task need model.inputs, which check tells") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:1 77:1\n");
  const std::string path = config.data.train.path[0];
  // A hole, which reads as one long line of zeros behind the first ones.
  REQUIRE(truncate(path.c_str(), (256 << 20) + (1 << 20)) == 0);
  CHECK(UserErrorOf([&] { PeekShape(config); }) ==
        path +
            ": 257 MiB, too large for each task to find its largest index, which is the number of features. "
            "Set model.inputs to it: dtrain check reads the files and tells it.");
  config.data.bad_rows = BadRows::kSkip;
  config.model.inputs = 77;
  CHECK(PeekShape(config).inputs == 77);
}

TEST_CASE("sparse: batches have sparse rows where the model has a table, and dense ones where it has none") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:2 4:1\n0 2:3\n");
  for (const bool held_out : {false, true}) {
    CAPTURE(held_out);
    for (const bool table : {true, false}) {
      CAPTURE(table);
      config.model.table = table ? TableKind::kAuto : TableKind::kNone;
      const LoadedData data = LoadAsRun(config);
      const auto source =
          held_out ? MakeSequentialSource(data.train, 0, 2, 10) : MakeBatchSource(config, data.train, 0, 1);
      Batch batch;
      REQUIRE(source->Next(&batch));
      CHECK(batch.rows == 2);
      CHECK(batch.columns == 4);
      CHECK(batch.labels[0] == 1);
      CHECK((batch.inputs == nullptr) == table);
      CHECK((batch.sparse.offsets != nullptr) == table);
      if (table) {
        CHECK(std::vector<int64_t>(batch.sparse.offsets, batch.sparse.offsets + 3) ==
              std::vector<int64_t>{0, 2, 3});
        CHECK(batch.sparse.ids[2] == 1);
      } else {
        CHECK(std::vector<float>(batch.inputs, batch.inputs + 8) ==
              std::vector<float>{2, 0, 0, 1, 0, 3, 0, 0});
      }
    }
  }
}

TEST_CASE("sparse: rows that cannot be read are left out and counted where that is asked for") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:1\n0 x\n2 1:1\n0 2:1\n1 3:nan\n");
  config.data.bad_rows = BadRows::kSkip;
  const LoadedData data = LoadAsRun(config);
  CHECK(data.train->rows() == 2);
  CHECK(data.train->inputs() == 2);
  CHECK(data.skipped.bad == 3);
  REQUIRE(data.skipped.faults.size() == 3);
  CHECK(Has(data.skipped.faults[1], ":3:1: the label = 2"));
  config.data.bad_rows_limit = 2;
  CHECK(Has(LoadError(config), "It is bad row 3, and data.bad_rows_limit = 2."));
}

TEST_CASE("sparse: files of a list, plain and packed, are one set") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:1\n");
  config.data.train.path.push_back(WriteGzip("b.gz", "0 5:1\n1 2:1"));
  config.data.train.path.push_back(WriteZstd("c.zst", "1 3:1\n"));
  const LoadedData data = LoadAsRun(config);
  CHECK(data.train->inputs() == 5);
  CHECK(RowsOf(*data.train).sparse.ids == std::vector<uint64_t>{0, 4, 1, 2});
  config.data.train.path.push_back(WritePlain("d.txt", "1 3:1\n0 3:1x\n"));
  CHECK(Has(LoadError(config), "d.txt:2:5: the value of feature 3 = 1x"));
}

TEST_CASE("sparse: held-out rows and the weights of classes are those of any data") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:1\n0 2:1\n0 3:1\n0 4:1\n");
  config.data.validation = 1;
  config.data.class_weights = {"1=3"};
  config.model.inputs = 4;
  const LoadedData data = LoadAsRun(config);
  Batch batch;
  REQUIRE(MakeBatchSource(config, data.train, 0, 1)->Next(&batch));
  CHECK(batch.rows == 3);
  CHECK(FingerprintOf(*data.train).rows == 4);
  CHECK(DataWarnings(config, data).size() >= 1);  // class 1 is in no row that is trained on
}

TEST_CASE("sparse: held-out rows are drawn by seed, of each class, with their labels and features") {
  std::string content;
  for (int i = 0; i < 100; ++i) content += fmt::format("{} {}:1 50:{}\n", i % 4 == 0 ? 1 : 0, 100 + i, i % 4);
  Config config = LibsvmConfig(ModelKind::kLogistic, content);
  config.data.validation_share = 0.2;
  config.data.validation_by = HeldOutBy::kStratified;
  const Rows rows = RowsOf(*LoadAsRun(config).train);
  CHECK(std::count(rows.labels.begin(), rows.labels.begin() + 20, 1) == 5);
  std::set<uint64_t> seen;
  for (size_t row = 0; row < 100; ++row) {
    const uint64_t own = rows.sparse.ids[static_cast<size_t>(rows.sparse.offsets[row])] - 99;
    seen.insert(own);
    CHECK(rows.labels[row] == (own % 4 == 0 ? 1 : 0));
  }
  CHECK(seen.size() == 100);
}

TEST_CASE("sparse: features that are 0 are left out, and count for the width") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:0 3:2 9:-0.0\n0 1:0\n");
  CHECK(PeekShape(config).inputs == 9);
  CHECK(EpochOf(config) == std::vector<std::string>{"1: 2=2", "0:", ""});
}

TEST_CASE("sparse: lines of Vowpal Wabbit have weights, and the width that their hash has") {
  Config config = SparseConfig(DataFormat::kVw, ModelKind::kLogistic, "1 2.5 | 7 9:0.5\n-1 | 8\n");
  CHECK(PeekShape(config).inputs == 1 << 18);
  CHECK(EpochOf(config) == std::vector<std::string>{"1: 7=1 9=0.5 *2.5", "0: 8=1 *1", ""});
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    SetCache(cache, &config);
    CHECK(EpochOf(config) == std::vector<std::string>{"1: 7=1 9=0.5 *2.5", "0: 8=1 *1", ""});
  }
  config.data.cache = DataCache::kMemory;
  config.data.train.path = {WritePlain("b.txt", "1 | 7\n-1 | 8\n")};
  CHECK(EpochOf(config) == std::vector<std::string>{"1: 7=1", "0: 8=1", ""});  // all count 1
  config.data.train.path = {WritePlain("b.txt", "1 | 7\n| 8\n")};
  CHECK(EpochOf(config) == std::vector<std::string>{"1: 7=1", ""});  // a row without a label is left out
}

TEST_CASE("sparse: lines of Criteo's logs have a feature for each column") {
  std::string line = "1";
  for (int i = 0; i < 39; ++i) line += i % 5 == 0 ? "\t" : fmt::format("\t{}", i);
  Config config = SparseConfig(DataFormat::kCriteo, ModelKind::kLogistic, line + "\n" + line + "\n");
  config.data.hash_bits = 30;
  const auto rows = EpochOf(config);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == rows[1]);
  CHECK(std::count(rows[0].begin(), rows[0].end(), '=') == 39);
  CHECK(LoadAsRun(config).train->inputs() == int64_t{1} << 30);
}

TEST_CASE("sparse: the memory of rows is estimated from their features and not from their width") {
  std::string content;
  for (int i = 0; i < 50'000; ++i)
    content += fmt::format("{} {}:1 {}:2 1000000:1\n", i % 2, 1 + i % 7, 9 + i);
  Config config = LibsvmConfig(ModelKind::kLogistic, content);
  ResolveModelShape(PeekShape(config), &config);
  CHECK(config.model.inputs == 1'000'000);
  const DataSize size = EstimateDataSize(config);
  CHECK(*size.train_rows > 45'000);
  CHECK(*size.train_rows < 60'000);
  CHECK(size.bytes < 50'000 * 60.0);
  config.data.cache = DataCache::kNone;
  config.data.shuffle_rows = 1000;
  CHECK(EstimateDataSize(config).bytes < 2 * 1000 * 60.0);
}

}  // namespace
}  // namespace dtrain
