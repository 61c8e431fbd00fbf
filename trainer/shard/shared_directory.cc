#include "trainer/shard/shared_directory.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "trainer/config/config.h"
#include "trainer/peer/this_host.h"

namespace dtrain {
namespace {

// Some file systems show a new directory to other machines only after a moment.
constexpr milliseconds kPatience{2000};

}  // namespace

std::string SaveToken(RunId run, uint64_t number) {
  return fmt::format("{:016x}-{}-{}", run.id, run.epoch, number);
}

std::unique_ptr<CheckpointDirectory> ShowSharedDirectory(const Config& config, RunId run, Claim claim,
                                                         std::string run_directory) {
  auto directory = std::make_unique<CheckpointDirectory>(config.checkpoint.dir);
  directory->set_run(std::move(run_directory));
  directory->Prepare();
  const std::string self = TaskAndProcess(config.cluster, {Role::kPs, 0});
  if (claim == Claim::kNew) directory->Claim(self, run.id);
  if (claim == Claim::kAgain) directory->ClaimAgain(self, run.id);
  if (claim == Claim::kOver) directory->TakeClaimOver(self, run.id);
  directory->BeginSave(0, SaveToken(run, 0));
  return directory;
}

std::optional<bool> SharedDirectory::Seen(RunId run, bool saves) {
  if (run_ != run) {
    run_ = run;
    seen_.reset();
    asked_ = Clock::now();
  }
  if (seen_) return seen_;
  seen_ = saves ? Look() : false;
  if (!seen_ || !saves) return seen_;
  const std::string& dir = config_.checkpoint.dir;
  if (*seen_) {
    log_.Detail("reads and writes its part of checkpoints in {}", dir);
  } else {
    log_.Info("sends its part of checkpoints to ps 0: {}",
              !why_not_.empty() ? why_not_
              : dir.empty()     ? "checkpoint.dir is not set here"
                                : fmt::format("{} on {} is not the directory of ps 0", dir, HostName()));
  }
  return seen_;
}

// A ps without the directory does not see it. Unset: it may still appear.
std::optional<bool> SharedDirectory::Look() {
  const std::string& dir = config_.checkpoint.dir;
  std::error_code error;
  if (!why_not_.empty() || dir.empty() || !std::filesystem::is_directory(dir, error)) return false;
  const std::string shown = CheckpointDirectory(dir).TemporaryPath(0, SaveToken(run_, 0));
  if (std::filesystem::is_directory(shown, error)) return CanWriteIn(shown);
  if (Clock::now() - asked_ > kPatience) return false;
  return std::nullopt;
}

bool SharedDirectory::CanWriteIn(const std::string& shown) const {
  try {
    WriteFileAtomically(fmt::format("{}/ps-{}", shown, self_.index), "");
    return true;
  } catch (const IoError& unwritable) {
    log_.Warning("checkpoint.dir = {} on {} is the directory of ps 0, and this task cannot write there: {}",
                 config_.checkpoint.dir, HostName(), unwritable.what());
    return false;
  }
}

}  // namespace dtrain
