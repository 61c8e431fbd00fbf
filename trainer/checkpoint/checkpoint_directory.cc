#include "trainer/checkpoint/checkpoint_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <tuple>

#include "base/check.h"
#include "base/error.h"
#include "base/fault_point.h"
#include "base/file.h"
#include "base/json.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr char kBest[] = "best";
constexpr char kInRun[] = "/checkpoints";  // of a run's directory, if it is not told another place

// Returns 0 or the errno.
int Sync(int fd, const std::string& path) {
  const FaultScope fault("fsync", path.c_str());
  return fsync(fd) == 0 ? 0 : errno;
}

// Brings what was made, renamed or removed in `path` to the disk.
void SyncDirectory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw SaveError(path, "opened", errno);
  const int failed = Sync(fd, path);
  close(fd);
  const bool no_need = failed == EINVAL;  // this file system does not need it
  if (failed != 0 && !no_need) throw SaveError(path, "synced", failed);
}

// Returns 0 or the errno.
int TryRename(const std::string& from, const std::string& to) {
  const FaultScope fault("rename", to.c_str());
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

struct TemporaryDirectory {
  ~TemporaryDirectory() {
    std::error_code ignored;  // the next Prepare() tries again
    fs::remove_all(path, ignored);
  }
  const std::string path;
};

// `setting`: the key or option that gave the path.
std::vector<std::string> EntriesOf(const std::string& path, const std::string& setting) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system) {
    throw NoDescriptor(fmt::format("{} = {}: cannot be read", setting, path), error.value());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw UserError("{} = {}: cannot be read: {}. Name another directory.", setting, path,
                    ErrnoText(error.value()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

bool IsGone(const std::string& path) {
  std::error_code failed;
  return fs::symlink_status(path, failed).type() == fs::file_type::not_found;
}

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The record knows where they are, unless that was inside of this directory, which may have been renamed or
// copied since.
namespace {

// Returns null if there is no such file, or it is not JSON.
Json ReadJson(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return Json::Parse(text.str());
}

}  // namespace

std::string CheckpointsOf(const std::string& path) {
  const std::string place = WithoutSlashes(path), inside = place + kInRun;
  std::error_code failed;
  if (!fs::exists(place + "/" + kRunRecord, failed)) return place;
  const Json record = ReadJson(place + "/" + kRunRecord);
  const std::string recorded = TextIn(record, "checkpoints"), own = "/" + TextIn(record, "name") + "/";
  if (recorded.empty()) return inside;
  // What was in the directory is where that is now.
  const size_t at = recorded.rfind(own);
  const std::string here = at == recorded.npos ? recorded : place + recorded.substr(at + own.size() - 1);
  for (const std::string& each : {here, recorded}) {
    if (fs::is_directory(each, failed)) return each;
  }
  // `dtrain launch` fetches the model.
  const fs::path model = TextIn(ReadJson(place + "/result.json"), "checkpoint");
  return !model.empty() && fs::exists(inside / model.filename(), failed) ? inside : here;
}

bool IsOneCheckpoint(const std::string& path) {
  std::error_code ignored;
  return IsCheckpointName(fs::path(path).filename().string()) ||
         fs::exists(path + "/" + kManifestName, ignored);
}

std::vector<std::string> ChoicesOf(const std::string& path, std::vector<std::string>* unreadable) {
  if (IsOneCheckpoint(path)) return {path};
  const CheckpointDirectory directory(path, "checkpoint.start_from");
  std::vector<std::string> choices;
  const std::optional<std::string> best = directory.ReadBest();
  if (best) choices.push_back(directory.PathOf(*best));
  for (const ListedCheckpoint& each : directory.List(unreadable)) {
    if (each.name != best) choices.push_back(directory.PathOf(each.name));
  }
  return choices;
}

bool IsChoiceOf(const std::string& path, const std::string& choice) {
  if (path.empty() || choice == path) return !path.empty();
  const fs::path chosen(choice);
  return IsCheckpointName(chosen.filename().string()) &&
         (chosen.parent_path() == path || chosen.parent_path() == path + kInRun);
}

CheckpointDirectory::~CheckpointDirectory() {
  while (!saves_.empty()) Abandon(saves_.begin()->first);
}

// The proof is an abandoned save, so other processes that prepare the same directory leave it alone.
void CheckpointDirectory::Prepare() {
  std::error_code ignored;  // if this fails, writing a file fails below
  fs::create_directories(path_, ignored);
  const std::string in_run = run_ + kInRun;
  if (!run_.empty() && IsGone(path_) && !CheckpointDirectory(in_run).List().empty()) path_ = in_run;
  try {
    const std::string temporary = BeginSave(0);
    WriteFileAtomically(temporary + "/probe", "");
    Abandon(temporary);
  } catch (const SaveError& error) {
    ThrowUnwritable(
        fmt::format("{} = {}: no file can be written there: {}. {}ame another directory.", setting_, path_,
                    error.problem(), IsLackOfRoom(error.error_number()) ? "Free some space, or n" : "N"),
        error.error_number());
  } catch (const FileError& error) {
    ThrowUnwritable(fmt::format("{} = {}: no file can be written there: {}", setting_, path_, error.what()),
                    error.error_number());
  }
  RemoveLeftovers();
}

void CheckpointDirectory::ThrowTaken(const std::string& holder) const {
  throw PeerLost(
      "checkpoint.dir = {}: this process had it for its run, and now it belongs to {}. Another ps 0 has "
      "taken its place; nothing more is saved here.",
      path_, holder);
}

void CheckpointDirectory::ClaimAgain(const std::string& who, uint64_t run_id) {
  claimant_ = who;
  run_id_ = run_id;
  const std::string holder = claim_.Take(path_, who, run_id);
  if (!holder.empty()) ThrowTaken(holder);
}

void CheckpointDirectory::TakeClaimOver(const std::string& who, uint64_t run_id) {
  claimant_ = who;
  run_id_ = run_id;
  const std::string holder = claim_.Take(path_, who, run_id, /*replaces=*/true);
  if (!holder.empty()) ThrowTaken(holder);
  // A process that is frozen directly before it names its checkpoint cannot do so any more.
  const std::string of_run = fmt::format(".tmp-{:016x}-", run_id);
  for (const std::string& name : EntriesOf(path_, setting_)) {
    if (name.find(of_run) == std::string::npos || !IsTemporaryName(name)) continue;
    const std::string path = PathOf(name);
    WriterLock::RemoveAnyhow(WriterLock::IsLock(path) ? fs::path(path).replace_extension().string() : path);
  }
}

void CheckpointDirectory::CheckClaim() const {
  if (IsGone(path_)) return;
  if (const std::string holder = claim_.TakenBy(); !holder.empty()) ThrowTaken(holder);
}

bool CheckpointDirectory::MakeAnewIfGone() {
  if (!IsGone(path_)) return false;
  std::error_code failed, failed_there;
  fs::create_directories(path_, failed);
  if (failed && !run_.empty()) fs::create_directories(run_ + kInRun, failed_there);
  if (failed && (run_.empty() || failed_there)) throw SaveError(path_, "made anew", failed.value());
  if (failed) path_ = run_ + kInRun;
  claim_.Forget();
  ClaimAgain(claimant_, run_id_);
  return true;
}

void CheckpointDirectory::Claim(const std::string& who, uint64_t run_id) {
  claimant_ = who;
  run_id_ = run_id;
  const std::string holder = claim_.Take(path_, who, run_id);
  if (holder.empty()) return;
  throw UserError(
      "checkpoint.dir = {}: in use by {}. Give each run a directory of its own, or end that one first.",
      path_, holder);
}

void CheckpointDirectory::RemoveLeftovers() const {
  for (const std::string& name : EntriesOf(path_, setting_)) {
    if (!IsTemporaryName(name)) continue;
    const std::string path = PathOf(name);
    WriterLock::RemoveIfDead(WriterLock::IsLock(path) ? fs::path(path).replace_extension().string() : path);
  }
}

std::string CheckpointDirectory::TemporaryPath(int64_t step, const std::string& token) const {
  return PathOf(TemporaryName(CheckpointName(step), token));
}

std::string CheckpointDirectory::BeginSave(int64_t step, const std::string& token) {
  Save save{CheckpointName(step), WriterLock()};
  const std::string temporary = MakeTemporary(step, token, &save.lock);
  saves_.emplace(temporary, std::move(save));
  return temporary;
}

// The directory counts as a dead writer's as soon as `lock` is released.
std::string CheckpointDirectory::MakeTemporary(int64_t step, const std::string& token,
                                               WriterLock* lock) const {
  std::string temporary;
  // A process that removes dead writers' directories may hold the new lock for a moment.
  constexpr int kAttempts = 10;
  for (int attempt = 1;; ++attempt) {
    temporary = TemporaryPath(step, token.empty() ? RandomToken() : token);
    WriterLock::RemoveIfDead(temporary);
    if (lock->Take(temporary)) break;
    if (attempt == kAttempts) {
      throw IoError("{}: another process writes it. Do two runs have the same checkpoint.dir?", temporary);
    }
  }
  if (mkdir(temporary.c_str(), 0755) != 0) throw SaveError(temporary, "made", errno);
  return temporary;
}

StoredBase CheckpointDirectory::Seal(const std::string& temporary, Manifest manifest,
                                     const std::string& config) {
  DT_CHECK(saves_.count(temporary) == 1, temporary);
  const std::vector<ListedCheckpoint> there = List();
  manifest.sequence = there.empty() ? 1 : there.front().sequence + 1;
  manifest.config_bytes = static_cast<int64_t>(config.size());
  manifest.config_checksum = Checksum(config.data(), config.size());
  WriteFileAtomically(temporary + "/" + kConfigName, config);
  StoredBase sealed{manifest.sequence, manifest.step, 0};
  WriteFileAtomically(temporary + "/" + kManifestName, ToBytes(manifest, &sealed.checksum));
  SyncDirectory(temporary);
  return sealed;
}

std::string CheckpointDirectory::Publish(const std::string& temporary) {
  const auto save = saves_.find(temporary);
  DT_CHECK(save != saves_.end(), temporary);
  MakeRoom(save->second.name);
  const std::string path = PathOf(save->second.name);
  RenameWhileMine(temporary, path);
  saves_.erase(save);
  SyncDirectory(path_);
  return path;
}

// A process that has lost the directory publishes nothing: the look is directly before the system's call.
void CheckpointDirectory::RenameWhileMine(const std::string& from, const std::string& to) const {
  const FaultScope fault("rename", to.c_str());
  CheckClaim();
  if (rename(from.c_str(), to.c_str()) != 0) throw SaveError(from, "renamed", errno);
}

void CheckpointDirectory::MakeRoom(const std::string& name) const {
  const std::string path = PathOf(name);
  if (!fs::exists(fs::symlink_status(path))) return;
  int64_t sequence = 0;
  try {
    sequence = ReadManifest(path).sequence;
  } catch (const BadCheckpoint&) {
    // A damaged checkpoint moves aside all the same.
  }
  std::error_code ignored;  // a name that cannot be looked up is free
  while (fs::exists(fs::symlink_status(PathOf(ReplacedName(name, sequence)), ignored))) ++sequence;
  const std::string aside = ReplacedName(name, sequence);
  const bool was_best = ReadBest() == name;
  RenameWhileMine(path, PathOf(aside));
  if (was_best) WriteBest(aside);
}

void CheckpointDirectory::Abandon(const std::string& temporary) {
  const auto save = saves_.find(temporary);
  if (save == saves_.end()) return;  // it was published
  std::error_code failed;            // the next Prepare() tries again
  const bool mine = save->second.lock.held();
  if (mine) fs::remove_all(temporary, failed);
  if (failed) fs::remove_all(temporary, failed);  // another writer has just made its shard file there
  saves_.erase(save);
}

bool CheckpointDirectory::HasMadeRoom(const ListedCheckpoint& checkpoint) const {
  return checkpoint.run_id == run_id_ && IsReplacedName(checkpoint.name) &&
         !IsGone(PathOf(CheckpointName(checkpoint.step)));
}

std::vector<std::string> CheckpointDirectory::Prune(int64_t keep, const std::optional<std::string>& stays) {
  const std::vector<ListedCheckpoint> there = List();
  std::vector<bool> kept(there.size());
  std::set<uint64_t> bases;  // of those that are kept, by their checksums
  for (size_t i = 0; i < there.size(); ++i) {
    const bool is_newest = !HasMadeRoom(there[i]) && keep-- > 0;
    kept[i] = is_newest || there[i].name == stays;
    if (kept[i] && there[i].base) bases.insert(there[i].base->checksum);
  }
  std::vector<std::string> removed;
  // A delta is newer than its base and goes first.
  for (size_t i = 0; i < there.size(); ++i) {
    if (kept[i] || bases.count(there[i].checksum) > 0) continue;
    Remove(there[i].name);
    removed.push_back(there[i].name);
  }
  return removed;
}

std::vector<std::string> CheckpointDirectory::RemoveOldest() {
  std::vector<std::string> removed;
  for (size_t keep = List().size(); removed.empty() && keep-- > 1;) {
    removed = Prune(static_cast<int64_t>(keep), ReadBest());
  }
  return removed;
}

// Takes the name away first. When this is interrupted, no named checkpoint is incomplete, and the rest is a
// dead writer's.
void CheckpointDirectory::Remove(const std::string& name) const {
  const std::string temporary = PathOf(TemporaryName(name, RandomToken()));
  if (const int failed = TryRename(PathOf(name), temporary)) {
    if (failed == ENOENT) return;  // removed by another process
    throw SaveError(PathOf(name), "removed", failed);
  }
  std::error_code error;
  fs::remove_all(temporary, error);
  if (error) throw SaveError(temporary, "removed", error.value());
}

std::vector<std::string> CheckpointDirectory::Names() const {
  std::vector<std::string> names = EntriesOf(path_, setting_);
  const auto other = [](const std::string& name) { return !IsCheckpointName(name); };
  names.erase(std::remove_if(names.begin(), names.end(), other), names.end());
  return names;
}

// Repeats `look`, which returns whether it has found something, because a run that saves may remove
// everything that it was about to look at.
template <typename Look>
void CheckpointDirectory::UntilSteady(Look look) const {
  constexpr int kLooks = 10;  // a run writes a checkpoint between two looks
  for (int i = 0; i < kLooks; ++i) {
    const std::vector<std::string> names = Names();
    if (look(names) || Names() == names) return;
  }
}

std::vector<ListedCheckpoint> CheckpointDirectory::List(std::vector<std::string>* unreadable) const {
  std::vector<ListedCheckpoint> listed;
  std::vector<std::string> problems;
  UntilSteady([&](const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      try {
        const Manifest manifest = ReadManifest(PathOf(name));
        listed.push_back(
            {name, manifest.sequence, manifest.step, manifest.checksum, manifest.run_id, manifest.base});
      } catch (const BadCheckpoint& bad) {
        if (!IsGone(PathOf(name))) problems.push_back(fmt::format("{}: {}", name, bad.problem()));
      }
    }
    return !listed.empty() || !problems.empty();
  });
  if (unreadable != nullptr) unreadable->insert(unreadable->end(), problems.begin(), problems.end());
  const auto newer = [](const ListedCheckpoint& a, const ListedCheckpoint& b) {
    return std::tie(a.sequence, a.step, a.name) > std::tie(b.sequence, b.step, b.name);
  };
  std::sort(listed.begin(), listed.end(), newer);
  return listed;
}

std::optional<std::string> CheckpointDirectory::FindNewest(std::vector<std::string>* skipped) const {
  std::vector<std::string> problems;
  std::optional<std::string> found;
  UntilSteady([&](const std::vector<std::string>&) {
    problems.clear();
    const std::vector<ListedCheckpoint> listed = List(&problems);
    for (auto each = listed.begin(); each != listed.end() && !found; ++each) {
      const std::string path = PathOf(each->name);
      try {
        CheckpointReader(path).Verify();
        found = path;
      } catch (const BadCheckpoint& bad) {
        if (!IsGone(path)) problems.push_back(fmt::format("{}: {}", each->name, bad.problem()));
      }
    }
    return found.has_value();
  });
  for (const std::string& problem : problems) skipped->push_back(problem + "; skipped");
  return found;
}

std::optional<std::string> CheckpointDirectory::ReadBest() const {
  std::ifstream file(PathOf(kBest));
  std::string name;
  if (!std::getline(file, name) || !IsCheckpointName(name)) return std::nullopt;
  std::error_code ignored;
  if (!fs::exists(PathOf(name), ignored)) return std::nullopt;
  return name;
}

// Writes in a temporary directory first, which is removed like an unfinished save if this writer is killed.
void CheckpointDirectory::WriteBest(const std::string& name) const {
  WriterLock lock;
  const TemporaryDirectory temporary{MakeTemporary(0, "", &lock)};
  const std::string path = temporary.path + "/" + kBest;
  WriteFileAtomically(path, name + "\n");
  RenameWhileMine(path, PathOf(kBest));
  SyncDirectory(path_);
}

void CheckpointDirectory::ForgetBest() const {
  std::error_code error;
  fs::remove(PathOf(kBest), error);
  if (error) throw SaveError(PathOf(kBest), "removed", error.value());
}

double CheckpointDirectory::ReadBestScore(EvalMetric metric) const {
  double figure = std::numeric_limits<double>::quiet_NaN();
  const std::optional<std::string> best = ReadBest();
  try {
    if (best) figure = ReadManifest(PathOf(*best)).FigureOf(metric);
  } catch (const BadCheckpoint&) {  // another one may become the best
  }
  return std::isnan(figure) ? std::numeric_limits<double>::infinity() : ScoreOf(metric, figure);
}

std::string NamedCheckpoint(const std::string& path, std::vector<std::string>* skipped) {
  std::error_code error;
  if (IsOneCheckpoint(path) || !fs::is_directory(path, error)) {
    CheckpointReader(path).Verify();
    return path;
  }
  const auto newest = CheckpointDirectory(path, "checkpoint.resume").FindNewest(skipped);
  if (!newest) throw NoneComplete(path, "checkpoint.resume");
  return *newest;
}

}  // namespace dtrain
