// A snapshot that a thread writes piece by piece while the ps loop goes on: its values and its buffers.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "trainer/shard/snapshot_test_util.h"

namespace dtrain {
namespace {

// Updates every block while a snapshot is alive, and after it was dropped.
void UpdateAround(RangePart& shard, int snapshots) {
  const Values gradient = Pattern();
  const auto update = [&] {
    for (int64_t block = 0; block < shard.block_count(); ++block) {
      const net::Frame reply = FrameOver(shard.Lend(block));  // so updates need another buffer
      shard.Apply(block,
                  net::TensorView{reinterpret_cast<const std::byte*>(gradient.data()), shard.bytes(block)});
    }
  };
  for (int i = 0; i < snapshots; ++i) {
    const std::shared_ptr<Snapshot> snapshot = shard.TakeSnapshot();
    for (int times = 0; times < 3; ++times) update();
    const net::Frame late = FrameOver(*snapshot->Lend(0));
    shard.Drop(snapshot);
    for (int times = 0; times < 3; ++times) update();
  }
}

TEST_CASE("snapshot: those that are dropped leave no spare buffers behind") {
  for (const bool keeps_previous : {false, true}) {
    const Job job(OptimizerKind::kAdam, kThreeBlocks, keeps_previous);
    RangePart shard(job.config, job.layout, 0);
    shard.Initialise();
    UpdateAround(shard, 4);
    CHECK(shard.spare_count() <= 1);
  }
}

// Reads piece by piece and releases each, as the thread that writes a file does.
int WrongPieces(Snapshot& snapshot, const std::vector<Values>& copy) {
  int wrong = 0;
  for (int64_t piece = 0; piece < snapshot.piece_count(); ++piece) {
    if (!SamePiece(copy, snapshot, piece)) ++wrong;
    snapshot.ReleaseBefore(piece + 1);
  }
  return wrong;
}

TEST_CASE("snapshot: a thread reads one while the ps loop applies gradients") {
  for (const bool keeps_previous : {false, true}) {
    const Job job(OptimizerKind::kAdam, kThreeBlocks, keeps_previous);
    PlainRange plain(job);
    RangePart shard(job.config, job.layout, 0);
    shard.Initialise();
    const Values gradient = Pattern();
    int64_t block = 0;
    for (int i = 0; i < 4; ++i) {
      const std::shared_ptr<Snapshot> snapshot = shard.TakeSnapshot();
      const std::vector<Values> copy = plain.Copy();
      std::atomic<bool> done{false};
      int wrong = -1;
      std::thread reader([&, snapshot] {
        wrong = WrongPieces(*snapshot, copy);
        done = true;
      });
      do {
        shard.Apply(block,
                    net::TensorView{reinterpret_cast<const std::byte*>(gradient.data()), shard.bytes(block)});
        plain.Apply(block, gradient);
        block = (block + 1) % shard.block_count();
      } while (!done);
      reader.join();
      CHECK(wrong == 0);
      CHECK_FALSE(snapshot->Read(0, nullptr));
    }
    CHECK(shard.spare_count() == 0);
  }
}

TEST_CASE("snapshot: one may be dropped while a thread reads it") {
  const Job job(OptimizerKind::kMomentum, kThreeBlocks, false);
  RangePart shard(job.config, job.layout, 0);
  shard.Initialise();
  const Values gradient = Pattern();
  for (int64_t updates = 0; updates < 4; ++updates) {
    const std::shared_ptr<Snapshot> snapshot = shard.TakeSnapshot();
    std::thread reader([snapshot, scratch = Values(kBlockValues)]() mutable {
      while (snapshot->Read(snapshot->piece_count() - 1, scratch.data())) {
      }
    });
    for (int64_t i = 0; i < updates; ++i) {
      shard.Apply(i % 3,
                  net::TensorView{reinterpret_cast<const std::byte*>(gradient.data()), shard.bytes(i % 3)});
    }
    shard.Drop(snapshot);
    shard.Apply(2, net::TensorView{reinterpret_cast<const std::byte*>(gradient.data()), shard.bytes(2)});
    reader.join();
  }
}

// The number of buffers when pieces are read and released in order, `ahead` blocks before every update.
size_t BuffersNeeded(RangePart& shard, int64_t ahead) {
  const Values gradient = Pattern();
  Values scratch(kBlockValues);
  for (int i = 0; i < 3; ++i) {
    const std::shared_ptr<Snapshot> snapshot = shard.TakeSnapshot();
    const int64_t pieces = snapshot->piece_count() / shard.block_count();
    for (int64_t block = 0; block < shard.block_count(); ++block) {
      snapshot->ReleaseBefore((block + ahead) * pieces);
      shard.Apply(block,
                  net::TensorView{reinterpret_cast<const std::byte*>(gradient.data()), shard.bytes(block)});
    }
    shard.Drop(snapshot);
  }
  return shard.snapshot_buffer_count();
}

TEST_CASE("snapshot: blocks that are released before their update are not copied") {
  const Job job(OptimizerKind::kAdam, kThreeBlocks, false);
  RangePart shard(job.config, job.layout, 0);
  shard.Initialise();
  CHECK(BuffersNeeded(shard, 1) == 0);
}

TEST_CASE("snapshot: buffers are kept for the next one, never more than weights and slots have blocks") {
  const Job job(OptimizerKind::kAdam, kThreeBlocks, false);
  RangePart shard(job.config, job.layout, 0);
  shard.Initialise();
  CHECK(BuffersNeeded(shard, 0) > 0);
  for (int i = 0; i < 3; ++i) CHECK(BuffersNeeded(shard, -3) == 9);
}

}  // namespace
}  // namespace dtrain
