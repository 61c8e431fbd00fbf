#include "trainer/shard/hash_part.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "net/channel.h"
#include "trainer/shard/table_part.h"
#include "trainer/table/hash_pieces.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

Config JobOf(OptimizerKind kind, TableKind table) {
  Config config = LinearCluster(1, 2, 10);
  config.model.kind = ModelKind::kSoftmax;
  config.model.inputs = 200;
  config.model.outputs = 3;
  config.model.table = table;
  config.train.optimizer.kind = kind;
  config.train.optimizer.learning_rate = 0.1;
  return config;
}

net::TensorView Bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float)};
}

// A shard, and what is done with it by features, of which number 200 is the bias.
template <typename Shard>
class Job {
 public:
  explicit Job(const Config& config)
      : config_(config), layout_(TableLayoutOf(config_.model, 1)), shard_(config_, layout_, 0) {
    shard_.Initialise();
  }
  // A gradient of these features whose values are functions of them and of `seed`.
  void Apply(const std::vector<uint64_t>& features, unsigned seed) {
    std::map<uint64_t, std::vector<float>> rows;
    for (const uint64_t feature : features) {
      std::minstd_rand random(static_cast<unsigned>(feature) * 1000 + seed);  // cheap to seed
      for (int i = 0; i < 3; ++i) {
        rows[RowOf(feature)].push_back(static_cast<float>(random() % 2001) / 1000 - 1);
      }
    }
    KeyList keys;
    std::vector<float> gradient;
    for (const auto& [row, values] : rows) {
      keys.push_back(row);
      gradient.insert(gradient.end(), values.begin(), values.end());
    }
    shard_.Apply(0, {Bytes(gradient), keys});
  }
  std::vector<float> WeightsOf(uint64_t feature, bool previous = false) {
    const KeyList key{RowOf(feature)};
    const net::LentBytes lent = previous ? shard_.LendPrevious(0, key) : shard_.Lend(0, key);
    std::vector<float> weights(3);
    std::memcpy(weights.data(), lent.data, lent.size);
    lent.release(const_cast<void*>(lent.data), lent.context);
    return weights;
  }
  Shard& shard() { return shard_; }
  const Layout& layout() const { return layout_; }
  const Config& config() const { return config_; }
  uint64_t RowOf(uint64_t feature) const {
    return feature == 200 ? layout_.table->bias_row() : layout_.table->RowOf(feature);
  }

 private:
  const Config config_;
  const Layout layout_;
  Shard shard_;
};

std::vector<uint64_t> SomeFeatures(std::mt19937* random, unsigned of = 200) {
  std::vector<uint64_t> features{200};
  for (uint64_t feature = 0; feature < of; ++feature) {
    if ((*random)() % 7 == 0) features.push_back(feature);
  }
  return features;
}

TEST_CASE("hash part: with every optimizer a row has the bits of the same row of a range table") {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdagrad, OptimizerKind::kAdam,
        OptimizerKind::kAdamw, OptimizerKind::kRmsprop, OptimizerKind::kFtrl}) {
    CAPTURE(static_cast<int>(kind));
    Config range = JobOf(kind, TableKind::kRange), hash = JobOf(kind, TableKind::kHash);
    for (Config* config : {&range, &hash}) {
      config->model.init.kind = InitKind::kNormal;
      config->model.init.bias = BiasInit::kSame;
    }
    Job<TablePart> plain(range);
    Job<HashPart> hashed(hash);
    std::mt19937 random(1);
    for (unsigned step = 0; step < 40; ++step) {
      const std::vector<uint64_t> features = SomeFeatures(&random);
      plain.Apply(features, step);
      hashed.Apply(features, step);
    }
    for (uint64_t feature = 0; feature <= 200; ++feature) {
      CHECK(plain.WeightsOf(feature) == hashed.WeightsOf(feature));
    }
  }
}

TEST_CASE("hash part: an evaluation gets the rows of its snapshot, whatever came, changed and left since") {
  Config config = JobOf(OptimizerKind::kAdagrad, TableKind::kHash);
  config.model.admit_after = 2;
  config.model.evict_after = 12;
  config.model.init.kind = InitKind::kNormal;
  Job<HashPart> job(config);
  std::mt19937 random(5);
  const auto train = [&](unsigned from, unsigned to) {
    for (unsigned step = from; step < to; ++step) job.Apply(SomeFeatures(&random), step);
  };
  train(0, 30);
  std::vector<std::vector<float>> before;
  for (uint64_t feature = 0; feature <= 200; ++feature) before.push_back(job.WeightsOf(feature));
  const std::shared_ptr<Snapshot> snapshot = job.shard().TakeSnapshot();
  snapshot->KeepForEvaluation();
  const int64_t evicted = job.shard().rows().evicted();
  train(30, 60);
  CHECK(job.shard().rows().evicted() > evicted);
  bool changed = false;
  for (uint64_t feature = 0; feature <= 200; ++feature) {
    std::vector<float> weights = job.WeightsOf(feature);
    changed |= weights != before[feature];
    const KeyList key{job.RowOf(feature)};
    REQUIRE(snapshot->GoBack({key.data(), 1}, weights.data()));
    CHECK(weights == before[feature]);
  }
  CHECK(changed);
}

TEST_CASE(
    "hash part: gradients before the update that admits a key are dropped, and its row then begins anew") {
  Config config = JobOf(OptimizerKind::kSgd, TableKind::kHash);
  config.model.admit_after = 3;
  config.model.evict_after = 16;
  Job<HashPart> job(config);
  const std::vector<float> initial = job.WeightsOf(7);
  job.Apply({7}, 1);
  job.Apply({7}, 2);
  CHECK(job.WeightsOf(7) == initial);
  CHECK(job.shard().Figures()->candidates == 1);
  job.Apply({7}, 3);
  CHECK(job.WeightsOf(7) != initial);
  CHECK(job.shard().Figures()->rows == 1);
  CHECK(job.shard().Figures()->candidates == 0);
  for (unsigned step = 4; step < 40; ++step) job.Apply({200}, step);
  CHECK(job.WeightsOf(7) == initial);
  CHECK(job.shard().Figures()->evicted == 1);
}

using Rows = std::map<uint64_t, std::vector<float>>;

// What a snapshot has of each row: step, count, and values.
Rows RowsOf(const Snapshot& snapshot, const Config& config, const Layout& layout) {
  Rows rows;
  const int64_t width = layout.table->width(), values = RowValues(config, width);
  const RowRange all{0, layout.table->rows()};
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  uint64_t last = 0;
  for (int64_t piece = 0; piece < snapshot.piece_count(); ++piece) {
    const std::optional<Snapshot::Held> read = snapshot.Read(piece, scratch.data());
    REQUIRE(read);
    CHECK(*BeginOf(read->bytes) >= last);
    CHECK(ReadHashPiece(read->bytes, all, width, values, all, [&](const HashRow& row) {
            std::vector<float>& kept = rows[row.row];
            kept = {static_cast<float>(row.step), static_cast<float>(row.count)};
            if (row.values != nullptr) kept.insert(kept.end(), row.values, row.values + values);
            last = row.row;
          }) == "");
  }
  return rows;
}

Config Busy() {
  Config config = JobOf(OptimizerKind::kAdam, TableKind::kHash);
  config.model.admit_after = 2;
  config.model.evict_after = 30;
  config.model.max_rows = 2 * TableLayout::kHashRanges;
  return config;
}

void Work(Job<HashPart>* job, unsigned steps, unsigned seed) {
  std::mt19937 random(seed);
  for (unsigned step = 0; step < steps; ++step) {
    std::vector<uint64_t> features = SomeFeatures(&random, 100);
    for (int i = 0; i < 600; ++i) features.push_back(201 + random() % 20000);
    std::sort(features.begin(), features.end());
    features.erase(std::unique(features.begin(), features.end()), features.end());
    job->Apply(features, seed + step);
  }
}

TEST_CASE("hash part: a report on few rows of all keys ends") {
  Job<HashPart> job(JobOf(OptimizerKind::kSgd, TableKind::kHash));
  job.Apply({1, 7, 900}, 1);
  int parts = 1;
  while (!job.shard().Report(TimePoint::min())) REQUIRE(++parts < 10);
}

TEST_CASE("hash part: a report is made in parts") {
  Job<HashPart> job(Busy());
  Work(&job, 60, 1);
  const uint32_t whole = job.shard().Report().parts[0].sum.crc;
  int parts = 1;
  std::optional<ShardReport> report;
  while (!(report = job.shard().Report(TimePoint::min()))) ++parts;
  CHECK(parts >= 2);
  CHECK(report->parts[0].sum.crc == whole);
  CHECK(report->table->rows == job.shard().Figures()->rows);
}

TEST_CASE(
    "hash part: a snapshot stays as it was while rows come, change and leave, and fills another shard") {
  Job<HashPart> job(Busy());
  Work(&job, 60, 1);
  const std::shared_ptr<Snapshot> snapshot = job.shard().TakeSnapshot();
  const Rows before = RowsOf(*snapshot, job.config(), job.layout());
  CHECK(before.size() > 5000);
  CHECK(job.shard().Figures()->evicted > 1000);
  const uint32_t crc = job.shard().Report().parts[0].sum.crc;
  Work(&job, 60, 2);
  CHECK(RowsOf(*snapshot, job.config(), job.layout()) == before);
  CHECK(snapshot->Cost().max_bytes > 0);

  HashPart other(job.config(), job.layout(), 0);
  other.BeginRestore(60);
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  for (int64_t piece = 0; piece < snapshot->piece_count(); ++piece) {
    const net::TensorView bytes = snapshot->Read(piece, scratch.data())->bytes;
    CHECK(other.Put(piece, bytes) == "");
  }
  other.SetRestored(60);
  CHECK(other.Report().parts[0].sum.crc == crc);
  CHECK(RowsOf(*other.TakeSnapshot(), job.config(), job.layout()) == before);
}

// The pieces of a snapshot, each with the rows up to the next one, as a file has them.
class PiecesOf {
 public:
  PiecesOf(const Snapshot& snapshot, uint64_t end) {
    std::vector<float> scratch(static_cast<size_t>(kBlockValues));
    for (int64_t piece = 0; piece < snapshot.piece_count(); ++piece) {
      const net::TensorView read = snapshot.Read(piece, scratch.data())->bytes;
      CHECK(read.size <= kMaxRowPieceBytes);
      const std::optional<uint64_t> begin = BeginOf(read);
      if (!begin) continue;
      if (!pieces_.empty()) pieces_.back().rows.end = *begin;
      pieces_.push_back({{read.data, read.data + read.size}, {*begin, end}});
    }
  }
  size_t bytes() const {
    return std::accumulate(pieces_.begin(), pieces_.end(), size_t{0},
                           [](size_t sum, const Piece& piece) { return sum + piece.bytes.size(); });
  }
  HashPieceView Of(uint64_t row) const {
    for (const Piece& piece : pieces_) {
      if (piece.rows.begin <= row && row < piece.rows.end)
        return {{piece.bytes.data(), piece.bytes.size()}, piece.rows};
    }
    return {};
  }
  void AddBegins(std::set<uint64_t>* begins) const {
    for (const Piece& piece : pieces_) begins->insert(piece.rows.begin);
  }

 private:
  struct Piece {
    std::vector<std::byte> bytes;
    RowRange rows;
  };
  std::vector<Piece> pieces_;
};

// The rows of a delta and its base together.
Rows Together(const PiecesOf& delta, const PiecesOf& base, const Config& config, const Layout& layout) {
  const int64_t width = layout.table->width(), values = RowValues(config, width);
  std::set<uint64_t> begins{layout.table->rows()};
  delta.AddBegins(&begins);
  base.AddBegins(&begins);
  Rows rows;
  for (auto begin = begins.begin(); std::next(begin) != begins.end(); ++begin) {
    CHECK(ReadHashDelta(delta.Of(*begin), base.Of(*begin), width, values, {*begin, *std::next(begin)},
                        [&](const HashRow& row) {
                          CHECK((rows.empty() || rows.rbegin()->first < row.row));
                          std::vector<float>& kept = rows[row.row];
                          kept = {static_cast<float>(row.step), static_cast<float>(row.count)};
                          if (row.values != nullptr) kept.insert(kept.end(), row.values, row.values + values);
                        }) == "");
  }
  return rows;
}

TEST_CASE(
    "hash part: a delta has what was named and what left since its base, whatever comes while it is read") {
  for (const bool often : {true, false}) {  // a few rows change, or most of them come and leave
    CAPTURE(often);
    Config config = Busy();
    config.checkpoint.delta = 5;
    if (!often) config.model.max_rows = 8 * TableLayout::kHashRanges;
    if (!often) config.model.evict_after = 300;
    Job<HashPart> job(config), twin(config);
    const uint64_t end = job.layout().table->rows();
    const auto work = [&](unsigned steps, unsigned seed) {
      Work(&job, steps, seed);
      Work(&twin, steps, seed);
    };
    work(100, 1);
    for (unsigned chain = 0; chain < 2; ++chain) {
      const PiecesOf base(*job.shard().TakeSnapshot(), end);
      for (unsigned delta = 0; delta < 3; ++delta) {
        work(often ? 60 : 3, 10 * chain + delta + 2);
        const Rows all = RowsOf(*twin.shard().TakeSnapshot(), config, job.layout());
        const std::shared_ptr<Snapshot> taken = job.shard().TakeSnapshot(SnapshotOf::kChanges);
        const PiecesOf at_once(*taken, end);
        CHECK((Together(at_once, base, config, job.layout()) == all));
        work(often ? 40 : 2, 10 * chain + delta + 50);
        CHECK((Together(PiecesOf(*taken, end), base, config, job.layout()) == all));
        if (!often) CHECK(at_once.bytes() < base.bytes() / 2);
        CHECK(all.size() > 5000);
      }
    }
  }
}

TEST_CASE("hash part: two snapshots of different moments are read beside updates, each as it was") {
  Job<HashPart> job(Busy());
  Work(&job, 60, 1);
  const std::shared_ptr<Snapshot> first = job.shard().TakeSnapshot();
  const Rows of_first = RowsOf(*first, job.config(), job.layout());
  Work(&job, 20, 2);
  const std::shared_ptr<Snapshot> second = job.shard().TakeSnapshot();
  const Rows of_second = RowsOf(*second, job.config(), job.layout());
  CHECK(of_first != of_second);
  Work(&job, 40, 3);
  CHECK(RowsOf(*first, job.config(), job.layout()) == of_first);
  CHECK(RowsOf(*second, job.config(), job.layout()) == of_second);
  job.shard().Drop(first);
  Work(&job, 20, 4);
  CHECK(RowsOf(*second, job.config(), job.layout()) == of_second);
}

TEST_CASE("hash part: a thread reads a snapshot while rows change") {
  Job<HashPart> job(Busy());
  Work(&job, 30, 1);
  const std::shared_ptr<Snapshot> snapshot = job.shard().TakeSnapshot();
  Rows read;
  std::thread reader([&] { read = RowsOf(*snapshot, job.config(), job.layout()); });
  Work(&job, 30, 2);
  reader.join();
  CHECK(RowsOf(*snapshot, job.config(), job.layout()) == read);
  job.shard().Drop(snapshot);
  CHECK_FALSE(snapshot->Lend(0));
  const std::optional<net::LentBytes> end = snapshot->Lend(snapshot->piece_count());
  REQUIRE(end.has_value());
  CHECK(end->size == 0);  // for a reader elsewhere
  net::Frame::Lend(end->data, end->size, end->release, end->context);
  Work(&job, 2, 3);
}

TEST_CASE("hash part: a snapshot whose changed rows take too much memory is given up") {
  HashStore store({0, ~uint64_t{0}}, 1, [](uint64_t, float* values) { *values = 0; });
  KeyList keys;
  for (uint64_t key = 0; key < 1000; ++key) keys.push_back(key << 50);
  std::vector<float*> values(keys.size());
  store.Touch(keys, 1, values.data());
  HashSnapshot snapshot(store, {{store.rows(), 1}}, 1, 1000);
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  CHECK(snapshot.Read(0, scratch.data()));
  store.VisitRange(store.rows(), [&](const HashRow& row) { snapshot.Keep(row); });
  CHECK_FALSE(snapshot.Read(0, scratch.data()));
  CHECK(snapshot.Cost().given_up);
  CHECK(snapshot.Cost().max_bytes < 2000);
}

TEST_CASE("hash part: the version before has the rows that left with the latest update") {
  Config config = JobOf(OptimizerKind::kSgd, TableKind::kHash);
  config.train.mode = TrainMode::kSync;
  config.failure.worker_lost = WorkerLost::kWait;
  config.model.evict_after = 8;
  Job<HashPart> job(config);
  job.Apply({7, 8}, 1);
  const std::vector<float> seven = job.WeightsOf(7);
  CHECK(job.WeightsOf(7, /*previous=*/true) == std::vector<float>(3));
  for (unsigned step = 2; step < 20; ++step) {
    job.Apply({8}, step);
    const bool left = job.WeightsOf(7) == std::vector<float>(3);
    if (!left) continue;
    CHECK(job.WeightsOf(7, /*previous=*/true) == seven);  // as before this update
    job.Apply({8}, step);
    CHECK(job.WeightsOf(7, /*previous=*/true) == std::vector<float>(3));
    return;
  }
  FAIL("it has not left");
}

}  // namespace
}  // namespace dtrain
