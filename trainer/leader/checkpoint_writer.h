// CheckpointWriter: writes one checkpoint at a time for the leader. It makes the directory into which each ps
// writes its part, pulls and writes the parts of the ps that do not see that directory (pulled_part.h), one
// ps after the other, and publishes the checkpoint when all parts are on the disk. It reads the parts that
// other ps have written before it publishes them: a checkpoint counts as saved only when ps 0 itself has seen
// every byte. Threads do the disk work.
// Owner: Checkpoints. Thread: the ps loop, which waits for the disk only in the destructor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "trainer/checkpoint/build_manifest.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/config/choices.h"
#include "trainer/leader/pulled_part.h"
#include "trainer/model/layout.h"
#include "trainer/ps/snapshot_keeper.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain {

class CheckpointWriter {
 public:
  // The path of the checkpoint, or why there is none.
  struct Outcome {
    std::string path;
    std::string error;
    StoredBase sealed = {};  // what it is as a base of later ones
  };

  // Asks a ps for a piece of its range; the question may get lost.
  using AskForPiece = std::function<void(size_t ps, uint64_t number, Piece piece)>;

  // `self`: the name of ps 0 in error messages. `own`: writes the part of ps 0.
  CheckpointWriter(const Config& config, const Layout& layout, CheckpointDirectory& directory,
                   std::string self, SnapshotKeeper& own, AskForPiece ask, Logger& log);

  // Starts to write checkpoint `number`, of which every ps has its snapshot. `pulled[ps]`: that ps does not
  // see the directory, and its part is pulled and written here. `lacks_room`: on a full disk, in the room of
  // the oldest one.
  // `held`: keeps the part of another ps in this process.
  void Begin(uint64_t number, SavedMoment moment, std::vector<bool> pulled, bool lacks_room = false,
             SnapshotKeeper* held = nullptr, size_t held_ps = 0);
  // The directory exists, and the other ps may write.
  bool writing() const { return phase_ == Phase::kWriting; }
  // Whether `ps` must still be told to write its part.
  bool Wants(size_t ps) const { return !pulled_[ps] && !parts_[ps].has_value(); }
  // Whether a part is not on the disk yet.
  bool NeedsParts() const { return phase_ == Phase::kBeginning || phase_ == Phase::kWriting; }
  // Takes the result of a ps that writes its own part, or why a ps has no part. `name`: of a ps other than 0,
  // for errors.
  void OnPart(size_t ps, const std::string& name, const ShardSaver::Outcome& part);
  void OnPiece(size_t ps, net::Message message) {
    if (phase_ == Phase::kWriting && pull_ && ps == pulling_) pull_->OnPiece(std::move(message));
  }
  // Abandons a checkpoint that is not complete. Poll() reports it when the disk has let go of it. False: it
  // is being published, so it is too late.
  bool GiveUp(const std::string& error);
  // The outcome, once; unset until then. Throws PeerLost when another process has taken the directory.
  std::optional<Outcome> Poll();

 private:
  enum class Phase { kIdle, kBeginning, kWriting, kEnding };

  Outcome BeginSave(bool lacks_room);
  void PullParts();
  void Fail(const std::string& error);
  void PublishWhenComplete();
  Outcome Publish(const std::vector<WrittenPart>& parts);
  std::string WhyNotThere(const Manifest& manifest) const;
  Outcome End(Outcome outcome);

  const Config& config_;
  const Layout& layout_;
  CheckpointDirectory& directory_;
  const std::string self_;
  const AskForPiece ask_;
  Logger& log_;
  const ModelSlots slots_;
  SnapshotKeeper& own_;
  SnapshotKeeper* held_ = nullptr;  // of the ps `held_ps_`; null: none
  size_t held_ps_ = 0;
  Phase phase_ = Phase::kIdle;
  uint64_t number_ = 0;
  SavedMoment moment_;
  std::string temporary_;
  std::string given_up_;                           // why, before the directory was made; else empty
  std::atomic<bool> settled_{false};               // in kEnding: it is given up, or being published
  std::vector<std::optional<WrittenPart>> parts_;  // by ps
  std::vector<std::string> names_;                 // by ps: who reported the part, for errors
  std::vector<bool> pulled_;                       // by ps
  size_t pulling_ = 0;                             // the ps whose part is pulled now
  std::unique_ptr<PulledPart> pull_;
  // One at a time is in use. The last members: their destructors wait for threads that use the others.
  std::future<Outcome> beginning_;  // its path is the temporary directory
  std::future<Outcome> ending_;
};

}  // namespace dtrain
