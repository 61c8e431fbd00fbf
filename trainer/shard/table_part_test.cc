#include "trainer/shard/table_part.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/shard/range_part.h"
#include "trainer/shard/shard_test_util.h"
#include "trainer/table/row_pieces.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr OptimizerKind kKinds[] = {OptimizerKind::kSgd,  OptimizerKind::kMomentum, OptimizerKind::kAdagrad,
                                    OptimizerKind::kAdam, OptimizerKind::kAdamw,    OptimizerKind::kRmsprop,
                                    OptimizerKind::kFtrl};

Config JobOf(OptimizerKind kind, int64_t inputs = 200, int64_t outputs = 3) {
  Config config = LinearCluster(1, 2, 10);
  config.model.kind = ModelKind::kSoftmax;
  config.model.inputs = inputs;
  config.model.outputs = outputs;
  config.train.optimizer.kind = kind;
  config.train.optimizer.learning_rate = 0.1;
  config.train.optimizer.clip_value = 0.9;
  return config;
}

// A table on one ps, and the same model as a dense range, which get the same gradients.
class Beside {
 public:
  explicit Beside(const Config& config)
      : config_(config),
        table_layout_(TableLayoutOf(config.model, 1)),
        dense_layout_(PlaceVariables(ModelVariables(config.model), 1, PlacementConfig())),
        table_(config_, table_layout_, 0),
        dense_(config_, dense_layout_, 0),
        width_(static_cast<size_t>(table_layout_.table->width())) {
    table_.Initialise();
    dense_.Initialise();
  }

  // One update by a gradient of some features and the bias.
  void Apply(const std::vector<uint64_t>& features, std::mt19937* random) {
    std::map<uint64_t, std::vector<float>> rows;
    std::vector<float> flat(static_cast<size_t>(dense_layout_.size));
    for (const uint64_t feature : features) {
      std::vector<float>& values = rows[table_layout_.table->RowOf(feature)];
      for (size_t i = 0; i < width_; ++i) {
        values.push_back(static_cast<float>((*random)() % 2001) / 1000 - 1);
        flat[DenseAt(feature) + i] = values.back();
      }
    }
    KeyList keys;
    std::vector<float> gradient;
    for (const auto& [row, values] : rows) {
      keys.push_back(row);
      gradient.insert(gradient.end(), values.begin(), values.end());
    }
    table_.Apply(0, {Bytes(gradient), keys});
    dense_.Apply(0, net::TensorView{reinterpret_cast<const std::byte*>(flat.data()), dense_.bytes(0)});
  }

  // The features whose weights are not those of the dense model, bit by bit.
  int Differ() {
    KeyList keys(table_layout_.table->rows());
    std::iota(keys.begin(), keys.end(), 0);
    const net::LentBytes rows = table_.Lend(0, keys);
    const net::LentBytes dense = dense_.Lend(0);
    int differ = 0;
    for (uint64_t feature = 0; feature <= static_cast<uint64_t>(*config_.model.inputs); ++feature) {
      const auto* const here =
          static_cast<const float*>(rows.data) + table_layout_.table->RowOf(feature) * width_;
      const auto* const there = static_cast<const float*>(dense.data) + DenseAt(feature);
      differ += std::memcmp(here, there, width_ * sizeof(float)) != 0;
    }
    for (const net::LentBytes& lent : {rows, dense}) lent.release(const_cast<void*>(lent.data), lent.context);
    return differ;
  }

  static net::TensorView Bytes(const std::vector<float>& values) {
    return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float)};
  }
  TablePart& table() { return table_; }
  uint64_t bias() const { return static_cast<uint64_t>(*config_.model.inputs); }

 private:
  // Where the row of a feature is in the flat vector; the bias is behind the features.
  size_t DenseAt(uint64_t feature) const { return static_cast<size_t>(feature) * width_; }

  const Config config_;
  const Layout table_layout_;
  const Layout dense_layout_;
  TablePart table_;
  RangePart dense_;
  const size_t width_;
};

std::vector<uint64_t> AllFeatures(const Beside& both) {
  std::vector<uint64_t> all(both.bias() + 1);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST_CASE("table part: where every row has a gradient in each step it has the bits of a dense model") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    for (const bool decays : {false, true}) {
      Config config = JobOf(kind);
      config.train.optimizer.decay_biases = decays;
      if (kind != OptimizerKind::kAdamw) config.train.optimizer.l2 = 0.01;
      Beside both(config);
      std::mt19937 random(1);
      for (int step = 0; step < 30; ++step) both.Apply(AllFeatures(both), &random);
      CHECK(both.Differ() == 0);
    }
  }
}

TEST_CASE(
    "table part: rows that some steps leave out have the bits of a dense model where zeros change nothing") {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kFtrl}) {
    CAPTURE(static_cast<int>(kind));
    Beside both(JobOf(kind));
    std::mt19937 random(2);
    for (int step = 0; step < 60; ++step) {
      std::vector<uint64_t> some = {both.bias()};
      for (uint64_t feature = 0; feature < both.bias(); ++feature) {
        if (random() % 10 == 0) some.push_back(feature);
      }
      both.Apply(some, &random);
    }
    CHECK(both.Differ() == 0);
  }
}

TEST_CASE("table part: rows begin as those of a dense model, and reading one takes no memory") {
  Config config = JobOf(OptimizerKind::kAdagrad);
  config.model.init.kind = InitKind::kNormal;
  config.model.init.bias = BiasInit::kSame;
  Beside both(config);
  CHECK(both.Differ() == 0);
  CHECK(both.table().rows_written() == 0);
}

// All rows of a table that have changed, with their slots, as a snapshot has them. `release`: as they are
// read.
std::map<uint64_t, std::vector<float>> RowsOf(Snapshot& snapshot, const Config& config, const Layout& layout,
                                              bool release = false) {
  std::map<uint64_t, std::vector<float>> rows;
  const int64_t width = layout.table->width(), values = RowValues(config, width);
  const RowPieces pieces(layout.table->PartOf(0), values);
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  for (int64_t piece = 0; piece < snapshot.piece_count(); ++piece) {
    const std::optional<Snapshot::Held> read = snapshot.Read(piece, scratch.data());
    REQUIRE(read);
    const RowRange range = pieces.At(piece);
    CHECK(ReadRowPiece(read->bytes, range, width, values, range, [&](uint64_t row, const float* of_row) {
            rows.emplace(row, std::vector<float>(of_row, of_row + values));
          }) == "");
    if (release) snapshot.ReleaseBefore(piece + 1);
  }
  return rows;
}

using PieceBytes = std::vector<std::vector<std::byte>>;

PieceBytes BytesOf(const Snapshot& snapshot) {
  PieceBytes all;
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  for (int64_t piece = 0; piece < snapshot.piece_count(); ++piece) {
    const net::TensorView bytes = snapshot.Read(piece, scratch.data())->bytes;
    all.emplace_back(bytes.data, bytes.data + bytes.size);
  }
  return all;
}

size_t SizeOf(const PieceBytes& pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), size_t{0},
                         [](size_t sum, const std::vector<std::byte>& piece) { return sum + piece.size(); });
}

// The rows of a snapshot of all together with those of one of the changes since.
std::map<uint64_t, std::vector<float>> RowsOf(const PieceBytes& delta, const PieceBytes& base,
                                              const Config& config, const Layout& layout) {
  std::map<uint64_t, std::vector<float>> rows;
  const int64_t width = layout.table->width(), values = RowValues(config, width);
  const RowPieces pieces(layout.table->PartOf(0), values);
  for (size_t i = 0; i < base.size(); ++i) {
    const RowRange range = pieces.At(static_cast<int64_t>(i));
    CHECK(ReadDeltaPiece({delta[i].data(), delta[i].size()}, {base[i].data(), base[i].size()}, range, width,
                         values, range, [&](uint64_t row, const float* of_row) {
                           rows.emplace(row, std::vector<float>(of_row, of_row + values));
                         }) == "");
  }
  return rows;
}

class LargeTable {
 public:
  explicit LargeTable(int64_t inputs = 1 << 20, int64_t delta = 0,
                      OptimizerKind optimizer = OptimizerKind::kAdam)
      : config_(JobOf(optimizer, inputs, 1)), layout_(TableLayoutOf(config_.model, 1)) {
    config_.model.kind = ModelKind::kLogistic;
    config_.checkpoint.delta = delta;
    shard_ = std::make_unique<TablePart>(config_, layout_, 0);
    shard_->Initialise();
  }
  void Touch(int rows) {
    std::map<uint64_t, float> some;
    for (int i = 0; i < rows; ++i)
      some[random_() % layout_.table->rows()] = 0.001f * static_cast<float>(i + 1);
    KeyList keys;
    std::vector<float> gradient;
    for (const auto& [row, value] : some) {
      keys.push_back(row);
      gradient.push_back(value);
    }
    shard_->Apply(0, {Beside::Bytes(gradient), keys});
  }
  TablePart& shard() { return *shard_; }
  const Config& config() const { return config_; }
  const Layout& layout() const { return layout_; }

 private:
  Config config_;
  Layout layout_;
  std::unique_ptr<TablePart> shard_;
  std::mt19937_64 random_{5};
};

TEST_CASE("table part: a snapshot stays as it was while rows change, and fills another table") {
  LargeTable table;
  for (int i = 0; i < 20; ++i) table.Touch(500);
  const std::shared_ptr<Snapshot> snapshot = table.shard().TakeSnapshot();
  const auto before = RowsOf(*snapshot, table.config(), table.layout());
  CHECK(before.size() > 9000);
  const std::string report = std::to_string(table.shard().Report().parts[0].sum.crc);
  for (int i = 0; i < 20; ++i) table.Touch(500);
  CHECK(RowsOf(*snapshot, table.config(), table.layout()) == before);
  CHECK(std::to_string(table.shard().Report().parts[0].sum.crc) != report);

  TablePart other(table.config(), table.layout(), 0);
  PutRows(&other, table.layout().table->PartOf(0), table.layout().table->width(), before);
  other.SetRestored(20);
  CHECK(other.version(0) == 20);
  CHECK(std::to_string(other.Report().parts[0].sum.crc) == report);
  const std::shared_ptr<Snapshot> again = other.TakeSnapshot();
  CHECK(RowsOf(*again, table.config(), table.layout()) == before);
}

TEST_CASE(
    "table part: a snapshot of changes has what has changed since the latest of all, beside updates too") {
  // One lies in memory as a whole, the other does not.
  for (const int64_t inputs : {int64_t{1} << 16, int64_t{1} << 25}) {
    LargeTable table(inputs, /*delta=*/1);
    for (int i = 0; i < 20; ++i) table.Touch(500);
    const PieceBytes base = BytesOf(*table.shard().TakeSnapshot());
    for (int saves = 0; saves < 2; ++saves) {
      table.Touch(50);
      const std::shared_ptr<Snapshot> snapshot = table.shard().TakeSnapshot(SnapshotOf::kChanges);
      const PieceBytes delta = BytesOf(*snapshot);
      CHECK(SizeOf(delta) > 50 * 3 * sizeof(float));
      CHECK((saves > 0 || SizeOf(delta) < SizeOf(base) / 5));
      for (int i = 0; i < 3; ++i) table.Touch(500);
      CHECK(BytesOf(*snapshot) == delta);
      table.shard().Drop(snapshot);
    }
    const PieceBytes delta = BytesOf(*table.shard().TakeSnapshot(SnapshotOf::kChanges));
    const std::shared_ptr<Snapshot> all = table.shard().TakeSnapshot();
    CHECK(RowsOf(delta, base, table.config(), table.layout()) ==
          RowsOf(*all, table.config(), table.layout()));
    // Nothing has changed since that one.
    CHECK(SizeOf(BytesOf(*table.shard().TakeSnapshot(SnapshotOf::kChanges))) == 0);
  }
}

TEST_CASE("table part: of a restore that is given up no row stays") {
  // One lies in memory as a whole, the other does not.
  for (const int64_t inputs : {int64_t{1} << 16, int64_t{1} << 25}) {
    LargeTable table(inputs);
    TablePart shard(table.config(), table.layout(), 0);
    const std::vector<float> first = {1, 2, 3}, second = {4, 5, 6};
    const RowRange rows = table.layout().table->PartOf(0);
    const int64_t width = table.layout().table->width();
    shard.BeginRestore(1);
    PutRows(&shard, rows, width, {{7, first}, {8, first}});
    shard.BeginRestore(1);
    PutRows(&shard, rows, width, {{8, second}});
    shard.SetRestored(1);
    CHECK(RowsOf(*shard.TakeSnapshot(), table.config(), table.layout()) ==
          std::map<uint64_t, std::vector<float>>{{8, second}});
    shard.BeginRestore(1);  // its values count
    CHECK(RowsOf(*shard.TakeSnapshot(), table.config(), table.layout()).size() == 1);
  }
}

TEST_CASE("table part: a row that has its initial values again is not that of the base any more") {
  LargeTable table(1 << 16, 1, OptimizerKind::kSgd);
  const KeyList keys = {77, 5000};
  const auto update = [&](float gradient) {
    const std::vector<float> values(keys.size(), gradient);
    table.shard().Apply(0, {Beside::Bytes(values), keys});
  };
  update(0.5f);
  const PieceBytes base = BytesOf(*table.shard().TakeSnapshot());
  CHECK(RowsOf(PieceBytes(base.size()), base, table.config(), table.layout()).size() == 2);
  update(-0.5f);
  const PieceBytes delta = BytesOf(*table.shard().TakeSnapshot(SnapshotOf::kChanges));
  CHECK(SizeOf(delta) > 0);
  CHECK(RowsOf(delta, base, table.config(), table.layout()).empty());
}

TEST_CASE("table part: a piece that is released is not copied any more, and a dropped snapshot has none") {
  LargeTable table;
  table.Touch(500);
  const std::shared_ptr<Snapshot> snapshot = table.shard().TakeSnapshot();
  REQUIRE(snapshot->piece_count() > 2);
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  snapshot->ReleaseBefore(1);
  CHECK_FALSE(snapshot->Read(0, scratch.data()));
  CHECK(snapshot->Read(1, scratch.data()));
  CHECK_FALSE(snapshot->Read(snapshot->piece_count(), scratch.data()));
  table.shard().Drop(snapshot);
  CHECK_FALSE(snapshot->Read(1, scratch.data()));
  CHECK_FALSE(snapshot->Lend(1));
  table.Touch(500);
}

// What is copied for a snapshot is found by piece: to look at all copies for each of 65,536 pieces would take
// minutes.
TEST_CASE("table part: a snapshot of 2^32 rows is read piece by piece after many of them have changed") {
  LargeTable table((int64_t{1} << 32) - 1);
  table.Touch(1000);
  const std::shared_ptr<Snapshot> snapshot = table.shard().TakeSnapshot();
  const auto before = RowsOf(*snapshot, table.config(), table.layout());
  table.Touch(50'000);
  table.Touch(1000);
  CHECK(RowsOf(*snapshot, table.config(), table.layout(), /*release=*/true) == before);
  CHECK(before.size() == 1000);
}

TEST_CASE("table part: a thread reads a snapshot while rows change") {
  LargeTable table;
  for (int i = 0; i < 5; ++i) table.Touch(2000);
  const std::shared_ptr<Snapshot> snapshot = table.shard().TakeSnapshot();
  std::map<uint64_t, std::vector<float>> read;
  std::thread reader([&] { read = RowsOf(*snapshot, table.config(), table.layout()); });
  for (int i = 0; i < 50; ++i) table.Touch(2000);
  reader.join();
  CHECK(RowsOf(*snapshot, table.config(), table.layout()) == read);
}

TEST_CASE("table part: the version before is there where rounds wait for a lost worker") {
  Config config = JobOf(OptimizerKind::kSgd, 50, 1);
  config.model.kind = ModelKind::kLogistic;
  config.train.mode = TrainMode::kSync;
  config.failure.worker_lost = WorkerLost::kWait;
  const Layout layout = TableLayoutOf(config.model, 1);
  TablePart shard(config, layout, 0);
  shard.Initialise();
  CHECK_FALSE(shard.has_previous(0));
  const KeyList first = {1, 5, 9}, second = {5, 7}, all = {1, 5, 7, 9};
  const std::vector<float> ones = {0.5f, 0.5f, 0.5f};
  const auto weights = [&](const net::LentBytes& lent) {
    const auto* const values = static_cast<const float*>(lent.data);
    std::vector<float> copy(values, values + lent.size / sizeof(float));
    lent.release(const_cast<void*>(lent.data), lent.context);
    return copy;
  };
  RoundGradients round;
  round.Add({Beside::Bytes(ones), first}, 10);
  shard.ApplyMean(0, round);
  const std::vector<float> now = weights(shard.Lend(0, all));
  CHECK(shard.has_previous(0));
  CHECK(weights(shard.LendPrevious(0, all)) == std::vector<float>(4));
  round.Clear();
  const std::vector<float> twos = {1, 1};
  round.Add({Beside::Bytes(twos), second}, 10);
  shard.ApplyMean(0, round);
  CHECK(weights(shard.LendPrevious(0, all)) == now);
  CHECK(weights(shard.Lend(0, all)) != now);
  round.Clear();
  shard.ApplyMean(0, round);  // of no rows: the same weights, a new version
  CHECK(shard.version(0) == 3);
  CHECK(weights(shard.LendPrevious(0, all)) == weights(shard.Lend(0, all)));
}

TEST_CASE("table part: a value that is not finite is named by its feature") {
  Config config = JobOf(OptimizerKind::kSgd, 50, 2);
  const Layout layout = TableLayoutOf(config.model, 1);
  TablePart shard(config, layout, 0);
  shard.Initialise();
  const KeyList keys = {layout.table->RowOf(17)};
  config.train.optimizer.clip_value.reset();
  const std::vector<float> gradient = {1, std::numeric_limits<float>::quiet_NaN()};
  shard.Apply(0, {Beside::Bytes(gradient), keys});
  CHECK(shard.Report().non_finite == "weights/W1[17, 1] is nan");
  const KeyList bias = {layout.table->bias_row()};
  TablePart other(config, layout, 0);
  other.Initialise();
  other.Apply(0, {Beside::Bytes(gradient), bias});
  CHECK(other.Report().non_finite == "biases/b1[1] is nan");
}

TEST_CASE("table part: a report is made in parts, and begins anew after an update") {
  LargeTable table;
  for (int i = 0; i < 40; ++i) table.Touch(500);
  const uint32_t whole = table.shard().Report().parts[0].sum.crc;
  int parts = 1;
  std::optional<ShardReport> report;
  while (!(report = table.shard().Report(TimePoint::min()))) ++parts;
  CHECK(parts >= 4);
  CHECK(report->parts.size() == 1);
  CHECK(report->parts[0].sum.crc == whole);

  CHECK_FALSE(table.shard().Report(TimePoint::min()));
  table.Touch(500);
  const uint32_t anew = table.shard().Report().parts[0].sum.crc;
  CHECK(anew != whole);
  CHECK(anew == table.shard().Report().parts[0].sum.crc);
}

TEST_CASE("table part: a few rows of many take memory for few") {
  Config config = JobOf(OptimizerKind::kAdagrad, (int64_t{1} << 28) - 1, 1);
  config.model.kind = ModelKind::kLogistic;
  const Layout layout = TableLayoutOf(config.model, 1);
  TablePart shard(config, layout, 0);
  shard.Initialise();
  KeyList keys;
  for (uint64_t i = 0; i < 1000; ++i) keys.push_back(i * 200000);
  const std::vector<float> ones(keys.size(), 1);
  shard.Apply(0, {Beside::Bytes(ones), keys});
  CHECK(shard.rows_written() == 1000 * 64);
  CHECK(shard.Report().parts[0].sum.bytes == 1000 * 12);
}

}  // namespace
}  // namespace dtrain
