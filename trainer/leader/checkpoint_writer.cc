#include "trainer/leader/checkpoint_writer.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/optim/optimizer.h"
#include "trainer/shard/shared_directory.h"

namespace dtrain {
namespace {

template <typename Result>
bool IsReady(const std::future<Result>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

CheckpointWriter::CheckpointWriter(const Config& config, const Layout& layout, CheckpointDirectory& directory,
                                   std::string self, SnapshotKeeper& own, AskForPiece ask, Logger& log)
    : config_(config),
      layout_(layout),
      directory_(directory),
      self_(std::move(self)),
      ask_(std::move(ask)),
      log_(log),
      slots_(SlotsOf(config)),
      own_(own),
      parts_(layout.ps.size()),
      names_(layout.ps.size()),
      pulled_(layout.ps.size()) {}

void CheckpointWriter::Begin(uint64_t number, SavedMoment moment, std::vector<bool> pulled, bool lacks_room,
                             SnapshotKeeper* held, size_t held_ps) {
  held_ = held;
  held_ps_ = held_ps;
  number_ = number;
  moment_ = std::move(moment);
  pulled_ = std::move(pulled);
  pulling_ = 0;
  given_up_.clear();
  std::fill(parts_.begin(), parts_.end(), std::nullopt);
  phase_ = Phase::kBeginning;
  beginning_ = std::async(std::launch::async, [this, lacks_room] { return BeginSave(lacks_room); });
}

// Runs on a thread.
CheckpointWriter::Outcome CheckpointWriter::BeginSave(bool lacks_room) {
  const std::string& path = directory_.path();
  try {
    const std::string before = path;
    if (directory_.MakeAnewIfGone()) {
      log_.Warning("{} was removed or renamed{}, and checkpoints are written {}", before,
                   path == before ? "; it is made anew" : " and cannot be made anew",
                   path == before ? "there" : "into " + path);
    }
    if (lacks_room) {
      const std::vector<std::string> removed = directory_.RemoveOldest();
      if (removed.empty())
        throw IoError("{}: the disk is full, and no older checkpoint can go. Free some space.", path);
      log_.Warning("the disk is full: {} was removed, so that the last checkpoint has room",
                   fmt::join(removed, ", "));
    }
    return {directory_.BeginSave(moment_.step, SaveToken({moment_.run_id, moment_.run_epoch}, number_)), ""};
  } catch (const std::exception& error) {
    return {"", fmt::format("{}: {}", self_, FailureText(error))};
  }
}

void CheckpointWriter::OnPart(size_t ps, const std::string& name, const ShardSaver::Outcome& part) {
  if (phase_ != Phase::kWriting) return;
  if (!part.error.empty()) return Fail((ps == 0 ? self_ : name) + ": " + part.error);
  if (pulled_[ps]) return;
  parts_[ps] = part.part;
  names_[ps] = name;
  PublishWhenComplete();
}

bool CheckpointWriter::GiveUp(const std::string& error) {
  if (phase_ == Phase::kBeginning) given_up_ = error;
  if (phase_ == Phase::kWriting) Fail(error);
  return phase_ != Phase::kEnding || !settled_.exchange(true);
}

// One ps after the other bounds the memory that the pieces take.
void CheckpointWriter::PullParts() {
  if (pull_) {
    const std::optional<ShardSaver::Outcome> outcome = pull_->Poll();
    if (!outcome) return pull_->Tick(Clock::now());
    pull_.reset();
    if (!outcome->error.empty()) return Fail(self_ + ": " + outcome->error);
    parts_[pulling_] = outcome->part;
    return PublishWhenComplete();
  }
  for (; pulling_ < pulled_.size(); ++pulling_) {
    if (pulled_[pulling_] && !parts_[pulling_]) break;
  }
  if (pulling_ == pulled_.size()) return;
  log_.Debug("writes the part of ps {} of the checkpoint of global step {}", pulling_, moment_.step);
  const auto ask = [this, ps = pulling_](Piece piece) { ask_(ps, number_, piece); };
  pull_ = std::make_unique<PulledPart>(layout_, static_cast<int>(pulling_), slots_.counts(), number_,
                                       temporary_, ask);
}

void CheckpointWriter::Fail(const std::string& error) {
  phase_ = Phase::kEnding;
  settled_ = false;
  if (pull_) pull_->GiveUp();
  own_.Drop(number_);  // its part is not needed any more
  if (held_ != nullptr) held_->Drop(number_);
  ending_ = std::async(std::launch::async, [this, error]() -> Outcome {
    directory_.Abandon(temporary_);
    return {"", error};
  });
}

void CheckpointWriter::PublishWhenComplete() {
  std::vector<WrittenPart> written;
  for (const auto& part : parts_) {
    if (!part) return;
    written.push_back(*part);
  }
  phase_ = Phase::kEnding;
  settled_ = false;
  ending_ = std::async(std::launch::async, [this, written = std::move(written)] { return Publish(written); });
}

// Runs on a thread. Reads what other ps say that they have written; what ps 0 has written itself it knows.
// Empty: all of it is there.
std::string CheckpointWriter::WhyNotThere(const Manifest& manifest) const {
  for (size_t ps = 1; ps < manifest.shards.size(); ++ps) {
    if (pulled_[ps]) continue;
    const StoredShard& shard = manifest.shards[ps];
    try {
      if (std::filesystem::is_symlink(temporary_ + "/" + shard.file)) {
        throw BadCheckpoint(temporary_, shard.file + " is a link, not a file");
      }
      VerifyShard(temporary_, shard);
    } catch (const BadCheckpoint& bad) {
      return fmt::format("{} says that its part is written, but in {} {}", names_[ps], temporary_,
                         bad.problem());
    }
  }
  return std::string();
}

// Runs on a thread.
CheckpointWriter::Outcome CheckpointWriter::Publish(const std::vector<WrittenPart>& parts) {
  Outcome outcome;
  double best_before = 0;
  try {
    best_before = directory_.ReadBestScore(config_.eval.metric);
    if (moment_.base) FindBase(temporary_, *moment_.base);  // a delta alone is no checkpoint
    const Manifest manifest = RunManifest(config_, layout_, slots_, parts, moment_);
    if (const std::string wrong = WhyNotThere(manifest); !wrong.empty()) {
      directory_.Abandon(temporary_);
      return {"", wrong};
    }
    outcome.sealed = directory_.Seal(temporary_, manifest, DumpConfig(WithoutSecrets(config_)));
    if (settled_.exchange(true)) {
      directory_.Abandon(temporary_);
      return {"", "the checkpoint was given up"};
    }
    outcome.path = directory_.Publish(temporary_);
  } catch (const PeerLost&) {
    directory_.Abandon(temporary_);
    throw;
  } catch (const std::exception& error) {
    directory_.Abandon(temporary_);
    return {"", fmt::format("{}: {}", self_, FailureText(error))};
  }
  try {  // the checkpoint is complete even if what follows fails
    const double figure = moment_.best_by ? moment_.best_by->value : moment_.loss;
    if (moment_.best && ScoreOf(config_.eval.metric, figure) < best_before)
      directory_.WriteBest(outcome.path.substr(outcome.path.rfind('/') + 1));
    directory_.Prune(config_.checkpoint.keep, directory_.ReadBest());
  } catch (const std::exception& error) {
    log_.Warning("{} is complete, but the best one could not be noted, or an old one not removed: {}",
                 outcome.path, FailureText(error));
  }
  return outcome;
}

CheckpointWriter::Outcome CheckpointWriter::End(Outcome outcome) {
  phase_ = Phase::kIdle;
  pull_.reset();
  return outcome;
}

std::optional<CheckpointWriter::Outcome> CheckpointWriter::Poll() {
  if (phase_ == Phase::kBeginning && IsReady(beginning_)) {
    Outcome begun = beginning_.get();
    if (!begun.error.empty()) return End(std::move(begun));
    temporary_ = begun.path;
    // Other ps look for checkpoint.dir.
    if (directory_.path() != config_.checkpoint.dir) std::fill(pulled_.begin() + 1, pulled_.end(), true);
    if (held_ != nullptr) pulled_[held_ps_] = false;
    phase_ = Phase::kWriting;
    if (!given_up_.empty()) Fail(given_up_);
  }
  if (phase_ == Phase::kWriting && !parts_[0]) own_.Write(number_, temporary_);
  if (phase_ == Phase::kWriting && held_ != nullptr && !parts_[held_ps_]) held_->Write(number_, temporary_);
  if (phase_ == Phase::kWriting) PullParts();
  const bool pulls = pull_ && !pull_->ended();
  if (phase_ == Phase::kEnding && !pulls && IsReady(ending_)) return End(ending_.get());
  return std::nullopt;
}

}  // namespace dtrain
