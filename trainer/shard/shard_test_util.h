// ShardFixture: the range of one ps with its initial values, for tests that update, snapshot and save it.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/shard/shard.h"
#include "trainer/shard/snapshot.h"
#include "trainer/table/row_pieces.h"
#include "trainer/testing/small_config.h"

namespace dtrain {

struct ShardFixture {
  explicit ShardFixture(const Config& of, int ps = 0)
      : config(of),
        layout(PlaceVariables(ModelVariables(config.model), static_cast<int>(config.cluster.ps.size()),
                              config.placement)),
        shard(MakeParts(config, layout, ps)) {
    shard.Initialise();
  }
  // Applies a gradient of ones.
  void Update() {
    for (int64_t block = 0; block < shard.block_count(); ++block) {
      const std::vector<float> ones(shard.bytes(block) / sizeof(float), 1);
      shard.Apply(block,
                  net::TensorView{reinterpret_cast<const std::byte*>(ones.data()), shard.bytes(block)});
    }
  }

  Config config;
  Layout layout;
  Shard shard;
};

// Where a piece of a snapshot of a range is.
inline RangePiece PieceOf(const Snapshot& snapshot, int64_t piece) {
  return dynamic_cast<const RangeSnapshot&>(snapshot).At(piece);
}

// All values of a snapshot: the weights, then each slot, each of the whole range.
inline std::vector<std::vector<float>> ValuesOf(const Snapshot& snapshot, size_t slots) {
  std::vector<std::vector<float>> values(1 + slots);
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  for (int64_t piece = 0; piece < snapshot.piece_count(); ++piece) {
    const Snapshot::Held read = *snapshot.Read(piece, scratch.data());
    const auto* const begin = reinterpret_cast<const float*>(read.bytes.data);
    std::vector<float>& slot = values[static_cast<size_t>(PieceOf(snapshot, piece).slot)];
    slot.insert(slot.end(), begin, begin + read.bytes.size / sizeof(float));
  }
  return values;
}

inline std::vector<std::vector<float>> ValuesOf(const ShardSnapshot& snapshot, size_t slots) {
  return ValuesOf(*snapshot.parts()[0], slots);
}

// Restores these rows of a table, as values of a checkpoint.
inline void PutRows(Part* part, RowRange rows, int64_t width,
                    const std::map<uint64_t, std::vector<float>>& values) {
  const auto of_row = static_cast<int64_t>(values.begin()->second.size());
  const RowPieces pieces(rows, of_row);
  std::vector<std::byte> bytes(kMaxRowPieceBytes);
  for (auto next = values.begin(); next != values.end();) {
    const int64_t piece = pieces.Of(next->first);
    RowPieceWriter writer(width, of_row);
    for (; next != values.end() && pieces.Of(next->first) == piece; ++next) {
      writer.Add(next->first, next->second.data());
    }
    DT_CHECK(part->Put(piece, {bytes.data(), writer.Finish(pieces.At(piece), bytes.data())}).empty(), piece);
  }
}

// Calls `poll` until its result converts to true, and returns that. Another thread does the work.
template <typename Poll>
auto PollUntil(Poll&& poll) {
  constexpr std::chrono::seconds kHangs{60};
  const TimePoint deadline = Clock::now() + kHangs;
  while (true) {
    if (auto done = poll()) return done;
    DT_CHECK(Clock::now() < deadline);
    std::this_thread::yield();
  }
}

}  // namespace dtrain
