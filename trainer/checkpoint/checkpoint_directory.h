// CheckpointDirectory: the checkpoints of one directory, checkpoint.dir: which there are, how a new one
// becomes one, and which go. A checkpoint has its name only when all of it is on the disk, so that one with
// a name is complete whenever its writer was killed. docs/checkpoint.md has the order of writing.
// Owner: who saves, or looks for one to restore. Several may work on one directory. Thread: one at a time.
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
};

// Whether a checkpoint that was found a moment ago is there no more: a run has removed it (checkpoint.keep).
bool IsGone(const std::string& path);

class CheckpointDirectory {
 public:
  // `setting`: the key or the option that `path` is from, for messages.
  explicit CheckpointDirectory(std::string path, std::string setting = "checkpoint.dir")
      : path_(std::move(path)), setting_(std::move(setting)) {}
  ~CheckpointDirectory();  // abandons what was begun and is not published
  CheckpointDirectory(const CheckpointDirectory&) = delete;
  CheckpointDirectory& operator=(const CheckpointDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  // Makes the directory, proves that files can be written there, and removes what dead writers left.
  // UserError naming the setting.
  void Prepare();

  // A run begins to write here. UserError where another one that lives does. `who`: for that one's message.
  void Claim(const std::string& who, uint64_t run_id);
  // The same for a run that goes on here. PeerLost where another one that lives has it.
  void ClaimAgain(const std::string& who, uint64_t run_id);

  // A save, in this order; each throws IoError naming path and remedy, mostly SaveError.
  // An empty directory for the shard files, which are written there with ShardWriter: its path.
  // `token`: what its name ends with, of a save that several write; empty: random.
  std::string BeginSave(int64_t step, const std::string& token = "");
  // The same path, for those who write their part of that save, when it has begun.
  std::string TemporaryPath(int64_t step, const std::string& token) const;
  // When all shard files are finished: writes config.yaml and, last, the manifest. All is on the disk then
  // but the name. Sets sequence and the config's size and checksum.
  void Seal(const std::string& temporary, Manifest manifest, const std::string& config);
  // Gives it its name; its path. One of the same name makes room and stays complete. PeerLost, and nothing
  // has changed, where another process has taken the claim since.
  std::string Publish(const std::string& temporary);
  // At any time after BeginSave(): removes it, unless it is published. Never throws.
  void Abandon(const std::string& temporary);

  // Removes all complete ones but the newest `keep` and the one named `stays`. What has no readable manifest
  // stays: that is for people to look at.
  void Prune(int64_t keep, const std::optional<std::string>& stays = std::nullopt);

  // Those that look like checkpoints, in the order of bytes. UserError where the directory cannot be read.
  std::vector<std::string> Names() const;
  // The newest first: the last that was written. Reads manifests only. `unreadable`, where not null: why the
  // others are no checkpoints, "step-000012000: manifest is missing". One that is removed meanwhile is
  // neither.
  std::vector<ListedCheckpoint> List(std::vector<std::string>* unreadable = nullptr) const;
  // The path of the newest of which every byte is as it was written. `skipped`: a line for each that was
  // passed over. Looks again where all that it found are removed meanwhile.
  std::optional<std::string> FindNewest(std::vector<std::string>* skipped) const;

  // The file `best`: the name of the best one so far; unset where none is named that is there.
  std::optional<std::string> ReadBest() const;
  void WriteBest(const std::string& name) const;
  // No one is the best from now on. Throws IoError.
  void ForgetBest() const;
  // The loss with which the best one was written; infinity where none is named, or nobody evaluated it.
  double ReadBestLoss() const;

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
  void MakeRoom(const std::string& name) const;
  void Remove(const std::string& name) const;

  const std::string path_;
  const std::string setting_;
  DirectoryClaim claim_;
  std::map<std::string, Save> saves_;  // by temporary path
};

}  // namespace dtrain
