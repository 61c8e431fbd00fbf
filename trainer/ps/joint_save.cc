#include "trainer/ps/joint_save.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "trainer/config/dump.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/short_text.h"

namespace dtrain {
namespace {

template <typename Result>
bool IsReady(const std::future<Result>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

JointSave::JointSave(const Config& config, const Layout& layout, CheckpointDirectory& directory,
                     std::string self, Logger& log)
    : config_(config),
      layout_(layout),
      directory_(directory),
      self_(std::move(self)),
      log_(log),
      slots_(SlotNames(config)),
      own_(layout, 0, static_cast<int64_t>(slots_.size())),
      parts_(layout.ps.size()) {}

void JointSave::Begin(uint64_t number, SavedMoment moment, std::shared_ptr<RangeCut> cut) {
  number_ = number;
  moment_ = std::move(moment);
  cut_ = std::move(cut);
  std::fill(parts_.begin(), parts_.end(), std::nullopt);
  phase_ = Phase::kBeginning;
  beginning_ = std::async(std::launch::async, [this]() -> Outcome {
    try {
      return {directory_.BeginSave(moment_.step, SaveToken(moment_.run_id, number_)), ""};
    } catch (const std::exception& error) {
      return {"", fmt::format("{}: {}", self_, FailureText(error))};
    }
  });
}

void JointSave::OnPart(size_t ps, const std::string& name, const wire::CutState& state) {
  if (phase_ != Phase::kWriting) return;
  if (state.error() != nullptr) return Fail(name + ": " + ShortText(state.error()->str()));
  if (!state.written()) return;
  parts_[ps].emplace();
  if (state.checksums() != nullptr) parts_[ps]->assign(state.checksums()->begin(), state.checksums()->end());
  PublishWhenComplete();
}

void JointSave::TakeOwnPart() {
  own_.Poll();
  const ShardSaver::Outcome* outcome = own_.Of(number_);
  if (outcome == nullptr || parts_[0]) return own_.Begin(number_, cut_, temporary_);
  if (!outcome->error.empty()) return Fail(self_ + ": " + outcome->error);
  parts_[0] = outcome->checksums;
  PublishWhenComplete();
}

void JointSave::Fail(const std::string& error) {
  phase_ = Phase::kEnding;
  cut_->ReleaseBefore(cut_->piece_count());  // nobody has to write the rest
  ending_ = std::async(std::launch::async, [this, error]() -> Outcome {
    directory_.Abandon(temporary_);
    return {"", error};
  });
}

void JointSave::PublishWhenComplete() {
  std::vector<std::vector<uint64_t>> checksums;
  for (const auto& part : parts_) {
    if (!part) return;
    checksums.push_back(*part);
  }
  phase_ = Phase::kEnding;
  ending_ =
      std::async(std::launch::async, [this, checksums = std::move(checksums)] { return Publish(checksums); });
}

// On a thread.
JointSave::Outcome JointSave::Publish(const std::vector<std::vector<uint64_t>>& checksums) {
  Outcome outcome;
  try {
    directory_.Seal(temporary_, RunManifest(config_, layout_, slots_, checksums, moment_),
                    DumpConfig(config_));
    outcome.path = directory_.Publish(temporary_);
  } catch (const std::exception& error) {
    directory_.Abandon(temporary_);
    return {"", fmt::format("{}: {}", self_, FailureText(error))};
  }
  try {  // it has its name, whatever becomes of the rest
    if (moment_.best) directory_.WriteBest(outcome.path.substr(outcome.path.rfind('/') + 1));
    directory_.Prune(config_.checkpoint.keep, directory_.ReadBest());
  } catch (const std::exception& error) {
    log_.Warning("{} is complete, but the best one could not be noted, or an old one not removed: {}",
                 outcome.path, FailureText(error));
  }
  return outcome;
}

JointSave::Outcome JointSave::End(Outcome outcome) {
  phase_ = Phase::kIdle;
  cut_.reset();
  return outcome;
}

std::optional<JointSave::Outcome> JointSave::Poll() {
  if (phase_ == Phase::kBeginning && IsReady(beginning_)) {
    Outcome begun = beginning_.get();
    if (!begun.error.empty()) return End(std::move(begun));
    temporary_ = begun.path;
    phase_ = Phase::kWriting;
  }
  if (phase_ == Phase::kWriting) TakeOwnPart();
  if (phase_ == Phase::kEnding && IsReady(ending_)) return End(ending_.get());
  return std::nullopt;
}

}  // namespace dtrain
