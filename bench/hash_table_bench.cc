// Streams distinct keys through the hash table of one ps, as many as are asked for: each push names keys that
// never came before and, as many again, keys that did, drawn by Zipf. It prints how many keys a second the
// shard takes (the update by a gradient, and the answer with the weights of as many keys), its memory beside
// what dtrain plan says of model.max_rows, and how long pushes took. Sorting the keys of a push is the
// worker's work, and not counted.
//   hash_table_bench [distinct keys, 1e7] [max_rows, 0: no limit] [admit_after, 3] [keys of a push, 4992]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/shard/hash_part.h"
#include "trainer/table/hash_store.h"

namespace dtrain::bench {
namespace {

double ResidentMiB() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Config JobOf(int64_t max_rows, int64_t admit_after) {
  Config config;
  config.cluster.ps = {"127.0.0.1:1"};
  config.cluster.worker = {"127.0.0.1:2"};
  config.model.kind = ModelKind::kLogistic;
  config.model.table = TableKind::kHash;
  config.model.inputs = kKeyInputs;
  config.model.outputs = 1;
  config.model.admit_after = admit_after;
  if (max_rows > 0) config.model.max_rows = max_rows;
  return config;
}

// Stream: the keys of pushes, as rows in order.
class Stream {
 public:
  Stream(const TableLayout& table, int64_t keys) : table_(table), keys_(keys) {}

  const KeyList& Next() {
    rows_.clear();
    for (int64_t i = 0; i < keys_ / 2; ++i) rows_.push_back(table_.RowOfKey(++distinct_));
    for (int64_t i = keys_ / 2; i < keys_; ++i) {
      // Zipf with exponent 1: the rank is the number of keys to the power of a uniform number.
      const double share = static_cast<double>(random_.Below(drawn_++, 1 << 30)) / (1 << 30);
      rows_.push_back(
          table_.RowOfKey(static_cast<uint64_t>(std::pow(static_cast<double>(distinct_), share))));
    }
    std::sort(rows_.begin(), rows_.end());
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
    return rows_;
  }
  int64_t distinct() const { return static_cast<int64_t>(distinct_); }

 private:
  const TableLayout table_;
  const int64_t keys_;
  const CounterRandom random_{7};
  uint64_t distinct_ = 0;
  int64_t drawn_ = 0;
  KeyList rows_;
};

// Times: how long pushes took.
class Times {
 public:
  // `busy_s`: the part in which the thread had a processor.
  void Add(double seconds, double busy_s) {
    sum_ += seconds;
    max_ = std::max(max_, seconds);
    max_busy_ = std::max(max_busy_, busy_s);
    const double ms = busy_s * 1e3;
    size_t at = 0;
    while (at + 1 < kCounts && ms > kLimitsMs[at]) ++at;
    ++counts_[at];
  }
  double sum() const { return sum_; }
  int64_t Slow() const { return counts_[kCounts - 2] + counts_[kCounts - 1]; }
  void Print() const {
    for (size_t i = 0; i < kCounts; ++i) {
      fmt::print("  {} {:>5} ms: {}\n", i + 1 < kCounts ? "up to" : "above",
                 kLimitsMs[std::min(i, kCounts - 2)], counts_[i]);
    }
    fmt::print("  longest: {:.2f} ms, with the time in which others had the processor {:.2f} ms\n",
               max_busy_ * 1e3, max_ * 1e3);
  }

 private:
  static constexpr double kLimitsMs[] = {0.25, 0.5, 1, 2, 3, 5, 10};
  static constexpr size_t kCounts = std::size(kLimitsMs) + 1;
  int64_t counts_[kCounts] = {};
  double sum_ = 0;
  double max_ = 0;
  double max_busy_ = 0;
};

void Run(int64_t distinct, int64_t max_rows, int64_t admit_after, int64_t keys) {
  const Config config = JobOf(max_rows, admit_after);
  const Layout layout = TableLayoutOf(config.model, 1);
  HashPart shard(config, layout, 0);
  shard.Initialise();
  const double before_mib = ResidentMiB();
  const auto planned = [&](HashStore::Filled filled) {
    const auto of_range = static_cast<uint64_t>(max_rows / TableLayout::kHashRanges);
    return static_cast<double>(HashStore::BytesOfRanges(of_range, 1, filled)) / (1 << 20);
  };
  Stream stream(*layout.table, keys);
  Times times;
  const std::vector<float> gradient(static_cast<size_t>(keys), 0.1f);
  int64_t named = 0, slow = 0;
  for (int64_t tenth = 1; tenth <= 10; ++tenth) {
    while (stream.distinct() < distinct / 10 * tenth) {
      const KeyList& rows = stream.Next();
      const auto count = static_cast<int64_t>(rows.size());
      const net::TensorView values{reinterpret_cast<const std::byte*>(gradient.data()),
                                   rows.size() * sizeof(float)};
      const TimePoint begun = Clock::now();
      const double busy = ThreadSeconds();
      shard.Apply(0, {values, rows});
      const net::LentBytes lent = shard.Lend(0, rows);
      times.Add(SecondsBetween(begun, Clock::now()), ThreadSeconds() - busy);
      lent.release(const_cast<void*>(lent.data), lent.context);
      named += count;
    }
    const HashStore& store = shard.rows();
    fmt::print(
        "{:>11} distinct keys: {:>11} rows, {:>11} candidates, {:>11} evicted; {:.1f} MiB of blocks, {:.1f} "
        "MiB resident{}; {:.2f} M keys/s; {} pushes above 5 ms\n",
        stream.distinct(), store.value_rows(), store.entries() - store.value_rows(), store.evicted(),
        static_cast<double>(store.bytes()) / (1 << 20), ResidentMiB() - before_mib,
        max_rows > 0 ? fmt::format(" ({:.1f} planned, {:.1f} if all are candidates)",
                                   planned(HashStore::Filled::kRows), planned(HashStore::Filled::kCandidates))
                     : "",
        static_cast<double>(named) / times.sum() / 1e6, times.Slow() - slow);
    slow = times.Slow();
  }
  fmt::print("pushes of {} keys:\n", keys);
  times.Print();
}

int64_t Number(int argc, char** argv, int at, double otherwise) {
  return static_cast<int64_t>(argc > at ? std::strtod(argv[at], nullptr) : otherwise);
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  using dtrain::bench::Number;
  dtrain::bench::Run(Number(argc, argv, 1, 1e7), Number(argc, argv, 2, 0), Number(argc, argv, 3, 3),
                     Number(argc, argv, 4, 4992));
  return 0;
}
