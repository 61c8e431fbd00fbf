#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

// Rows 0, 1, 2, ... of one input whose value and target are the row number: what was read shows.
class CountingRows : public Fetch {
 public:
  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override {
    for (int64_t i = 0; i < rows.size; ++i) out.inputs[i] = out.targets[i] = static_cast<float>(rows[i]);
  }
};

std::shared_ptr<const DataSet> Counting(std::optional<int64_t> rows) {
  return std::make_shared<DataSet>(SetForm{1, std::nullopt, rows}, std::make_shared<CountingRows>());
}

std::vector<float> TargetsOf(const Batch& batch) { return {batch.targets, batch.targets + batch.rows}; }

Config Batches(int64_t batch_size, std::optional<int64_t> epochs) {
  Config config;
  config.train.batch_size = batch_size;
  config.train.epochs = epochs;
  config.data.shuffle = false;
  return config;
}

// A config for IDX files of `count` images of 2 x 3 pixels with labels 0, 1, 0, 1, ...
Config Images(const std::string& name, uint32_t count, ModelKind kind) {
  std::vector<uint8_t> labels(count);
  for (uint32_t i = 0; i < count; ++i) labels[i] = i % 2;
  Config config = IdxConfig(WriteGzip(name + "-images.gz", IdxImageContent(count, 2, 3)),
                            WriteGzip(name + "-labels.gz", IdxLabelContent(labels)));
  config.model.kind = kind;
  return config;
}

Config SyntheticConfig(SyntheticName name, ModelKind kind) {
  Config config;
  config.model.kind = kind;
  config.data.train.format = DataFormat::kSynthetic;
  config.data.train.name = name;
  return config;
}

TEST_CASE("batch source: ends after its epochs and says where each batch lies") {
  const auto source = MakeBatchSource(Batches(4, 2), Counting(10), 0, 1);
  Batch batch;
  std::vector<std::vector<int64_t>> seen;  // epoch, batch, rows
  while (source->Next(&batch)) seen.push_back({source->epoch(), source->batch_in_epoch(), batch.rows});
  CHECK(seen ==
        std::vector<std::vector<int64_t>>{{0, 0, 4}, {0, 1, 4}, {0, 2, 2}, {1, 0, 4}, {1, 1, 4}, {1, 2, 2}});
  CHECK(source->batches_per_epoch() == 3);
  CHECK_FALSE(source->Next(&batch));
}

TEST_CASE(
    "batch source: with split dynamic batches are those of leases, and there are more once one has come") {
  Config config = Batches(4, 2);
  config.data.split = Split::kDynamic;
  const auto source = MakeBatchSource(config, Counting(22), 0, 2);  // 6 batches
  Batch batch;
  source->ReadAhead();
  CHECK((source->ahead() == nullptr));
  CHECK_FALSE(source->Next(&batch));
  source->Take({0, 0, 1, 2, {}});
  REQUIRE(source->Next(&batch));
  CHECK(TargetsOf(batch) == std::vector<float>{4, 5, 6, 7});
  REQUIRE(source->Next(&batch));
  source->ReadAhead();
  CHECK_FALSE(source->Next(&batch));
  CHECK(source->batch_in_epoch() == 1);
  CHECK(source->batches_per_epoch() == 2);
  source->Take({2, 1, 5, 1, {}});
  source->ReadAhead();
  CHECK(source->epoch() == 0);  // of the batch that was returned
  CHECK(source->batch_in_epoch() == 1);
  source->Take({2, 1, 0, 3, {}});  // instead
  source->Seek(2);
  REQUIRE(source->Next(&batch));
  CHECK(TargetsOf(batch) == std::vector<float>{0, 1, 2, 3});
  CHECK(source->epoch() == 1);
  CHECK(source->batches_per_epoch() == 3);
  source->Follow(DataPlan());
  CHECK_FALSE(source->Next(&batch));
}

TEST_CASE("batch source: with several devices a step's batch is one of each, and a seek counts steps") {
  Config config = Batches(4, 2);
  config.device.ids = {0, 1};
  const auto source = MakeBatchSource(config, Counting(22), 0, 2);  // batches 0, 2 and 4 of 6
  Batch batch;
  std::vector<std::vector<int64_t>> seen;  // epoch, batch, rows, first row, last row
  while (source->Next(&batch)) {
    const std::vector<float> rows = TargetsOf(batch);
    seen.push_back({source->epoch(), source->batch_in_epoch(), batch.rows, static_cast<int64_t>(rows.front()),
                    static_cast<int64_t>(rows.back())});
  }
  CHECK(seen == std::vector<std::vector<int64_t>>{
                    {0, 0, 8, 0, 11}, {0, 1, 4, 16, 19}, {1, 0, 8, 0, 11}, {1, 1, 4, 16, 19}});
  CHECK(source->batches_per_epoch() == 2);
  source->Seek(1);
  REQUIRE(source->Next(&batch));
  CHECK(TargetsOf(batch) == std::vector<float>{16, 17, 18, 19});
}

TEST_CASE("batch source: with several devices data without end are dealt in batches of one device") {
  Config config = Batches(2, std::nullopt);
  config.device.ids = {0, 1};
  const auto source = MakeBatchSource(config, Counting(std::nullopt), 1, 3);
  Batch batch;
  CHECK(source->Next(&batch));
  CHECK(TargetsOf(batch) == std::vector<float>{2, 3, 8, 9});
  CHECK(source->Next(&batch));
  CHECK(TargetsOf(batch) == std::vector<float>{14, 15, 20, 21});
}

TEST_CASE("batch source: a device without a batch in an epoch is refused") {
  Config config = Batches(4, 1);
  config.device.ids = {0, 1, 2};
  CHECK_NOTHROW(MakeBatchSource(config, Counting(21), 0, 2));
  CHECK(UserErrorOf([&] { MakeBatchSource(config, Counting(20), 0, 2); }) ==
        "train.batch_size = 4; makes 5 batches of 20 training rows, and 2 workers of 3 devices need at least "
        "6. Use a smaller batch or fewer device.ids.");
}

TEST_CASE("batch source: memory for a batch is taken when one is read, and for no more rows than there are") {
  const int64_t huge = int64_t{1} << 40;
  CHECK_NOTHROW(MakeBatchSource(Batches(huge, std::nullopt), Counting(std::nullopt), 0, 1));
  Config shuffled = Batches(huge, 1);
  shuffled.data.shuffle = true;
  CHECK_NOTHROW(MakeBatchSource(shuffled, Counting(UINT32_MAX), 0, 1));
  Batch batch;
  CHECK(MakeBatchSource(Batches(huge, 1), Counting(10), 0, 1)->Next(&batch));
  CHECK(batch.rows == 10);
}

TEST_CASE(
    "batch source: the largest batch is that of training or of an evaluation, whichever has more rows") {
  Config config = Batches(100, 1);
  CHECK(MaxBatchRows(config, std::nullopt, 10) == 100);
  CHECK(MaxBatchRows(config, 1000, 10) == 100);
  CHECK(MaxBatchRows(config, 30, 10) == 30);
  CHECK(MaxBatchRows(config, 30, 50) == 50);
  config.data.validation = 25;
  CHECK(MaxBatchRows(config, 30, 0) == 25);
}

TEST_CASE("batch source: without train.epochs a finite set is repeated") {
  const auto source = MakeBatchSource(Batches(4, std::nullopt), Counting(8), 0, 1);
  Batch batch;
  for (int64_t step = 0; step < 11; ++step) CHECK(source->Next(&batch));
  CHECK(source->epoch() == 5);
  CHECK(TargetsOf(batch) == std::vector<float>{0, 1, 2, 3});
}

TEST_CASE("batch source: the rows held out are never trained on") {
  Config config = Batches(3, 1);
  config.data.validation = 4;
  config.data.shuffle = true;
  std::vector<float> rows = FirstFeatures(*MakeBatchSource(config, Counting(10), 0, 1));
  std::sort(rows.begin(), rows.end());
  CHECK(rows == std::vector<float>{4, 5, 6, 7, 8, 9});
}

TEST_CASE("batch source: workers of a set without end read rows of their own, after those held out") {
  Config config = Batches(2, std::nullopt);
  config.data.validation = 100;
  std::set<float> rows;
  for (int worker = 0; worker < 3; ++worker) {
    const auto source = MakeBatchSource(config, Counting(std::nullopt), worker, 3);
    Batch batch;
    for (int step = 0; step < 5; ++step) {
      CHECK(source->Next(&batch));
      rows.insert(batch.targets, batch.targets + batch.rows);
    }
    CHECK(source->batches_per_epoch() == 0);
    CHECK(source->epoch() == 0);
    CHECK(source->batch_in_epoch() == 4);
  }
  CHECK(rows.size() == 30);
  CHECK(*rows.begin() == 100);
  CHECK(*rows.rbegin() == 129);
}

TEST_CASE("batch source: after Seek the batches are those of an unbroken run") {
  Config config = Batches(3, 4);
  config.data.shuffle = true;
  for (const std::optional<int64_t> size : {std::optional<int64_t>(20), std::optional<int64_t>()}) {
    const auto unbroken = MakeBatchSource(config, Counting(size), 1, 2);
    const auto resumed = MakeBatchSource(config, Counting(size), 1, 2);
    Batch expected, got;
    for (int step = 0; step <= 7; ++step) CHECK(unbroken->Next(&expected));
    resumed->Seek(7);
    CHECK(resumed->Next(&got));
    CHECK(TargetsOf(got) == TargetsOf(expected));
    CHECK(resumed->epoch() == unbroken->epoch());
    CHECK(resumed->batch_in_epoch() == unbroken->batch_in_epoch());
  }
}

TEST_CASE("batch source: too few batches for the workers is a user error") {
  const auto error = [](const Config& config, int workers) {
    return UserErrorOf([&] { MakeBatchSource(config, Counting(10), 0, workers); });
  };
  CHECK(error(Batches(4, 1), 3).empty());
  CHECK(Has(error(Batches(4, 1), 4),
            "train.batch_size = 4; makes 3 batches of 10 training rows, and 4 workers need at least 4."));
  Config dropping = Batches(11, 1);
  CHECK(error(dropping, 1).empty());
  dropping.data.last_batch = LastBatch::kDrop;
  CHECK(Has(error(dropping, 1), "makes 0 batches of 10 training rows, and 1 worker needs at least 1."));
  CHECK(Has(error(Batches(10, 1), 2), "makes 1 batch of 10 training rows, and 2 workers need at least 2."));
  Config dynamic = Batches(4, 1);
  dynamic.data.split = Split::kDynamic;
  CHECK(error(dynamic, 4).empty());
  Config holding = Batches(1, 1);
  holding.data.validation = 10;
  CHECK(Has(error(holding, 1), "data.validation = 10; must be below the number of training rows, 10"));
}

TEST_CASE("batch source: threads that share a set get what they would get alone") {
  Config config = SyntheticConfig(SyntheticName::kDigits, ModelKind::kSoftmax);
  config.data.train.rows = 60;
  config.train.batch_size = 10;
  config.train.epochs = 3;
  const LoadedData data = LoadData(config);
  const auto sum_of = [&](int worker) {
    const auto source = MakeBatchSource(config, data.train, worker, 2);
    double sum = 0;
    for (Batch batch; source->Next(&batch);) {
      REQUIRE(batch.bytes.rows.size == batch.rows);
      for (int64_t row = 0; row < batch.rows; ++row) {
        const uint8_t* bytes = batch.bytes.table.row(batch.bytes.rows[row]);
        for (int64_t i = 0; i < batch.columns; ++i) sum += bytes[i] * static_cast<double>(row + i);
      }
    }
    return sum;
  };
  const double alone[] = {sum_of(0), sum_of(1)};
  double shared[2] = {};
  std::thread first([&] { shared[0] = sum_of(0); }), second([&] { shared[1] = sum_of(1); });
  first.join();
  second.join();
  CHECK(shared[0] == alone[0]);
  CHECK(shared[1] == alone[1]);
}

TEST_CASE("sequential source: gives the asked rows once, in order") {
  CHECK(FirstFeatures(*MakeSequentialSource(Counting(std::nullopt), 5, 7, 3)) ==
        std::vector<float>{5, 6, 7, 8, 9, 10, 11});
}

TEST_CASE("shape: the header of the images tells inputs and rows") {
  Config config = Images("peek", 5, ModelKind::kSoftmax);
  config.data.validation = 2;
  config.data.train.labels = {"/not/read"};
  const DataShape shape = PeekShape(config);
  CHECK(shape.inputs == 6);
  CHECK(shape.classes == 10);
  CHECK(shape.rows == 3);
  ResolveModelShape(shape, &config);
  CHECK(config.model.inputs == 6);
  CHECK(config.model.outputs == 10);
}

TEST_CASE("shape: where the files are missing model.inputs counts, and without it that is a user error") {
  Config config = Images("gone", 5, ModelKind::kSoftmax);
  config.data.train.images = {"/no/such/images"};
  CHECK(Has(UserErrorOf([&] { PeekShape(config); }), "/no/such/images: cannot be opened"));
  config.model.inputs = 6;
  const DataShape shape = PeekShape(config);
  CHECK(shape.inputs == 6);
  CHECK(shape.classes == 10);
  CHECK_FALSE(shape.rows.has_value());
}

TEST_CASE("shape: a task with the files and one without come to the same model") {
  for (const ModelKind kind : {ModelKind::kSoftmax, ModelKind::kLogistic}) {
    Config with = Images("same", 5, kind), without = with;
    with.model.inputs = without.model.inputs = 6;
    without.data.train.images = {"/no/such/images"};
    ResolveModelShape(PeekShape(with), &with);
    ResolveModelShape(PeekShape(without), &without);
    CHECK(with.model.inputs == without.model.inputs);
    CHECK(with.model.outputs == without.model.outputs);
  }
}

TEST_CASE("shape: synthetic data tells its own") {
  Config digits = SyntheticConfig(SyntheticName::kDigits, ModelKind::kSoftmax);
  ResolveModelShape(PeekShape(digits), &digits);
  CHECK(digits.model.inputs == 784);
  CHECK(digits.model.outputs == 10);
  Config linear = SyntheticConfig(SyntheticName::kLinear, ModelKind::kLinear);
  CHECK_FALSE(PeekShape(linear).rows.has_value());
  ResolveModelShape(PeekShape(linear), &linear);
  CHECK(linear.model.inputs == 1);
  CHECK(linear.model.outputs == 1);
}

TEST_CASE("shape: what model and data disagree on is a user error that names both") {
  const auto error = [](Config config) {
    return UserErrorOf([&] { ResolveModelShape(PeekShape(config), &config); });
  };
  Config config = Images("disagree", 5, ModelKind::kSoftmax);
  config.model.inputs = 7;
  CHECK(Has(error(config), "model.inputs = 7; must be 6, as data.train has"));
  CHECK(Has(error(Images("disagree", 5, ModelKind::kLinear)), "model.kind = linear; needs real targets"));
  CHECK(Has(error(SyntheticConfig(SyntheticName::kLinear, ModelKind::kSoftmax)),
            "model.kind = softmax; needs classes"));
  CHECK(Has(error(SyntheticConfig(SyntheticName::kDigits, ModelKind::kLogistic)),
            "has 10 classes. Try softmax."));
  Config few = SyntheticConfig(SyntheticName::kDigits, ModelKind::kSoftmax);
  few.model.outputs = 9;
  CHECK(Has(error(few), "model.outputs = 9; must be at least 10"));
  Config all_held_out = Images("held", 5, ModelKind::kSoftmax);
  all_held_out.data.validation = 5;
  CHECK(Has(error(all_held_out), "data.validation = 5; must be below the number of training rows, 5"));
}

TEST_CASE("load: labels are checked against the model's outputs") {
  Config config = Images("load", 5, ModelKind::kLogistic);
  CHECK(LoadData(config).train->rows() == 5);
  config.data.train.labels = {WritePlain("two", IdxLabelContent({0, 1, 2, 0, 1}))};
  CHECK(Has(LoadError(config), "label of row 2 = 2; must be a whole number in 0..1 (model.kind = logistic"));
  config.model.kind = ModelKind::kSoftmax;
  config.model.outputs = 3;
  CHECK(LoadData(config).train->classes() == 3);
  config.model.outputs = 2;
  CHECK(Has(LoadError(config), "must be a whole number in 0..1 (model.outputs = 2"));
}

TEST_CASE("load: a test set is optional and must have as many inputs") {
  Config config = Images("train", 5, ModelKind::kSoftmax);
  CHECK((LoadData(config).test == nullptr));
  config.data.test = Images("test", 3, ModelKind::kSoftmax).data.train;
  CHECK(LoadData(config).test->rows() == 3);
  config.data.test.images = {WritePlain("other", IdxImageContent(3, 2, 2))};
  CHECK(Has(LoadError(config), "data.test has 4 inputs and data.train has 6"));
}

TEST_CASE("load: digits have a test set of their own, and more than memory holds is refused") {
  Config config = SyntheticConfig(SyntheticName::kDigits, ModelKind::kSoftmax);
  config.data.train.rows = 10;
  config.data.test = config.data.train;
  const LoadedData data = LoadData(config);
  CHECK(RowsOf(*data.train, {0}).features != RowsOf(*data.test, {0}).features);
  config.data.train.rows = 1000000000;
  CHECK(Has(LoadError(config), "data.train.rows = 1000000000; must be <= 10000000"));
}

TEST_CASE("batch source: reading ahead changes neither the batches nor where the source stands") {
  const auto plain = MakeBatchSource(Batches(3, 2), Counting(10), 0, 1);
  const auto ahead = MakeBatchSource(Batches(3, 2), Counting(10), 0, 1);
  Batch expected, batch;
  while (plain->Next(&expected)) {
    REQUIRE(ahead->Next(&batch));
    CHECK(TargetsOf(batch) == TargetsOf(expected));
    ahead->ReadAhead();
    ahead->ReadAhead();
    CHECK(ahead->epoch() == plain->epoch());
    CHECK(ahead->batch_in_epoch() == plain->batch_in_epoch());
  }
  CHECK_FALSE(ahead->Next(&batch));
  ahead->Seek(1);
  plain->Seek(1);
  REQUIRE(plain->Next(&expected));
  REQUIRE(ahead->Next(&batch));
  CHECK(batch.targets[0] == expected.targets[0]);
}

}  // namespace
}  // namespace dtrain
