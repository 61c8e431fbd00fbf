// Saves of a hash table of one ps beside its updates: all rows, and what has changed since
// (checkpoint.delta). The table has some distinct keys; before each save keys are drawn by Zipf's law until 1
// % of them have been named since the base. It prints the bytes of both saves, and how much longer than the
// median the longest push beside each save took.
//   hash_save_bench [distinct keys, 1e7] [saves of each kind, 20] [keys of a push, 4992]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/shard/shard.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain::bench {
namespace {

Config MakeConfig() {
  Config config;
  config.cluster.ps = {"127.0.0.1:1"};
  config.cluster.worker = {"127.0.0.1:2"};
  config.model.kind = ModelKind::kLogistic;
  config.model.table = TableKind::kHash;
  config.model.inputs = kKeyInputs;
  config.model.outputs = 1;
  config.train.optimizer.kind = OptimizerKind::kAdagrad;
  config.checkpoint.delta = 1;
  return config;
}

class Table {
 public:
  Table(int64_t distinct, int64_t keys)
      : distinct_(distinct),
        keys_(keys),
        gradient_(static_cast<size_t>(keys), 0.1f),
        named_(static_cast<size_t>(distinct)) {
    shard_.Initialise();
    for (int64_t key = 0; key < distinct_;) {
      rows_.clear();
      for (int64_t i = 0; i < keys_ && key < distinct_; ++i) rows_.push_back(RowOf(key++));
      Push();
    }
  }
  Shard& shard() { return shard_; }
  const Layout& layout() const { return layout_; }

  // A push of keys drawn by Zipf's law. Returns how long it took.
  double PushDrawn() {
    rows_.clear();
    for (int64_t i = 0; i < keys_; ++i) {
      // With exponent 1 the rank is the number of keys to the power of a uniform number.
      const double share = static_cast<double>(random_.Below(drawn_++, 1 << 30)) / (1 << 30);
      const auto key = static_cast<size_t>(std::pow(static_cast<double>(distinct_), share)) - 1;
      rows_.push_back(RowOf(static_cast<int64_t>(key)));
      named_count_ += named_[key] ? 0 : 1;
      named_[key] = true;
    }
    return Push();
  }
  // Draws until a hundredth of the keys was named since the last call.
  void NameSome() {
    std::fill(named_.begin(), named_.end(), false);
    named_count_ = 0;
    while (named_count_ < distinct_ / 100) PushDrawn();
  }

 private:
  uint64_t RowOf(int64_t key) const { return layout_.table->RowOfKey(static_cast<uint64_t>(key)); }
  double Push() {
    std::sort(rows_.begin(), rows_.end());
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
    const net::TensorView values{reinterpret_cast<const std::byte*>(gradient_.data()),
                                 rows_.size() * sizeof(float)};
    const TimePoint begun = Clock::now();
    shard_.Apply(0, {values, rows_});
    return SecondsBetween(begun, Clock::now());
  }

  const int64_t distinct_;
  const int64_t keys_;
  const Config config_ = MakeConfig();
  const Layout layout_ = TableLayoutOf(config_.model, 1);
  Shard shard_{MakeParts(config_, layout_, 0)};
  const CounterRandom random_{7};
  int64_t drawn_ = 0;
  const std::vector<float> gradient_;
  KeyList rows_;
  std::vector<bool> named_;  // by key
  int64_t named_count_ = 0;
};

double At(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Saved {
  uint64_t bytes = 0;
  double seconds = 0;
  double longest_push = 0;
};

// Saves while pushes go on. The push that finds the snapshot just taken counts its taking.
Saved Save(Table* table, SnapshotOf of, uint64_t number) {
  const std::string directory = std::filesystem::temp_directory_path() / "dtrain_hash_save_bench";
  std::filesystem::create_directories(directory);
  const TimePoint begun = Clock::now();
  const std::shared_ptr<ShardSnapshot> snapshot = table->shard().TakeSnapshot(of);
  double taking = SecondsBetween(begun, Clock::now());
  Saved saved;
  ShardSaver saver(table->layout(), 0, 1);
  saver.Begin(number, snapshot, directory);
  while (!saver.Poll()) {
    saved.longest_push = std::max(saved.longest_push, taking + table->PushDrawn());
    taking = 0;
  }
  saved.seconds = SecondsBetween(begun, Clock::now());
  table->shard().Drop(*snapshot);
  if (!saver.Of(number)->error.empty()) fmt::print("{}\n", saver.Of(number)->error);
  saved.bytes = std::filesystem::file_size(directory + "/shard-0-of-1");
  std::filesystem::remove_all(directory);
  return saved;
}

void Run(int64_t distinct, int64_t saves, int64_t keys) {
  Table table(distinct, keys);
  std::vector<double> pushes;
  for (int i = 0; i < 1000; ++i) pushes.push_back(table.PushDrawn());
  const double median = At(pushes, 0.5);
  fmt::print("{} keys; a push of {} keys takes {:.2f} ms, the 99th percentile {:.2f} ms\n", distinct, keys,
             median * 1e3, At(pushes, 0.99) * 1e3);
  std::vector<double> alone;  // as long as a save takes
  for (int64_t i = 0; i < saves; ++i) {
    double longest = 0;
    for (const TimePoint end = Clock::now() + std::chrono::seconds(1); Clock::now() < end;) {
      longest = std::max(longest, table.PushDrawn());
    }
    alone.push_back((longest - median) * 1e3);
  }
  fmt::print(
      "without a save the longest push of a second took longer than the median by {:.2f} ms (median), "
      "{:.2f} ms (99th percentile)\n",
      At(alone, 0.5), At(alone, 0.99));
  uint64_t number = 0;
  double of_all = 0;
  for (const SnapshotOf of : {SnapshotOf::kAll, SnapshotOf::kChanges}) {
    std::vector<double> bytes, seconds, beyond;
    for (int64_t i = 0; i < saves; ++i) {
      if (of == SnapshotOf::kChanges) {
        table.shard().Drop(*table.shard().TakeSnapshot());
        table.NameSome();
      }
      const Saved saved = Save(&table, of, ++number);
      bytes.push_back(static_cast<double>(saved.bytes));
      seconds.push_back(saved.seconds);
      beyond.push_back((saved.longest_push - median) * 1e3);
    }
    const double mib = At(bytes, 0.5) / (1 << 20);
    if (of == SnapshotOf::kAll) of_all = mib;
    fmt::print(
        "{}: {:.1f} MiB ({:.3f} of all) in {:.2f} s; the longest push beside a save took longer than the "
        "median by {:.2f} ms (median), {:.2f} ms (99th percentile of {} saves)\n",
        of == SnapshotOf::kAll ? "all rows" : "what has changed", mib, mib / of_all, At(seconds, 0.5),
        At(beyond, 0.5), At(beyond, 0.99), saves);
  }
}

int64_t Number(int argc, char** argv, int at, double otherwise) {
  return static_cast<int64_t>(argc > at ? std::strtod(argv[at], nullptr) : otherwise);
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  using dtrain::bench::Number;
  dtrain::bench::Run(Number(argc, argv, 1, 1e7), Number(argc, argv, 2, 20), Number(argc, argv, 3, 4992));
  return 0;
}
