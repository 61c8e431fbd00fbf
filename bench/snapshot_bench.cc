// Measures what a checkpoint costs the ps loop: taking a snapshot of a range of 512 MiB, applying a block of
// a gradient before, during and after one, and sending the range to ps 0, which writes it. With momentum the
// range has as many bytes of slots again. Of a table of 2^26 rows: saving all of it, or what has changed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/leader/pulled_part.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/shard/shard.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kBlocks = 512;

class Range512 {
 public:
  Range512() : config_(MakeConfig()), layout_(PlaceVariables(ModelVariables(config_.model), 1, {})) {
    shard_ = std::make_unique<Shard>(MakeParts(config_, layout_, 0));
    shard_->Initialise();
    ApplyAll();
  }
  Shard& shard() { return *shard_; }
  const Layout& layout() const { return layout_; }
  void ApplyAll() {
    for (int64_t block = 0; block < shard_->block_count(); ++block) {
      shard_->Apply(
          block, net::TensorView{reinterpret_cast<const std::byte*>(gradient_.data()), shard_->bytes(block)});
    }
  }

 private:
  static Config MakeConfig() {
    Config config;
    config.cluster.ps = {"localhost:1"};
    config.cluster.worker = {"localhost:2"};
    config.model.kind = ModelKind::kLinear;
    config.model.inputs = kBlocks * kBlockValues - 1;
    config.model.outputs = 1;
    config.train.optimizer.kind = OptimizerKind::kMomentum;
    return config;
  }

  const Config config_;
  const Layout layout_;
  const std::vector<float> gradient_ = std::vector<float>(kBlockValues, 0.001f);
  std::unique_ptr<Shard> shard_;
};

void TakeSnapshot(benchmark::State& state) {
  Range512 range;
  for (auto _ : state) {
    const std::shared_ptr<ShardSnapshot> snapshot = range.shard().TakeSnapshot();
    state.PauseTiming();
    range.shard().Drop(*snapshot);
    state.ResumeTiming();
  }
}

// When a gradient of the whole range is applied, with nothing of its snapshot read yet. kFirst: the first
// gradient after the first snapshot of a run, which allocates buffers; kNext: the first after a later
// snapshot; kLater: other gradients; kNone: without any snapshot.
enum class Taken { kNone, kFirst, kNext, kLater };
void Apply(benchmark::State& state, Taken taken) {
  auto range = std::make_unique<Range512>();
  std::shared_ptr<ShardSnapshot> last;
  const auto take = [&] {
    if (last) range->shard().Drop(*last);
    last = range->shard().TakeSnapshot();
  };
  if (taken == Taken::kNext || taken == Taken::kLater) {
    take();
    range->ApplyAll();
  }
  for (auto _ : state) {
    state.PauseTiming();
    if (taken == Taken::kFirst) last.reset();
    if (taken == Taken::kFirst) range = std::make_unique<Range512>();
    if (taken == Taken::kFirst || taken == Taken::kNext) take();
    state.ResumeTiming();
    range->ApplyAll();
  }
}

// The longest that a loop was kept by one call, in milliseconds.
class LongestCall {
 public:
  template <typename Call>
  auto Time(Call&& call) {
    const TimePoint begin = Clock::now();
    auto result = call();
    milliseconds_ = std::max(milliseconds_, SecondsSince(begin) * 1000);
    return result;
  }
  double milliseconds() const { return milliseconds_; }

 private:
  double milliseconds_ = 0;
};

// A part of 1 GiB goes from a ps to ps 0, which writes it. Between two pieces both loops take a push, so no
// push waits longer than the longest of these calls.
void SendPart(benchmark::State& state) {
  Range512 range;
  const std::string directory = std::filesystem::temp_directory_path() / "dtrain_snapshot_bench";
  LongestCall sends, takes;
  for (auto _ : state) {
    std::filesystem::create_directories(directory);
    const std::shared_ptr<ShardSnapshot> snapshot = range.shard().TakeSnapshot();
    std::vector<Piece> asked;
    PulledPart part(range.layout(), 0, 1, 1, directory, [&](Piece piece) { asked.push_back(piece); });
    net::Encoder encoder;
    std::optional<ShardSaver::Outcome> outcome;
    while (!outcome) {
      for (const Piece& piece : std::exchange(asked, {})) {
        net::Message message = sends.Time([&] {
          return encoder.Piece({}, 1, piece.part, static_cast<uint64_t>(piece.number), 0,
                               *snapshot->Lend(piece));
        });
        takes.Time([&] { return part.OnPiece(std::move(message)), 0; });
      }
      outcome = takes.Time([&] { return part.Tick(Clock::now()), part.Poll(); });
      if (asked.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!outcome->error.empty()) state.SkipWithError(outcome->error.c_str());
    range.shard().Drop(*snapshot);
    std::filesystem::remove_all(directory);
  }
  state.counters["longest_of_the_ps_ms"] = sends.milliseconds();
  state.counters["longest_of_ps_0_ms"] = takes.milliseconds();
}

// A table of 2^26 rows with one value and one slot each. All rows were updated.
class Table {
 public:
  explicit Table(int64_t delta) : config_(MakeConfig(delta)), layout_(TableLayoutOf(config_.model, 1)) {
    shard_ = std::make_unique<Shard>(MakeParts(config_, layout_, 0));
    shard_->Initialise();
    Update(1);
  }
  Shard& shard() { return *shard_; }
  const Layout& layout() const { return layout_; }
  // Updates every row of the next `every`, from `first` on.
  void Update(uint64_t every, uint64_t first = 0) {
    constexpr size_t kKeys = 8192;
    const std::vector<float> gradient(kKeys, 0.5f);
    KeyList keys;
    for (uint64_t row = first; row < layout_.table->rows(); row += every) {
      keys.push_back(row);
      if (keys.size() == kKeys || row + every >= layout_.table->rows()) {
        const auto* const bytes = reinterpret_cast<const std::byte*>(gradient.data());
        shard_->Apply(0, {net::TensorView{bytes, keys.size() * sizeof(float)}, keys});
        keys.clear();
      }
    }
  }

 private:
  static Config MakeConfig(int64_t delta) {
    Config config;
    config.cluster.ps = {"localhost:1"};
    config.cluster.worker = {"localhost:2"};
    config.model.kind = ModelKind::kLogistic;
    config.model.inputs = (int64_t{1} << 26) - 1;
    config.model.outputs = 1;
    config.data.train.format = DataFormat::kLibsvm;
    config.train.optimizer.kind = OptimizerKind::kAdagrad;
    config.checkpoint.delta = delta;
    return config;
  }

  const Config config_;
  const Layout layout_;
  std::unique_ptr<Shard> shard_;
};

// The file of a ps, with one row of each hundredth group of 64 rows updated since the one before.
void SaveTable(benchmark::State& state, SnapshotOf of) {
  Table table(/*delta=*/1);
  const auto begin_chain = [&] { table.shard().Drop(*table.shard().TakeSnapshot()); };
  begin_chain();
  const std::string directory = std::filesystem::temp_directory_path() / "dtrain_snapshot_bench";
  uint64_t number = 0, bytes = 0;
  for (auto _ : state) {
    state.PauseTiming();
    table.Update(6400, 64 * (number % 100));
    std::filesystem::create_directories(directory);
    state.ResumeTiming();
    ShardSaver saver(table.layout(), 0, 1);
    const std::shared_ptr<ShardSnapshot> snapshot = table.shard().TakeSnapshot(of);
    saver.Begin(++number, snapshot, directory);
    while (!saver.Poll()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state.PauseTiming();
    if (!saver.Of(number)->error.empty()) state.SkipWithError(saver.Of(number)->error.c_str());
    table.shard().Drop(*snapshot);
    begin_chain();
    bytes = std::filesystem::file_size(directory + "/shard-0-of-1");
    std::filesystem::remove_all(directory);
    state.ResumeTiming();
  }
  state.counters["MiB"] = static_cast<double>(bytes) / (1 << 20);
}

// Updates of every 100th row, with and without the notes of what has changed.
void UpdateTable(benchmark::State& state, int64_t delta) {
  Table table(delta);
  for (auto _ : state) table.Update(100);
}

BENCHMARK_CAPTURE(SaveTable, all, SnapshotOf::kAll)->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK_CAPTURE(SaveTable, changes, SnapshotOf::kChanges)->Unit(benchmark::kMillisecond)->Iterations(10);
BENCHMARK_CAPTURE(UpdateTable, without_delta, 0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(UpdateTable, with_delta, 1)->Unit(benchmark::kMillisecond);
BENCHMARK(SendPart)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(TakeSnapshot)->Unit(benchmark::kMicrosecond)->Iterations(100);
BENCHMARK_CAPTURE(Apply, without_a_snapshot, Taken::kNone)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Apply, first_after_the_first_snapshot, Taken::kFirst)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3);
BENCHMARK_CAPTURE(Apply, first_after_a_later_snapshot, Taken::kNext)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Apply, later_with_a_snapshot, Taken::kLater)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dtrain::bench

BENCHMARK_MAIN();
