// CheckpointDirectory: the checkpoints in checkpoint.dir: it lists, writes and removes them. A checkpoint
// gets its name when all of it is on the disk, so a named one is complete whenever its writer was killed.
// Order of writing: docs/checkpoint.md.
// Owner: a task that saves or restores; several may work on one directory. Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/directory_locks.h"
#include "trainer/checkpoint/manifest.h"

namespace dtrain {

struct ListedCheckpoint {
  std::string name;
  int64_t sequence = 0;
  int64_t step = 0;
  uint64_t checksum = 0;  // Manifest::checksum
  uint64_t run_id = 0;
  std::optional<StoredBase> base;  // set: it is a delta
};

// Whether a checkpoint that was just found is gone: a run has removed it (checkpoint.keep).
bool IsGone(const std::string& path);

// The record of a run, in its directory (cmd/common/run_directory.h).
constexpr char kRunRecord[] = "run.json";

// Returns `path` without trailing slashes.
std::string WithoutSlashes(std::string path);
// Returns where the checkpoints are that `path` names, as the next functions expect it: those of the last run
// in the directory of a run, by its record, or `path` without trailing slashes.
std::string CheckpointsOf(const std::string& path);
// Whether `path` names one checkpoint; otherwise it is a directory of checkpoints.
bool IsOneCheckpoint(const std::string& path);
// The paths of the checkpoints that `path` may mean, the first choice first: itself, or of a directory the
// best one, then all, the newest first. `unreadable` gets the reason for each that is none.
std::vector<std::string> ChoicesOf(const std::string& path, std::vector<std::string>* unreadable);
// Whether `choice` may be one of them, by its name alone: this host need not have the run's directory.
bool IsChoiceOf(const std::string& path, const std::string& choice);
// Returns the checkpoint that checkpoint.resume names: `path` itself, or of a directory of checkpoints the
// newest good one. It reads and verifies all of the checkpoint. Throws BadCheckpoint, or UserError if there
// is none. `skipped`: as in FindNewest().
std::string NamedCheckpoint(const std::string& path, std::vector<std::string>* skipped);

class CheckpointDirectory {
 public:
  // `setting`: the key or option that gave `path`, for messages.
  explicit CheckpointDirectory(std::string path, std::string setting = "checkpoint.dir")
      : path_(std::move(path)), setting_(std::move(setting)) {}
  // Abandons the saves that are not published.
  ~CheckpointDirectory();
  CheckpointDirectory(const CheckpointDirectory&) = delete;
  CheckpointDirectory& operator=(const CheckpointDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  // Makes the directory, proves that files can be written there, and removes what dead writers have left.
  // Where it cannot be made, the checkpoints in the directory of the run take its place, if there are any.
  // Throws UserError with the setting.
  void Prepare();

  // Claims the directory for a new run. Throws UserError when another living run has it. `who`: the claimant,
  // for that error of others.
  void Claim(const std::string& who, uint64_t run_id);
  // Claims it for a run that goes on. Throws PeerLost when another living process has it.
  void ClaimAgain(const std::string& who, uint64_t run_id);
  // Takes the claim from a process of the same run, in whose place the caller leads that.
  void TakeClaimOver(const std::string& who, uint64_t run_id);
  // Throws PeerLost when another process has taken the claim. A directory that is gone is nobody's.
  void CheckClaim() const;
  // If the directory was removed or renamed since, makes it anew and claims it for the same run. Where it
  // cannot be made, the checkpoints in the directory of the run take its place. Returns whether it was gone.
  // Throws SaveError, and PeerLost when another process has it by now.
  bool MakeAnewIfGone();
  // The directory of the run; empty: none.
  void set_run(std::string run) { run_ = std::move(run); }

  // The calls of a save, in this order; each throws IoError, mostly SaveError, with path and remedy.

  // Makes an empty directory for the shard files (ShardWriter) and returns its path. `token`: the end of its
  // name, for a save by several writers; empty: random.
  std::string BeginSave(int64_t step, const std::string& token = "");
  // The path of that directory for the other writers of a save that has begun.
  std::string TemporaryPath(int64_t step, const std::string& token) const;
  // Writes config.yaml and, last, the manifest, when all shard files are finished. Everything but the name is
  // on the disk then. Sets the manifest's sequence and the size and checksum of the config. Returns what the
  // checkpoint is as a base.
  StoredBase Seal(const std::string& temporary, Manifest manifest, const std::string& config);
  // Gives the checkpoint its name and returns its path. An older one of the same name is moved aside and
  // stays complete. Throws PeerLost, and changes nothing, when another process has taken the claim.
  std::string Publish(const std::string& temporary);
  // Removes a save that is not published; at any time after BeginSave(). Never throws.
  void Abandon(const std::string& temporary);

  // Removes all complete checkpoints but the newest `keep`, the one named `stays`, and the bases of these.
  // One that has made room for another of its step and run is none of the newest. Keeps those without a
  // readable manifest, for people to look at. Returns the names of those that it has removed.
  std::vector<std::string> Prune(int64_t keep, const std::optional<std::string>& stays = std::nullopt);
  // The same with the largest `keep` by which any goes. The newest and the best stay. Empty: none may go.
  std::vector<std::string> RemoveOldest();

  // The names that look like checkpoints, in byte order. Throws UserError when the directory cannot be read.
  std::vector<std::string> Names() const;
  // The checkpoints, the last written first; reads manifests only. `unreadable`, if not null, gets the reason
  // for each that is none: "step-000012000: manifest is missing". Leaves out one that is just being removed.
  std::vector<ListedCheckpoint> List(std::vector<std::string>* unreadable = nullptr) const;
  // The path of the newest checkpoint whose bytes are all intact. `skipped` gets a line for each one passed
  // over. Looks again when all that it found are removed in the meantime.
  std::optional<std::string> FindNewest(std::vector<std::string>* skipped) const;

  // The name of the best checkpoint so far, from the file `best`; unset: none is named, or it is gone.
  std::optional<std::string> ReadBest() const;
  void WriteBest(const std::string& name) const;
  // From now on no checkpoint is the best. Throws IoError.
  void ForgetBest() const;
  // The score of the best checkpoint (ScoreOf()); infinity when there is none or it does not have this
  // figure.
  double ReadBestScore(EvalMetric metric) const;

 private:
  struct Save {
    std::string name;
    WriterLock lock;
  };
  template <typename Look>
  void UntilSteady(Look look) const;
  void ThrowTaken(const std::string& holder) const;
  std::string MakeTemporary(int64_t step, const std::string& token, WriterLock* lock) const;
  void RemoveLeftovers() const;
  void RenameWhileMine(const std::string& from, const std::string& to) const;
  void MakeRoom(const std::string& name) const;
  bool HasMadeRoom(const ListedCheckpoint& checkpoint) const;
  void Remove(const std::string& name) const;

  std::string path_;
  const std::string setting_;
  std::string run_;
  DirectoryClaim claim_;
  std::string claimant_;
  uint64_t run_id_ = 0;
  std::map<std::string, Save> saves_;  // by temporary path
};

}  // namespace dtrain
