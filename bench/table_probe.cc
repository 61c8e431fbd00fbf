// Probes what sparse rows are planned on: how fast random rows of a table that is much larger than the caches
// are read and updated, what its page faults cost, and how fast rows travel between a worker and a ps over
// plain ZeroMQ on the loopback. It measures the machine, and nothing of dtrain.
//   table_probe [GiB of the table, 16]
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <zmq.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "bench/limit/raw_socket.h"

namespace dtrain::bench {
namespace {

constexpr size_t kLine = 64;
constexpr int kRounds = 5;

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double SecondsOf(const std::function<void()>& work) {
  const TimePoint begun = Clock::now();
  work();
  return SecondsBetween(begun, Clock::now());
}

int64_t Faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Table: anonymous memory, with the pages that the kernel is asked for.
class Table {
 public:
  Table(size_t bytes, int advice)
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                     0)) {
    if (memory_ == MAP_FAILED) {
      fmt::print(stderr, "table_probe: no address space for {} bytes\n", bytes);
      exit(1);
    }
    madvise(memory_, bytes, advice);
  }
  ~Table() { munmap(memory_, bytes_); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  float* floats() const { return static_cast<float*>(memory_); }
  char* chars() const { return static_cast<char*>(memory_); }

 private:
  const size_t bytes_;
  void* const memory_;
};

// Rows of a batch: `zipf` draws popular ones mostly, as categories of click logs are.
std::vector<int64_t> DrawRows(uint64_t round, int64_t count, int64_t rows, bool zipf) {
  const CounterRandom random = CounterRandom(7).Stream(round);
  std::vector<int64_t> drawn(static_cast<size_t>(count));
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto uniform = static_cast<int64_t>(random.Below(i, static_cast<uint64_t>(rows)));
    // Zipf with exponent 1: the rank is rows to the power of a uniform number; then it is spread.
    const double share = static_cast<double>(uniform) / static_cast<double>(rows);
    const auto rank = static_cast<uint64_t>(std::pow(static_cast<double>(rows), share));
    drawn[i] =
        zipf ? static_cast<int64_t>(rank * 0x9e3779b97f4a7c15u % static_cast<uint64_t>(rows)) : uniform;
  }
  return drawn;
}

void Gather(const float* table, const std::vector<int64_t>& rows, size_t width, size_t ahead, float* out) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + ahead < rows.size()) {
      const char* next = reinterpret_cast<const char*>(table + static_cast<size_t>(rows[i + ahead]) * width);
      for (size_t byte = 0; byte < width * sizeof(float); byte += kLine) __builtin_prefetch(next + byte, 1);
    }
    std::memcpy(out + i * width, table + static_cast<size_t>(rows[i]) * width, width * sizeof(float));
  }
}

void Update(float* table, const std::vector<int64_t>& rows, size_t width, size_t ahead,
            const float* gradients) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + ahead < rows.size()) {
      const char* next = reinterpret_cast<const char*>(table + static_cast<size_t>(rows[i + ahead]) * width);
      for (size_t byte = 0; byte < width * sizeof(float); byte += kLine) __builtin_prefetch(next + byte, 1);
    }
    float* const row = table + static_cast<size_t>(rows[i]) * width;
    for (size_t j = 0; j < width; ++j) row[j] -= 0.01f * gradients[i * width + j];
  }
}

void ProbeFaults(size_t bytes) {
  fmt::print("page faults, {:.0f} GiB\n", static_cast<double>(bytes) / (1 << 30));
  for (const bool huge : {false, true}) {
    for (const bool random : {false, true}) {
      const Table table(bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
      const int64_t pages = static_cast<int64_t>(bytes >> 12), touched = std::min<int64_t>(pages, 1 << 18);
      const std::vector<int64_t> drawn = DrawRows(1, touched, pages, false);
      const int64_t before = Faults();
      const double seconds = SecondsOf([&] {
        for (int64_t i = 0; i < touched; ++i) {
          table.chars()[static_cast<size_t>(random ? drawn[static_cast<size_t>(i)] : i) << 12] = 1;
        }
      });
      const int64_t faults = Faults() - before;
      fmt::print("  {:<5} pages, {:<10} {:>8} faults, {:8.0f} ns each, {:6.2f} GB/s of new memory\n",
                 huge ? "huge" : "4 KiB", random ? "at random" : "in order", faults,
                 seconds * 1e9 / static_cast<double>(faults),
                 static_cast<double>(faults) * (huge ? 2097152 : 4096) / seconds / 1e9);
    }
  }
}

void ProbeRows(size_t bytes) {
  constexpr int64_t kRowsOfBatch = 1 << 16;
  for (const bool huge : {false, true}) {
    const Table table(bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    const double filled = SecondsOf([&] { std::memset(table.chars(), 0, bytes); });
    double sum = 0;
    const double read = SecondsOf([&] {
      for (size_t i = 0; i < bytes / sizeof(float); i += kLine / sizeof(float)) sum += table.floats()[i];
    });
    fmt::print("table of {} pages: filled at {:.1f} GB/s, read in order at {:.1f} GB/s{}\n",
               huge ? "huge" : "4 KiB", static_cast<double>(bytes) / filled / 1e9,
               static_cast<double>(bytes) / read / 1e9, sum == 0 ? "" : " ");
    for (const bool zipf : {false, true}) {
      for (const size_t width : {size_t{1}, size_t{16}, size_t{64}}) {
        const auto rows = static_cast<int64_t>(bytes / sizeof(float) / width);
        std::vector<float> out(static_cast<size_t>(kRowsOfBatch) * width);
        fmt::print("  {:<7} rows of {:>2} floats:", zipf ? "zipf" : "uniform", width);
        for (const size_t ahead : {size_t{0}, size_t{16}}) {
          std::vector<double> gather, update;
          for (uint64_t round = 0; round < kRounds; ++round) {
            const std::vector<int64_t> drawn = DrawRows(round + 100 * ahead, kRowsOfBatch, rows, zipf);
            gather.push_back(SecondsOf([&] { Gather(table.floats(), drawn, width, ahead, out.data()); }));
            const std::vector<int64_t> others = DrawRows(round + 100 * ahead + 50, kRowsOfBatch, rows, zipf);
            update.push_back(SecondsOf([&] { Update(table.floats(), others, width, ahead, out.data()); }));
          }
          fmt::print("  {}{:6.1f} M rows/s read, {:6.1f} updated", ahead > 0 ? "ahead " : "",
                     kRowsOfBatch / Median(gather) / 1e6, kRowsOfBatch / Median(update) / 1e6);
        }
        fmt::print("\n");
      }
    }
  }
}

// A worker asks for rows by their keys and pushes gradients of as many; the ps answers with rows.
void ProbeExchange() {
  constexpr int kExchanges = 200;
  fmt::print("rows over the loopback, plain ZeroMQ: keys of 8 bytes and gradients there, rows back\n");
  for (const size_t width : {size_t{1}, size_t{16}, size_t{64}}) {
    for (const size_t rows : {size_t{256}, size_t{4096}, size_t{26 * 1024}}) {
      RawSocket ps(ZMQ_ROUTER), worker(ZMQ_DEALER);
      worker.Connect(ps.Bind());
      const std::vector<char> asked(rows * (sizeof(int64_t) + width * sizeof(float)), 1);
      const std::vector<char> answer(rows * width * sizeof(float), 1);
      std::thread serves([&] {
        for (int i = 0; i < kExchanges; ++i) {
          RawFrame from, request;
          ps.Receive(&from, true);
          ps.Receive(&request, true);
          ps.SendBack(from, true);
          ps.SendLent(answer.data(), answer.size(), false);
        }
      });
      std::vector<double> seconds;
      for (int i = 0; i < kExchanges; ++i) {
        seconds.push_back(SecondsOf([&] {
          worker.SendLent(asked.data(), asked.size(), false);
          RawFrame got;
          worker.Receive(&got, true);
        }));
      }
      serves.join();
      const double median = Median(seconds);
      fmt::print("  {:>2} floats, {:>5} rows: {:8.1f} us, {:6.2f} M rows/s, {:5.2f} GB/s\n", width, rows,
                 median * 1e6, static_cast<double>(rows) / median / 1e6,
                 static_cast<double>(asked.size() + answer.size()) / median / 1e9);
    }
  }
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  const double gib = argc > 1 ? atof(argv[1]) : 16;
  if (!(gib > 0)) {
    fmt::print(stderr, "table_probe [GiB of the table, 16]\n");
    return 2;
  }
  const auto bytes = static_cast<size_t>(gib * (1 << 30)) >> 21 << 21;
  dtrain::bench::ProbeExchange();
  dtrain::bench::ProbeFaults(bytes);
  dtrain::bench::ProbeRows(bytes);
}
