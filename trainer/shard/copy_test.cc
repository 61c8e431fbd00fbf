// Copies of parts (part.h), and rounds in two steps: the sum and its application.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/shard/hash_part.h"
#include "trainer/shard/range_part.h"
#include "trainer/shard/shard.h"
#include "trainer/shard/table_part.h"
#include "trainer/table/hash_pieces.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using Bytes = std::vector<std::byte>;

enum class Kind { kRange, kTable, kHash, kJoint, kTwo };  // kTwo: kJoint with an optimizer for each part
constexpr Kind kKinds[] = {Kind::kRange, Kind::kTable, Kind::kHash, Kind::kJoint, Kind::kTwo};
constexpr int64_t kFeatures = 40'000;  // of a table; the keys of a hash table
constexpr int64_t kLastBlock = 1030;   // values of a range

// What one of `ps` ps has; a table is in some blocks.
struct Job {
  Job(Kind kind, OptimizerKind optimizer, bool waits, int ps = 1) : config(LinearCluster(ps, 3, 100)) {
    config.train.optimizer.kind = optimizer;
    config.train.optimizer.learning_rate = 0.1;
    config.train.optimizer.decay_biases = false;
    if (optimizer != OptimizerKind::kAdamw) config.train.optimizer.l2 = 0.01;
    config.model.init.kind = InitKind::kNormal;
    config.model.init.bias = BiasInit::kSame;
    if (waits) {
      config.train.mode = TrainMode::kSync;
      config.failure.worker_lost = WorkerLost::kWait;
    }
    config.model.inputs = kFeatures;
    if (kind == Kind::kRange) {
      config.model.inputs = 2 * kBlockValues + kLastBlock - 1;
      layout = PlaceVariables(ModelVariables(config.model), ps, PlacementConfig());
      return;
    }
    if (kind == Kind::kHash) {
      config.model.table = TableKind::kHash;
      config.model.admit_after = 2;
      config.model.evict_after = 150;
      config.model.max_rows = 8 * TableLayout::kHashRanges;
    }
    if (kind == Kind::kTwo) {
      config.train.wide = {config.train.optimizer, {"kind"}};
      config.train.wide.values.kind =
          optimizer == OptimizerKind::kFtrl ? OptimizerKind::kMomentum : OptimizerKind::kFtrl;
    }
    if (kind == Kind::kJoint || kind == Kind::kTwo) {
      config.model.kind = ModelKind::kWideDeep;
      config.model.head = ModelHead::kLogistic;
      config.model.hidden = {5};
      config.model.embedding = 3;
      layout = JointLayout(PlaceVariables(ModelVariables(config.model), ps, PlacementConfig()),
                           TableLayoutOf(config.model, ps), config.model);
    } else {
      config.model.kind = ModelKind::kSoftmax;
      config.model.outputs = 3;
      layout = TableLayoutOf(config.model, ps);
    }
    const TableLayout& table = *layout.table;
    layout.table.emplace(table.hashed() ? TableLayout::kHashed : kFeatures, table.width(), ps,
                         table.factors(), 3);
  }
  std::unique_ptr<Shard> NewShard(int ps) const {
    auto shard = std::make_unique<Shard>(MakeParts(config, layout, ps));
    shard->SetCounts(5, 100);
    return shard;
  }
  Config config;
  Layout layout;
};

net::TensorView View(const Bytes& bytes) { return {bytes.data(), bytes.size()}; }

// Lent bytes are copied, and given back.
Bytes Taken(const net::LentBytes& lent) {
  const auto* const data = static_cast<const std::byte*>(lent.data);
  Bytes bytes(data, data + lent.size);
  lent.release(const_cast<void*>(lent.data), lent.context);
  return bytes;
}

// The same at an odd address, as in a message.
class InMessage {
 public:
  explicit InMessage(const Bytes& bytes) : bytes_(1 + bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + 1);
  }
  net::TensorView view() const { return {bytes_.data() + 1, bytes_.size() - 1}; }

 private:
  Bytes bytes_;
};

// Gradients of one block, of one worker each.
struct Gradients {
  std::vector<KeyList> keys;
  std::vector<Bytes> values;
  std::vector<uint32_t> rows;

  RoundGradients Round() const {
    RoundGradients round;
    for (size_t i = 0; i < values.size(); ++i) round.Add({View(values[i]), keys[i]}, rows[i]);
    return round;
  }
};

class Drawn {
 public:
  Drawn(const Job& job, unsigned seed) : job_(job), random_(seed), pattern_(2 * kBlockValues) {
    for (float& value : pattern_) value = static_cast<float>(random_() % 2001) / 1000 - 1;
  }
  unsigned Below(unsigned count) { return static_cast<unsigned>(random_() % count); }

  Gradients Of(const Shard& shard, int64_t block, unsigned workers) {
    Gradients gradients;
    for (unsigned i = 0; i < workers; ++i) {
      size_t size = shard.bytes(block);
      KeyList keys;
      if (const TableLayout* const table = shard.table(block)) {
        keys = Keys(*table, shard.BlockRows(block));
        size = keys.size() * static_cast<size_t>(table->width()) * sizeof(float);
      }
      const auto* const begin = reinterpret_cast<const std::byte*>(pattern_.data() + Below(kBlockValues));
      gradients.keys.push_back(std::move(keys));
      gradients.values.emplace_back(begin, begin + size);
      gradients.rows.push_back(Below(2) == 0 ? 10 : 1 + Below(10));
    }
    return gradients;
  }

  // One gradient, of a table of some rows.
  Gradients Some(const Shard& shard, int64_t block) {
    Gradients some;
    do some = Of(shard, block, 1);
    while (some.values[0].empty());
    return some;
  }

 private:
  // Now and then none. Some rows come often, others seldom.
  KeyList Keys(const TableLayout& table, RowRange rows) {
    std::set<uint64_t> keys;
    for (unsigned i = Below(8) == 0 ? 0 : 400; i > 0; --i) {
      const unsigned feature = Below(2) == 0 ? Below(300) : Below(static_cast<unsigned>(kFeatures));
      const uint64_t row = table.RowOf(feature);
      if (rows.begin <= row && row < rows.end) keys.insert(row);
    }
    if (Below(3) != 0 && table.bias_row() < rows.end) keys.insert(table.bias_row());
    return {keys.begin(), keys.end()};
  }

  const Job& job_;
  std::mt19937 random_;
  std::vector<float> pattern_;
};

void Append(const void* data, size_t size, Bytes* to) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  to->insert(to->end(), bytes, bytes + size);
}

// What a snapshot has. Of a hash table its rows: how they are cut depends on how they came.
std::vector<Bytes> Contents(const ShardSnapshot& snapshot, const Job& job) {
  std::vector<Bytes> all;
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  for (size_t part = 0; part < snapshot.parts().size(); ++part) {
    const bool hashed = job.layout.has_hash_table() && part + 1 == snapshot.parts().size();
    Bytes rows;
    for (int64_t piece = 0; piece < snapshot.parts()[part]->piece_count(); ++piece) {
      const net::TensorView read = snapshot.parts()[part]->Read(piece, scratch.data())->bytes;
      if (!hashed) {
        all.emplace_back(read.data, read.data + read.size);
        continue;
      }
      const int64_t width = job.layout.table->width(), values = RowValues(job.config, width);
      const RowRange every{0, ~uint64_t{0}};
      CHECK(ReadHashPiece(read, every, width, values, every, [&](const HashRow& row) {
              Append(&row.row, sizeof row.row, &rows);
              Append(&row.step, sizeof row.step, &rows);
              Append(&row.count, sizeof row.count, &rows);
              if (row.values) Append(row.values, static_cast<size_t>(values) * sizeof(float), &rows);
            }) == "");
    }
    all.push_back(std::move(rows));
  }
  return all;
}

// A shard, and a copy of it that gets the same updates.
class Copied {
 public:
  Copied(const Job& job, int ps, unsigned seed) : job_(job), ps_(ps), drawn_(job, seed) {
    original_ = job.NewShard(ps);
    original_->Initialise();
  }
  Shard& original() { return *original_; }
  Shard& copy() { return *copy_; }
  Drawn& drawn() { return drawn_; }

  void Update() {
    if (drawn_.Below(2) == 0) return;
    const auto block = static_cast<int64_t>(drawn_.Below(static_cast<unsigned>(original_->block_count())));
    const bool sync = job_.config.train.mode == TrainMode::kSync;
    const Gradients gradients = drawn_.Of(*original_, block, sync ? drawn_.Below(4) : 1);
    if (!sync) {
      original_->Apply(block, {View(gradients.values[0]), gradients.keys[0]});
      if (copy_) copy_->Apply(block, {InMessage(gradients.values[0]).view(), gradients.keys[0]});
      return;
    }
    RoundSum sum = original_->SumOf(block, gradients.Round(), 0.5);
    original_->ApplySum(block, sum);
    if (sum.values.data == nullptr) {
      if (copy_) copy_->ApplySum(block, sum);
      return;
    }
    const InMessage values(Taken(sum.values));
    sum.values = {values.view().data, values.view().size};
    if (copy_) copy_->ApplySum(block, sum);
  }
  void Updates(int count) {
    while (count-- > 0) Update();
  }

  // Fills the copy while updates go on.
  void Fill() {
    copy_ = job_.NewShard(ps_);
    copy_->BeginCopy();
    for (int64_t unit = 0; unit < original_->unit_count(); ++unit) {
      Updates(original_->unit_count() < 100 ? 8 : 1);
      CHECK_FALSE(copy_->initialised());
      const InMessage bytes(Taken(original_->CopyUnit(unit)));
      REQUIRE(copy_->PutUnit(unit, bytes.view()) == "");
    }
    CHECK(copy_->initialised());
  }

  void CheckEqual() {
    for (int64_t block = 0; block < original_->block_count(); ++block) {
      CAPTURE(block);
      CHECK(copy_->version(block) == original_->version(block));
      CHECK(copy_->checksum(block) == original_->checksum(block));
      KeyList keys;
      for (uint64_t feature = 0; feature < kFeatures && original_->table(block) != nullptr; ++feature) {
        const uint64_t row = original_->table(block)->RowOf(feature);
        const RowRange rows = original_->BlockRows(block);
        if (rows.begin <= row && row < rows.end) keys.push_back(row);
      }
      std::sort(keys.begin(), keys.end());
      CHECK((Taken(copy_->Lend(block, keys)) == Taken(original_->Lend(block, keys))));
      REQUIRE(copy_->has_previous(block) == original_->has_previous(block));
      if (!copy_->has_previous(block)) continue;
      CHECK((Taken(copy_->LendPrevious(block, keys)) == Taken(original_->LendPrevious(block, keys))));
      CHECK(copy_->previous_checksum(block) == original_->previous_checksum(block));
    }
    CHECK((ContentsOf(*copy_) == ContentsOf(*original_)));
    for (int64_t unit = 0; unit < original_->unit_count(); ++unit) {
      CAPTURE(original_->UnitName(unit));
      REQUIRE((Taken(copy_->CopyUnit(unit)) == Taken(original_->CopyUnit(unit))));
    }
    const ShardReport here = copy_->Report(), there = original_->Report();
    REQUIRE(here.parts.size() == there.parts.size());
    for (size_t part = 0; part < here.parts.size(); ++part) {
      CHECK(here.parts[part].sum.crc == there.parts[part].sum.crc);
    }
    if (!here.table) return;
    CHECK(here.table->rows == there.table->rows);
    CHECK(here.table->candidates == there.table->candidates);
    CHECK(here.table->evicted == there.table->evicted);
  }

 private:
  std::vector<Bytes> ContentsOf(Shard& shard) {
    const std::shared_ptr<ShardSnapshot> snapshot = shard.TakeSnapshot();
    std::vector<Bytes> contents = Contents(*snapshot, job_);
    shard.Drop(*snapshot);
    return contents;
  }

  const Job& job_;
  const int ps_;
  Drawn drawn_;
  std::unique_ptr<Shard> original_;
  std::unique_ptr<Shard> copy_;
};

TEST_CASE("copy: it has every later bit of the original, whatever updates come while it is filled") {
  for (const OptimizerKind optimizer :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam, OptimizerKind::kFtrl}) {
    for (const Kind kind : kKinds) {
      for (const bool waits : {false, true}) {
        CAPTURE(static_cast<int>(optimizer));
        CAPTURE(static_cast<int>(kind));
        CAPTURE(waits);
        const Job job(kind, optimizer, waits);
        Copied both(job, 0, 1);
        both.Updates(60);
        both.Fill();
        both.CheckEqual();
        both.Updates(60);
        both.CheckEqual();
      }
    }
  }
}

TEST_CASE("copy: of each of three ps, one of which has the bias") {
  for (const Kind kind : kKinds) {
    for (int ps = 0; ps < 3; ++ps) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(ps);
      const Job job(kind, OptimizerKind::kAdam, true, 3);
      Copied both(job, ps, 2);
      both.Updates(20);
      both.Fill();
      both.Updates(40);
      both.CheckEqual();
    }
  }
}

TEST_CASE("copy: in a hash table the same rows are admitted, evicted and swept as in the original") {
  Job job(Kind::kHash, OptimizerKind::kAdagrad, true);
  job.config.model.max_rows = 3 * TableLayout::kHashRanges;
  Copied both(job, 0, 3);
  both.Updates(1200);
  const auto figures = [&](Shard& shard) { return *shard.Figures(); };
  const TableFigures before = figures(both.original());
  CHECK(before.evicted > 1000);
  CHECK(before.candidates > 1000);
  CHECK(before.rows > 1000);
  both.Fill();
  CHECK(figures(both.original()).evicted > before.evicted + 1000);
  both.CheckEqual();
  both.Updates(1200);
  CHECK(figures(both.original()).evicted > before.evicted + 3000);
  both.CheckEqual();
}

TEST_CASE("copy: an update of a block of a range that is not here changes nothing") {
  const Job job(Kind::kRange, OptimizerKind::kSgd, false);
  Copied both(job, 0, 15);
  const std::unique_ptr<Shard> copy = job.NewShard(0);
  copy->BeginCopy();
  REQUIRE(copy->PutUnit(0, View(Taken(both.original().CopyUnit(0)))) == "");
  const Bytes before = Taken(copy->Lend(2));
  for (const int64_t block : {0, 2}) {
    copy->Apply(block, View(both.drawn().Of(both.original(), block, 1).values[0]));
  }
  CHECK(copy->version(0) == 1);
  CHECK(copy->version(2) == 0);
  CHECK((Taken(copy->Lend(2)) == before));
}

TEST_CASE("copy: a row that the updates before its unit have brought back to its initial values has those") {
  for (const Kind kind : {Kind::kTable, Kind::kHash}) {
    Job job(kind, OptimizerKind::kSgd, false);
    job.config.model.init.kind = InitKind::kConstant;
    job.config.model.init.value = 0;
    job.config.model.admit_after = 1;
    job.config.train.optimizer.l2 = 0;
    Copied both(job, 0, 16);
    const RowRange last = both.original().BlockRows(2);
    const KeyList keys{last.end - 2, last.end - 1};  // with the bias
    const auto update = [&](Shard& shard, float gradient) {
      const std::vector<float> values(6, gradient);
      shard.Apply(2, {{reinterpret_cast<const std::byte*>(values.data()), 6 * sizeof(float)}, keys});
    };
    update(both.original(), 0.5f);
    const std::unique_ptr<Shard> copy = job.NewShard(0);
    copy->BeginCopy();
    for (Shard* const shard : {&both.original(), copy.get()}) update(*shard, -0.5f);
    for (int64_t unit = 0; unit < both.original().unit_count(); ++unit) {
      REQUIRE(copy->PutUnit(unit, View(Taken(both.original().CopyUnit(unit)))) == "");
    }
    CHECK((Taken(copy->Lend(2, keys)) == Bytes(6 * sizeof(float))));
    for (Shard* const shard : {&both.original(), copy.get()}) update(*shard, 0.25f);
    CHECK((Taken(copy->Lend(2, keys)) == Taken(both.original().Lend(2, keys))));
  }
}

TEST_CASE("copy: it has the slots of rows whose weights are as in the beginning") {
  Job job(Kind::kTable, OptimizerKind::kAdam, false);
  job.config.model.init.kind = InitKind::kConstant;
  job.config.model.init.value = 1e20;  // an update is less than its last bit
  job.config.train.optimizer.l2 = 0;
  Copied both(job, 0, 17);
  both.Updates(20);
  both.Fill();
  both.CheckEqual();
}

TEST_CASE("copy: it is made beside a snapshot of the original, which stays as it was") {
  for (const Kind kind : kKinds) {
    const Job job(kind, OptimizerKind::kAdam, false);
    Copied both(job, 0, 4);
    both.Updates(30);
    const std::shared_ptr<ShardSnapshot> snapshot = both.original().TakeSnapshot();
    const std::vector<Bytes> before = Contents(*snapshot, job);
    both.Fill();
    both.CheckEqual();
    CHECK((Contents(*snapshot, job) == before));
  }
}

TEST_CASE("copy: it is begun again, of what it was before nothing stays, and its snapshots end") {
  for (const Kind kind : kKinds) {
    const Job job(kind, OptimizerKind::kAdam, true);
    Copied first(job, 0, 5), second(job, 0, 6);
    first.Updates(40);
    first.Fill();
    second.Updates(80);
    const std::shared_ptr<ShardSnapshot> snapshot = first.copy().TakeSnapshot();
    const net::LentBytes weights = first.copy().Lend(0);  // on its way
    const auto* const begin = static_cast<const std::byte*>(weights.data);
    const Bytes before(begin, begin + weights.size);
    first.copy().BeginCopy();
    CHECK_FALSE(first.copy().initialised());
    CHECK_FALSE(snapshot->Lend({0, 0}).has_value());
    for (int64_t unit = 0; unit < second.original().unit_count(); ++unit) {
      REQUIRE(first.copy().PutUnit(unit, View(Taken(second.original().CopyUnit(unit)))) == "");
    }
    for (int64_t unit = 0; unit < second.original().unit_count(); ++unit) {
      REQUIRE((Taken(first.copy().CopyUnit(unit)) == Taken(second.original().CopyUnit(unit))));
    }
    CHECK((Taken(weights) == before));
    first.copy().Drop(*snapshot);
  }
}

TEST_CASE("copy: after one that was given up come initial values, or a restore") {
  for (const Kind kind : kKinds) {
    const Job job(kind, OptimizerKind::kAdam, true);
    Copied both(job, 0, 7);
    both.Updates(40);
    Shard& original = both.original();
    const auto given_up = [&] {
      std::unique_ptr<Shard> copy = job.NewShard(0);
      copy->Initialise();
      copy->BeginCopy();
      for (int64_t unit = 0; unit + 1 < original.unit_count(); ++unit) {
        CHECK(copy->PutUnit(unit, View(Taken(original.CopyUnit(unit)))) == "");
      }
      copy->BeginCopy();
      return copy;
    };
    const std::unique_ptr<Shard> initial = given_up(), fresh = job.NewShard(0);
    initial->Initialise();
    fresh->Initialise();
    CHECK(initial->initialised());
    for (int64_t unit = 0; unit < fresh->unit_count(); ++unit) {
      REQUIRE((Taken(initial->CopyUnit(unit)) == Taken(fresh->CopyUnit(unit))));
    }
    const std::unique_ptr<Shard> restored = given_up();
    const std::shared_ptr<ShardSnapshot> snapshot = original.TakeSnapshot();
    std::vector<float> scratch(static_cast<size_t>(kBlockValues));
    restored->BeginRestore(1'000);
    for (size_t part = 0; part < snapshot->parts().size(); ++part) {
      for (int64_t piece = 0; piece < snapshot->parts()[part]->piece_count(); ++piece) {
        CHECK(restored->Put({part, piece}, snapshot->parts()[part]->Read(piece, scratch.data())->bytes) ==
              "");
      }
    }
    restored->SetRestored(1'000);
    CHECK(restored->version(0) == 1'000);
    CHECK_FALSE(restored->has_previous(0));
    const std::vector<Bytes> before = Contents(*snapshot, job);
    CHECK((Contents(*restored->TakeSnapshot(), job) == before));
    original.Drop(*snapshot);
    const Gradients gradient = both.drawn().Some(original, 0);
    for (Shard* const shard : {initial.get(), fresh.get(), restored.get()}) {
      shard->Apply(0, {View(gradient.values[0]), gradient.keys[0]});
    }
    CHECK(restored->version(0) == 1'001);
    CHECK((Contents(*restored->TakeSnapshot(), job) != before));
    CHECK((Contents(*initial->TakeSnapshot(), job) == Contents(*fresh->TakeSnapshot(), job)));
  }
}

TEST_CASE("copy: its first snapshot is of all, and the next may be of what has changed") {
  for (const Kind kind : {Kind::kTable, Kind::kHash}) {
    Job job(kind, OptimizerKind::kAdam, false);
    job.config.checkpoint.delta = 5;
    Copied both(job, 0, 8);
    both.Updates(40);
    both.original().Drop(*both.original().TakeSnapshot());
    both.Updates(40);
    both.Fill();
    both.CheckEqual();  // takes one of all
    both.Updates(10);
    const std::shared_ptr<ShardSnapshot> changes = both.copy().TakeSnapshot(SnapshotOf::kChanges);
    std::vector<float> scratch(static_cast<size_t>(kBlockValues));
    size_t bytes = 0;
    for (int64_t piece = 0; piece < changes->parts()[0]->piece_count(); ++piece) {
      bytes += changes->parts()[0]->Read(piece, scratch.data())->bytes.size;
    }
    CHECK(bytes > 1000);
  }
}

TEST_CASE("copy: a unit takes a buffer that is kept") {
  for (const Kind kind : kKinds) {
    const Job job(kind, OptimizerKind::kAdam, true);
    Copied both(job, 0, 9);
    both.Updates(40);
    std::set<const void*> seen;
    for (int i = 0; i < 20; ++i) {
      const net::LentBytes unit = both.original().CopyUnit(0);
      seen.insert(unit.data);
      Taken(unit);
    }
    CHECK(seen.size() == 1);
  }
}

TEST_CASE("copy: a unit that is not the next one, or whose bytes are wrong, is told and not counted") {
  for (const Kind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    const Job job(kind, OptimizerKind::kAdam, true);
    Copied both(job, 0, 10);
    both.Updates(60);
    Shard& original = both.original();
    const std::unique_ptr<Shard> copy = job.NewShard(0);
    const int64_t count = original.unit_count();
    const std::string first = fmt::format("it is unit 0 of {}, and the next is -1", count);
    CHECK(copy->PutUnit(0, View(Taken(original.CopyUnit(0)))) == first);
    copy->BeginCopy();
    CHECK(copy->PutUnit(1, View(Taken(original.CopyUnit(1)))) ==
          fmt::format("it is unit 1 of {}, and the next is 0", count));
    CHECK(copy->PutUnit(-1, {}) == fmt::format("it is unit -1 of {}, and the next is 0", count));
    for (int64_t unit = 0; unit < count; ++unit) {
      Bytes bytes = Taken(original.CopyUnit(unit));
      const bool tried = unit < 3 || unit + 3 > count;
      for (size_t size = 0; tried && size < bytes.size(); size += 1 + size / 2) {
        REQUIRE(copy->PutUnit(unit, {bytes.data(), size}) != "");
      }
      bytes.push_back({});
      if (tried) REQUIRE(copy->PutUnit(unit, View(bytes)) != "");
      bytes.pop_back();
      Bytes wrong = bytes;
      wrong[7] = std::byte{0xff};  // of a version
      if (tried) REQUIRE(copy->PutUnit(unit, View(wrong)) != "");
      REQUIRE(copy->PutUnit(unit, View(bytes)) == "");
    }
    CHECK(copy->initialised());
    CHECK(copy->PutUnit(count, {}) == fmt::format("it is unit {0} of {0}, and the next is {0}", count));
  }
}

TEST_CASE("copy: a version before that is not kept, or whose rows are not of their block, is told") {
  const Job waits(Kind::kRange, OptimizerKind::kSgd, true), goes_on(Kind::kRange, OptimizerKind::kSgd, false);
  Copied range(waits, 0, 11);
  range.original().ApplySum(0, {});
  const std::unique_ptr<Shard> other = goes_on.NewShard(0);
  other->BeginCopy();
  CHECK(other->PutUnit(0, View(Taken(range.original().CopyUnit(0)))) == "its head is wrong");

  const Job rows(Kind::kTable, OptimizerKind::kSgd, true);
  Copied table(rows, 0, 12);
  const Gradients some = table.drawn().Some(table.original(), 0);
  table.original().Apply(0, {View(some.values[0]), some.keys[0]});
  const std::unique_ptr<Shard> copy = rows.NewShard(0);
  copy->BeginCopy();
  const int64_t last = table.original().unit_count() - 1;
  for (int64_t unit = 0; unit < last; ++unit) {
    REQUIRE(copy->PutUnit(unit, View(Taken(table.original().CopyUnit(unit)))) == "");
  }
  Bytes bytes = Taken(table.original().CopyUnit(last));
  const size_t key = (3 + 2) * sizeof(uint64_t);  // behind three versions and two numbers of the first block
  REQUIRE(bytes.size() > key + 2 * sizeof(uint64_t));
  Bytes wrong = bytes;
  std::memset(wrong.data() + key, 0xff, sizeof(uint64_t));
  CHECK(copy->PutUnit(last, View(wrong)) == fmt::format("row 0 of its version before is {}", ~uint64_t{0}));
  wrong = bytes;
  wrong[key - 1] = std::byte{0x7f};  // so many rows
  CHECK(copy->PutUnit(last, View(wrong)) == "its version before is wrong");
  CHECK(copy->PutUnit(last, View(bytes)) == "");
}

TEST_CASE("copy: a unit of rows of another version than the updates have made of it is told") {
  const Job job(Kind::kTable, OptimizerKind::kAdam, false);
  Copied both(job, 0, 13);
  const std::unique_ptr<Shard> copy = job.NewShard(0);
  copy->BeginCopy();
  REQUIRE(copy->PutUnit(0, View(Taken(both.original().CopyUnit(0)))) == "");
  const Gradients gradient = both.drawn().Of(both.original(), 1, 1);
  both.original().Apply(1, {View(gradient.values[0]), gradient.keys[0]});
  CHECK(copy->PutUnit(1, View(Taken(both.original().CopyUnit(1)))) == "it has version 1 of block 1, not 0");
}

TEST_CASE("copy: a unit has a name") {
  const Job job(Kind::kJoint, OptimizerKind::kSgd, false);
  const std::unique_ptr<Shard> shard = job.NewShard(0);
  CHECK(shard->UnitName(0) == "part 0, unit 0");
  CHECK(shard->UnitName(2) == "part 1, unit 1");
}

TEST_CASE("sum of a round: applied, also from an odd address, it has the bits of the mean in one step") {
  for (const Kind kind : kKinds) {
    for (const bool waits : {false, true}) {
      for (const Reduce reduce : {Reduce::kMean, Reduce::kSum}) {
        CAPTURE(static_cast<int>(kind));
        CAPTURE(waits);
        Job job(kind, OptimizerKind::kAdam, waits);
        job.config.train.reduce = reduce;
        if (kind == Kind::kHash) job.config.model.evict_after = 1;
        Copied mean(job, 0, 14), sum(job, 0, 14);
        for (unsigned round = 0; round < 24; ++round) {
          const int64_t block = round % mean.original().block_count();
          Gradients gradients = mean.drawn().Of(mean.original(), block, round % 4);
          if (round % 12 == 9 && kind == Kind::kHash)
            gradients = {{{}}, {{}}, {10}};  // it sweeps all the same
          mean.original().ApplyMean(block, gradients.Round(), 0.25);
          RoundSum summed = sum.original().SumOf(block, gradients.Round(), 0.25);
          CHECK((summed.values.data == nullptr) == (round % 4 == 0));
          const InMessage values(summed.values.data == nullptr ? Bytes() : Taken(summed.values));
          if (summed.values.data != nullptr) summed.values = {values.view().data, values.view().size};
          sum.original().ApplySum(block, summed);
          if (kind != Kind::kHash) continue;
          CHECK(sum.original().Figures()->evicted == mean.original().Figures()->evicted);
        }
        for (int64_t unit = 0; unit < mean.original().unit_count(); ++unit) {
          REQUIRE((Taken(mean.original().CopyUnit(unit)) == Taken(sum.original().CopyUnit(unit))));
        }
      }
    }
  }
}

}  // namespace
}  // namespace dtrain
