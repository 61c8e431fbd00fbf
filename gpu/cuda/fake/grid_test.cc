#include "gpu/cuda/fake/grid.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "gpu/cuda/fake/fake_test_util.h"
#include "gpu/kernel_thread.h"

namespace dtrain::gpu::cuda {
namespace {

// Each thread notes itself.
struct NoteKernel {
  static constexpr bool kSynchronizes = false;
  int64_t* seen;
  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    seen[thread.block() * thread.threads() + thread.index()] +=
        1 + thread.blocks() + thread.threads() + thread.lane() + 100 * thread.warp() + 1000 * thread.warps();
  }
};

TEST_CASE("grid: each thread of each block runs once and knows its place") {
  const Grid grid{3, 96};
  std::vector<int64_t> seen(3 * 96, 0);
  GridRunner().Run(grid, NoteKernel{seen.data()});
  for (int64_t i = 0; i < 3 * 96; ++i) {
    const int64_t index = i % 96;
    CHECK(seen[static_cast<size_t>(i)] == 1 + 3 + 96 + index % 32 + 100 * (index / 32) + 3000);
  }
}

// The sum of a block's values by the textbook's tree: shuffles in a warp, shared memory between warps.
struct BlockSumKernel {
  static constexpr bool kSynchronizes = true;
  const float* values;
  float* sums;
  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    float sum = values[thread.block() * thread.threads() + thread.index()];
    for (int mask = 16; mask > 0; mask /= 2) sum += thread.ShuffleXor(sum, mask);
    float* const of_warps = thread.template Shared<float, 32>();
    if (thread.lane() == 0) of_warps[thread.warp()] = sum;
    thread.Sync();
    if (thread.index() != 0) return;
    float total = 0;
    for (int i = 0; i < thread.warps(); ++i) total += of_warps[i];
    sums[thread.block()] = total;
  }
};

TEST_CASE("grid: shuffles, shared memory and Sync() make the sum of a block") {
  for (const int threads : {32, 64, 256, 1024}) {
    CAPTURE(threads);
    std::vector<float> values(static_cast<size_t>(5 * threads));
    std::iota(values.begin(), values.end(), 0.0f);
    std::vector<float> sums(5, -1);
    GridRunner runner;
    for (int round = 0; round < 2; ++round) {
      runner.Run({5, threads}, BlockSumKernel{values.data(), sums.data()});
      for (int64_t block = 0; block < 5; ++block) {
        const int64_t first = block * threads;
        CHECK(sums[static_cast<size_t>(block)] ==
              static_cast<float>(threads * (2 * first + threads - 1) / 2));
      }
    }
  }
}

// Each lane reads the next one's, twice in a row.
struct RotateKernel {
  static constexpr bool kSynchronizes = true;
  double* out;
  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    const int next = (thread.lane() + 1) % 32;
    const double once = thread.Shuffle(static_cast<double>(thread.index()), next);
    const int64_t twice = thread.Shuffle(static_cast<int64_t>(once), next);
    out[thread.index()] = static_cast<double>(twice);
  }
};

TEST_CASE("grid: a shuffle's value is that of its own round, and of its own warp") {
  std::vector<double> out(64);
  GridRunner().Run({1, 64}, RotateKernel{out.data()});
  for (int i = 0; i < 64; ++i) CHECK(out[static_cast<size_t>(i)] == i / 32 * 32 + (i + 2) % 32);
}

// What is left of a shared word that the last block wrote, and of two arrays of one type.
struct SharedKernel {
  static constexpr bool kSynchronizes = true;
  uint32_t* found;
  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    uint32_t* const words = thread.template Shared<uint32_t, 4>();
    uint32_t* const others = thread.template Shared<uint32_t, 5>();
    if (thread.index() == 0) found[thread.block()] = words[3] & others[0];
    thread.Sync();
    if (thread.index() == 0) words[3] = others[0] = 7;
    thread.Sync();
    if (thread.index() == 31 && words == others) found[thread.block()] = 1;
  }
};

TEST_CASE("grid: shared memory is poison at the beginning of each block, and each array is its own") {
  std::vector<uint32_t> found(3, 0);
  GridRunner().Run({3, 32}, SharedKernel{found.data()});
  CHECK(found == std::vector<uint32_t>(3, 0xffffffffu));
}

// Who was last, by a counter.
struct TicketKernel {
  static constexpr bool kSynchronizes = false;
  uint32_t* ticket;
  int64_t* last;
  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    if (thread.index() != 0) return;
    thread.Publish();
    if (thread.AtomicAdd(ticket, uint32_t{1}) == thread.blocks() - 1) *last = thread.block();
  }
};

TEST_CASE("grid: AtomicAdd() counts, and it is not always the same block that is last") {
  GridRunner runner;
  std::vector<int64_t> last(2, -1);
  for (int64_t& block : last) {
    uint32_t ticket = 0;
    runner.Run({4, 32}, TicketKernel{&ticket, &block});
    CHECK(ticket == 4);
  }
  std::sort(last.begin(), last.end());
  CHECK(last == std::vector<int64_t>{0, 3});
}

// Reads what its neighbour wrote, with no Sync() where `together` is false.
struct NeighbourKernel {
  static constexpr bool kSynchronizes = true;
  bool sync;
  int* wrong;
  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    int* const values = thread.template Shared<int, 64>();
    for (int round = 0; round < 2; ++round) {
      values[thread.index()] = 100 * round + thread.index();
      if (sync) thread.Sync();
      const int next = (thread.index() + 1) % 64;
      if (values[next] != 100 * round + next) *wrong += 1;
      thread.Sync();
    }
  }
};

TEST_CASE("grid: a Sync() that is missing shows in the result") {
  int wrong = 0;
  GridRunner().Run({1, 64}, NeighbourKernel{true, &wrong});
  CHECK(wrong == 0);
  GridRunner().Run({1, 64}, NeighbourKernel{false, &wrong});
  CHECK(wrong > 0);
}

enum class Mistake {
  kNone,
  kSyncOfSome,
  kShuffleOfSome,
  kTwoPlaces,
  kSyncAndShuffle,
  kOneWarpEnds,
  kNoLane,
  kShared
};

struct MistakenKernel {
  static constexpr bool kSynchronizes = true;
  Mistake mistake;
  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    const bool odd = thread.lane() % 2 == 1;
    if (mistake == Mistake::kSyncOfSome && odd) thread.Sync();
    if (mistake == Mistake::kShuffleOfSome && odd) thread.Shuffle(1.0f, 0);
    if (mistake == Mistake::kTwoPlaces) {
      if (odd) {
        thread.Sync();
      } else {
        thread.Sync();
      }
    }
    if (mistake == Mistake::kSyncAndShuffle && odd) thread.Sync();
    if (mistake == Mistake::kSyncAndShuffle && !odd) thread.Shuffle(1.0f, 0);
    if (mistake == Mistake::kOneWarpEnds && thread.warp() == 0) return;
    if (mistake == Mistake::kOneWarpEnds) thread.Sync();
    if (mistake == Mistake::kNoLane) thread.Shuffle(1.0f, thread.lane() + 1);
    if (mistake == Mistake::kShared) thread.template Shared<double, 7000>();
  }
};

TEST_CASE("grid: threads that do not wait together end the process and say who and where") {
  const auto dies = [](Mistake mistake) {
    return DeathMessage([mistake] { GridRunner().Run({1, 64}, MistakenKernel{mistake}); });
  };
  CHECK(dies(Mistake::kNone).empty());
  CHECK(Says(dies(Mistake::kSyncOfSome),
             "thread 0 of a block has ended, but thread 1 waits in Sync() of line"));
  CHECK(Says(dies(Mistake::kShuffleOfSome), "has ended, but thread 1 waits in a shuffle of line"));
  CHECK(Says(dies(Mistake::kTwoPlaces), "waits in Sync() of line"));
  CHECK(Says(dies(Mistake::kSyncAndShuffle), "waits in a shuffle of line"));
  CHECK(Says(dies(Mistake::kOneWarpEnds), "thread 0 of a block has ended, but thread 32 waits in Sync()"));
  CHECK(Says(dies(Mistake::kNoLane), "no lane of a warp"));
  CHECK(Says(dies(Mistake::kShared), "too much shared memory"));
}

TEST_CASE("grid: a shape that a device refuses ends the process") {
  int64_t seen = 0;
  for (const Grid& grid : {Grid{0, 32}, Grid{int64_t{1} << 31, 32}, Grid{1, 0}, Grid{1, 33}, Grid{1, 1056}}) {
    CHECK(Says(DeathMessage([&] { GridRunner().Run(grid, NoteKernel{&seen}); }), "ended by signal"));
  }
}

struct NarrowKernel : NoteKernel {
  static constexpr int kMaxThreads = 64;
};

TEST_CASE("grid: a block of more threads than its kernel is made for ends the process") {
  std::vector<int64_t> seen(96, 0);
  CHECK(MaxThreadsOf<NoteKernel>() == 1024);
  CHECK(DeathMessage([&] { GridRunner().Run({1, 64}, NarrowKernel{{seen.data()}}); }).empty());
  CHECK(Says(DeathMessage([&] {
               GridRunner().Run({1, 96}, NarrowKernel{{seen.data()}});
             }),
             "ended by signal"));
}

}  // namespace
}  // namespace dtrain::gpu::cuda
