#include "trainer/ps/shared_directory.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "trainer/peer/this_host.h"
#include "trainer/ps/shard_saver.h"

namespace dtrain {
namespace {

// For a file system that shows to another machine a little later what one has made.
constexpr milliseconds kPatience{5000};

}  // namespace

std::unique_ptr<CheckpointDirectory> ShowSharedDirectory(const Config& config, uint64_t run_id, bool begins) {
  auto directory = std::make_unique<CheckpointDirectory>(config.checkpoint.dir);
  directory->Prepare();
  const std::string self = TaskAndProcess(config.cluster, {Role::kPs, 0});
  begins ? directory->Claim(self) : void(directory->TryClaim(self));
  directory->BeginSave(0, SaveToken(run_id, 0));
  return directory;
}

bool SharedDirectory::Proven(TaskId self, uint64_t run_id) {
  if (!PsWrite(config_)) return true;
  const TimePoint now = Clock::now();
  if (run_id_ != run_id) {
    run_id_ = run_id;
    proven_ = false;
    asked_ = now;
  }
  if (proven_) return true;
  const std::string& dir = config_.checkpoint.dir;
  const std::string shown = CheckpointDirectory(dir).TemporaryPath(0, SaveToken(run_id, 0));
  std::error_code error;
  if (std::filesystem::is_directory(shown, error)) {
    try {
      WriteFileAtomically(fmt::format("{}/ps-{}", shown, self.index), "");
    } catch (const IoError& unwritable) {
      throw UserError("checkpoint.dir = {} on {}: {} cannot write there: {}", dir, HostName(), TaskName(self),
                      unwritable.what());
    }
    proven_ = true;
  } else if (now - asked_ > kPatience) {
    throw UserError(
        "checkpoint.dir {} on {} is not the directory that ps 0 sees (checkpoint.writer: ps needs one that "
        "all ps share; or set checkpoint.writer: chief).",
        dir, HostName());
  }
  return proven_;
}

}  // namespace dtrain
