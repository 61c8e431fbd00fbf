// A snapshot keeps the values of its moment for as long as it can be read.
#include "trainer/shard/snapshot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "trainer/shard/snapshot_test_util.h"

namespace dtrain {
namespace {

// A shard and its plain twin; both are changed, snapshotted, read and dropped in a random order.
class Walk {
 public:
  Walk(OptimizerKind kind, int64_t values, bool keeps_previous, unsigned seed)
      : job_(kind, values, keeps_previous), plain_(job_), shard_(job_.config, job_.layout, 0), random_(seed) {
    shard_.Initialise();
  }

  void Steps(int count) {
    for (int i = 0; i < count; ++i) {
      const int64_t what = Below(12);
      if (what < 5) Update();
      if (what == 5) replies_.push_back(FrameOver(shard_.Lend(Below(shard_.block_count()))));
      if (what == 6 && !replies_.empty()) replies_.erase(replies_.begin() + Below(Size(replies_)));
      if (what == 7 && Below(3) == 0) Take();
      if (what == 8 && Below(4) == 0) Drop();
      if (what == 9) Release();
      if (what >= 10) Read();
    }
    CHECK(wrong_ == 0);
    CHECK(read_ > 0);
  }
  // Checks that the frames that are out still have the bytes of their moment.
  void CheckFrames() {
    for (const Out& out : out_) CHECK(Same(*out.copy, out.where, out.frame.data(), out.frame.size()));
  }

 private:
  struct Out {
    std::shared_ptr<const std::vector<Values>> copy;
    RangePiece where;
    net::Frame frame;
  };
  int64_t Below(int64_t limit) { return std::uniform_int_distribution<int64_t>(0, limit - 1)(random_); }
  template <typename List>
  static int64_t Size(const List& list) {
    return static_cast<int64_t>(list.size());
  }

  void Update() {
    const int64_t block = Below(shard_.block_count());
    const auto factor = static_cast<float>(Below(1000) + 1) / 1000;
    Values gradient(shard_.bytes(block) / sizeof(float));
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = factor * pattern_[i];
    shard_.Apply(block,
                 net::TensorView{reinterpret_cast<const std::byte*>(gradient.data()), shard_.bytes(block)});
    plain_.Apply(block, gradient);
  }
  void Take() {
    Drop();
    snapshot_ = shard_.TakeSnapshot();
    copy_ = std::make_shared<const std::vector<Values>>(plain_.Copy());
    released_ = 0;
    CHECK(snapshot_->piece_count() == RangePieceCount(job_.range(), Size(*copy_) - 1));
  }
  void Drop() {
    if (!snapshot_) return;
    shard_.Drop(snapshot_);
    released_ = snapshot_->piece_count();
  }
  void Release() {
    if (!snapshot_ || Below(3) > 0) return;
    released_ = std::max(released_, Below(snapshot_->piece_count() + 1));
    snapshot_->ReleaseBefore(released_);
  }
  void Read() {
    if (!snapshot_) return;
    const int64_t piece = Below(snapshot_->piece_count() + 1);
    const bool here = piece >= released_ && piece < snapshot_->piece_count();
    const std::optional<net::LentBytes> lent = snapshot_->Lend(piece);
    if (lent.has_value() != here || (here && !SamePiece(*copy_, *snapshot_, piece))) ++wrong_;
    if (!lent) return;
    ++read_;
    out_.push_back({copy_, PieceOf(*snapshot_, piece), FrameOver(*lent)});
    if (out_.size() > 6) out_.erase(out_.begin() + Below(Size(out_)));
  }

  const Job job_;
  const Values pattern_ = Pattern();
  PlainRange plain_;
  RangePart shard_;
  std::mt19937 random_;
  std::vector<net::Frame> replies_;
  std::vector<Out> out_;
  std::shared_ptr<Snapshot> snapshot_;
  std::shared_ptr<const std::vector<Values>> copy_;
  int64_t released_ = 0;
  int wrong_ = 0;
  int read_ = 0;
};

TEST_CASE("snapshot: whatever happens meanwhile, it has the values of the moment it was taken at") {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam, OptimizerKind::kFtrl}) {
    for (const bool keeps_previous : {false, true}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(keeps_previous);
      for (const unsigned seed : {1, 2, 3, 4}) {
        Walk small(kind, 7, keeps_previous, seed);
        small.Steps(300);
        small.CheckFrames();
      }
      Walk large(kind, kThreeBlocks, keeps_previous, 5);
      large.Steps(60);
      large.CheckFrames();
    }
  }
}

TEST_CASE("snapshot: frames over it outlive it and its shard") {
  const Job job(OptimizerKind::kMomentum, 7, false);
  std::vector<net::Frame> frames;
  {
    RangePart shard(job.config, job.layout, 0);
    shard.Initialise();
    const std::shared_ptr<Snapshot> snapshot = shard.TakeSnapshot();
    for (int64_t piece = 0; piece < 2; ++piece) frames.push_back(FrameOver(*snapshot->Lend(piece)));
  }
  for (const net::Frame& frame : frames) CHECK(frame.size() == 7 * sizeof(float));
  CHECK(reinterpret_cast<const float*>(frames[0].data())[0] == 0.5f);
  CHECK(reinterpret_cast<const float*>(frames[1].data())[6] == 0.0f);
}

TEST_CASE("snapshot: one that its shard has dropped has no pieces, whoever keeps it") {
  const Job job(OptimizerKind::kMomentum, 7, false);
  std::shared_ptr<Snapshot> first, second;
  {
    RangePart shard(job.config, job.layout, 0);
    shard.Initialise();
    first = shard.TakeSnapshot();
    second = shard.TakeSnapshot();
    shard.Drop(first);
    CHECK_FALSE(first->Lend(0));
    CHECK_FALSE(first->Read(0, nullptr));
    Values scratch(7);
    CHECK(second->Read(1, scratch.data()));
  }
  CHECK_FALSE(second->Read(1, nullptr));
}

// Restores all of `snapshot`, its pieces in random order.
void RestoreFrom(const Snapshot& snapshot, unsigned seed, RangePart& shard) {
  std::vector<int64_t> pieces(static_cast<size_t>(snapshot.piece_count()));
  std::iota(pieces.begin(), pieces.end(), 0);
  std::shuffle(pieces.begin(), pieces.end(), std::mt19937(seed));
  Values scratch(kBlockValues);
  for (const int64_t piece : pieces)
    CHECK(shard.Put(piece, snapshot.Read(piece, scratch.data())->bytes) == "");
}

TEST_CASE(
    "shard: restored from its pieces in any order it has the bits that were saved, and goes on as it would "
    "have") {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kFtrl}) {
    for (const int64_t values : {int64_t{7}, kThreeBlocks}) {
      const Job job(kind, values, false);
      PlainRange plain(job);
      RangePart saved(job.config, job.layout, 0), restored(job.config, job.layout, 0);
      saved.Initialise();
      const Values gradient = Pattern();
      const auto apply = [&](RangePart& shard, int64_t block) {
        shard.Apply(block,
                    net::TensorView{reinterpret_cast<const std::byte*>(gradient.data()), shard.bytes(block)});
      };
      for (int i = 0; i < 3; ++i) {
        for (int64_t block = 0; block < saved.block_count(); ++block) {
          apply(saved, block);
          plain.Apply(block, gradient);
        }
      }
      RestoreFrom(*saved.TakeSnapshot(), 9, restored);
      CHECK_FALSE(restored.initialised());
      restored.SetRestored(3);
      CHECK(restored.initialised());
      CHECK(restored.version(0) == 3);
      for (int64_t block = 0; block < saved.block_count(); ++block) {
        apply(restored, block);
        plain.Apply(block, gradient);
      }
      const std::shared_ptr<Snapshot> snapshot = restored.TakeSnapshot();
      const std::vector<Values> expected = plain.Copy();
      for (int64_t piece = 0; piece < snapshot->piece_count(); ++piece) {
        CHECK(SamePiece(expected, *snapshot, piece));
      }
    }
  }
}

TEST_CASE("snapshot: two of different moments are read beside updates, each as it was") {
  for (const bool keeps_previous : {false, true}) {
    const Job job(OptimizerKind::kAdam, kThreeBlocks, keeps_previous);
    RangePart shard(job.config, job.layout, 0);
    PlainRange plain(job);
    shard.Initialise();
    const Values gradient = Pattern();
    const auto update = [&](int64_t block) {
      shard.Apply(block,
                  net::TensorView{reinterpret_cast<const std::byte*>(gradient.data()), shard.bytes(block)});
      plain.Apply(block, gradient);
    };
    update(0);
    const std::shared_ptr<Snapshot> first = shard.TakeSnapshot();
    const std::vector<Values> of_first = plain.Copy();
    update(0);
    update(1);
    const std::shared_ptr<Snapshot> second = shard.TakeSnapshot();
    const std::vector<Values> of_second = plain.Copy();
    for (int64_t block = 0; block < 3; ++block) update(block);
    CHECK(ValuesOf(*first, 2) == of_first);
    shard.Drop(first);
    CHECK_FALSE(first->Lend(0));
    update(2);
    CHECK(ValuesOf(*second, 2) == of_second);
    shard.Drop(second);
  }
}

}  // namespace
}  // namespace dtrain
