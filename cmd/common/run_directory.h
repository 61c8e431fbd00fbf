// RunDirectory: the directory of one run (run.dir): checkpoints/, logs/, summaries/, result.json,
// config.yaml, and run.json, its record: which run this is, by which command, where its files are, and how it
// ended. `dtrain local`, `dtrain launch` and a ps 0 that was started by hand write one. Owner: ResultFile,
// which ends the record however the run ends. Thread: one at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cmd/common/arguments.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/config.h"
#include "trainer/result/run_account.h"

namespace dtrain {

class RunDirectory {
 public:
  static constexpr const char* kRecord = kRunRecord;
  static constexpr char kResult[] = "result.json";
  static constexpr char kConfig[] = "config.yaml";

  // Who writes the record.
  struct Writer {
    std::string name;  // "local", "launch" or "ps 0"
    // Tasks and their parent that were started together have one; it tells them that they see one directory.
    std::string start_id;
  };

  ~RunDirectory();  // gives it free for other runs
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  // Makes the directory, or takes an old one, and keeps other runs out of it as long as this lives. Throws
  // UserError if it cannot be written, if another run has it, or if it has files of the names that a run
  // writes and that are of none. `named`: dtrain has made up its name.
  static std::unique_ptr<RunDirectory> Open(const std::string& path, const Writer& writer,
                                            bool named = false);
  // Makes a new one. Returns null if there is one of this name. Throws IoError.
  static std::unique_ptr<RunDirectory> Make(const std::string& path, const Writer& writer);
  // Whether the record in `path` is that of this start, written by another process.
  static bool IsWrittenByOther(const std::string& path, const Writer& writer);

  // Writes config.yaml, and the record of a run that has begun with `config`, which was read from
  // `config_path`. Throws IoError.
  void Begin(const Config& config, const std::string& config_path);
  // The addresses of the ps of `local`, once its ports are known.
  void SetAddresses(const std::vector<std::string>& ps);
  // The result of the run before that has begun here; empty: there was none.
  std::string EarlierResult() const;
  // Writes result.json, for which Begin() has kept room on the disk, and ends the record. Throws IoError. A
  // run that never began, or that found the run done, leaves a directory as it was if an earlier run has its
  // result there.
  void End(const RunSummary& summary, const RunAccount& account, const std::string& result);
  // The result of this run; empty: that in the directory is of an earlier one.
  std::string ResultPath() const { return keeps_earlier_ ? "" : path_ + "/" + kResult; }

  const std::string& path() const { return path_; }
  bool is_named() const { return is_named_; }  // by dtrain
  // The path as this command's user would write it: relative to the working directory if it is below.
  std::string Shown() const;
  // "dtrain status runs/flowers-20260131-120000"
  std::string WatchCommand() const;
  // After End(), the command that comes next, to evaluate or to go on; empty: there is none.
  std::string NextCommand() const;
  // The last line of the run, after End(): where it is and what to do with it.
  std::string NextLine() const;
  // After End(), removes old directories of the same config name beside this one, and returns a line for
  // each: of runs that never began all but the newest, and, if this run is done, of the others those beyond
  // run.keep. Only those go that dtrain has named, that have their name still, that are not in use, and that
  // no path of the config is in.
  std::vector<std::string> RemoveOld() const;

 private:
  RunDirectory(std::string path, const Writer& writer, bool is_named, int lock_fd);
  void Write() const;
  void RestoreEarlier() const;
  // The result of the run before, until this one has its own: it may be killed.
  std::string ResultBefore() const { return path_ + "/result-before.json"; }
  bool is_done() const;
  // After End(), what comes next, as CommandOf() takes it.
  std::string What() const;
  void SetNext(const std::string& what);
  // Says which other tasks must be started again too, if a ps 0 by hand wrote this; empty for others.
  std::string OthersAgain() const;

  const std::string path_;
  const Writer writer_;
  const bool is_named_;  // by dtrain
  const int lock_fd_;
  Json record_;
  std::optional<int64_t> keep_;  // run.keep
  bool has_eval_rows_ = false;   // the config has rows to evaluate on
  std::string config_;           // the effective one, as YAML
  Json flat_config_;             // each key with its value
  std::string status_;
  std::string model_;                           // the newest checkpoint; empty: there is none
  std::string model_at_;                        // the host that has it; empty: this one
  bool goes_on_ = false;                        // the same command may do better
  bool made_anew_ = false;                      // somebody has removed or renamed it during the run
  std::map<std::string, std::string> earlier_;  // the files of an earlier run that has begun, by name
  bool moved_ = false;                          // the checkpoints are here, and checkpoint.dir is elsewhere
  bool keeps_earlier_ = false;                  // they are back, since this run never began
};

// Sets log.dir and summary.dir of `config` where they are not set and it has a directory of the run.
void PlaceOutputs(Config* config);

// PlacedRun: a config and the directory of its run; null: it has none.
struct PlacedRun {
  Config config;
  std::unique_ptr<RunDirectory> directory;
  std::string why_none = {};  // why a new one could not be made
};
// For a parent of tasks, or a ps 0 without one: loads the config by `load`, whose argument stands for a
// run.dir that is not given, and makes the directory that the config names, or a new one in runs/. A ps 0
// goes on with the one of the same command there, if that was cut short. If a new one cannot be made, the run
// has none. That, and what is removed or taken up, goes to `tell`. Throws what `load` throws, and UserError
// if run.dir cannot be used.
PlacedRun PlaceRun(const std::string& config_path, const RunDirectory::Writer& writer,
                   const std::function<void(const std::string&)>& tell,
                   const std::function<Config(const std::string& made_up)>& load);

// Returns the content of a file in a run's directory; empty if it cannot be read, is no regular file, or is
// larger than any that dtrain writes.
std::string ReadRunFile(const std::string& path);
// The sizes of all files in a directory, together.
int64_t BytesIn(const std::string& directory);
// Returns the command that comes next, of a run's record, for its directory where that is now: it may have
// been renamed. Empty: there is none.
std::string NextOf(const std::string& directory, const Json& record);
// Returns a random id for Writer.
std::string NewStartId();

}  // namespace dtrain
