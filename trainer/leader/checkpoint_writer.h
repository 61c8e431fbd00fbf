// CheckpointWriter: how the leader has a checkpoint written: it makes the directory that the ps write their
// parts into, ps 0 included, writes the parts of those that do not see it (pulled_part.h), one after the
// other, and, when all parts are on the disk, the manifest and the name. All that touches the disk is done on
// threads. Owner: Checkpoints. Thread: the ps loop, which never waits here but at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "net/codec.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/config/config.h"
#include "trainer/leader/pulled_part.h"
#include "trainer/model/layout.h"
#include "trainer/ps/snapshot_keeper.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain {

class CheckpointWriter {
 public:
  // How a save ended: where the checkpoint lies, or why there is none.
  struct Outcome {
    std::string path;
    std::string error;
  };

  // Asks a ps for a piece of its range; it may get lost.
  using AskForPiece = std::function<void(size_t ps, uint64_t number, int64_t piece)>;

  // `self`: how ps 0 is called where it fails. `own`: writes its part.
  CheckpointWriter(const Config& config, const Layout& layout, CheckpointDirectory& directory,
                   std::string self, SnapshotKeeper& own, AskForPiece ask, Logger& log);

  // Every ps has its snapshot for checkpoint `number`. `pulled`: by ps, whether its part is to be pulled
  // here.
  void Begin(uint64_t number, SavedMoment moment, std::vector<bool> pulled);
  // The directory is there: the others may write.
  bool writing() const { return phase_ == Phase::kWriting; }
  // Whether that ps has to be told to write its part, which is not here yet.
  bool Wants(size_t ps) const { return !pulled_[ps] && !parts_[ps].has_value(); }
  // The part of a ps, or why there is none. `name`: whose, of another than ps 0.
  void OnPart(size_t ps, const std::string& name, const ShardSaver::Outcome& part);
  // A piece of another ps's range.
  void OnPiece(size_t ps, net::Message message) {
    if (phase_ == Phase::kWriting && pull_ && ps == pulling_) pull_->OnPiece(std::move(message));
  }
  // What is not complete is not to be. It ends when the disk lets it.
  void GiveUp(const std::string& error) {
    if (phase_ == Phase::kWriting) Fail(error);
  }
  // How it has ended; unset: not yet. Told once. PeerLost where another process has taken the directory.
  std::optional<Outcome> Poll();

 private:
  enum class Phase { kIdle, kBeginning, kWriting, kEnding };

  void PullParts();
  void Fail(const std::string& error);
  void PublishWhenComplete();
  Outcome Publish(const std::vector<std::vector<uint64_t>>& checksums);
  Outcome End(Outcome outcome);

  const Config& config_;
  const Layout& layout_;
  CheckpointDirectory& directory_;
  const std::string self_;
  const AskForPiece ask_;
  Logger& log_;
  const std::vector<std::string> slots_;  // the optimizer's
  SnapshotKeeper& own_;
  Phase phase_ = Phase::kIdle;
  uint64_t number_ = 0;
  SavedMoment moment_;
  std::string temporary_;
  std::vector<std::optional<std::vector<uint64_t>>> parts_;  // by ps: checksums
  std::vector<bool> pulled_;                                 // by ps
  size_t pulling_ = 0;                                       // whose part is pulled now
  std::unique_ptr<PulledPart> pull_;
  // One of the two at a time. The last members: they wait for their threads before the rest goes.
  std::future<Outcome> beginning_;  // the path is that of the temporary directory
  std::future<Outcome> ending_;
};

}  // namespace dtrain
