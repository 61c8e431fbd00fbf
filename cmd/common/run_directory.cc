#include "cmd/common/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/machine_memory.h"
#include "base/names.h"
#include "cmd/common/program.h"
#include "cmd/common/run_lock.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/config/dump.h"
#include "trainer/monitor/run_monitor.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr char kMadeUpIn[] = "runs";
constexpr int kMaxNames = 1000;          // of runs that begin in one second
constexpr int64_t kFailedStarts = 5;     // of one config that stay
constexpr off_t kRoomBytes = 256 << 10;  // of a result with some hundred workers

// Returns the file that keeps room on the disk for the result: a run must tell how it ended when the disk is
// full.
std::string RoomFile(const std::string& directory) { return directory + "/.room"; }

// A file system that cannot keep room loses nothing else.
void KeepRoom(const std::string& directory) {
  const FileDescriptor room(
      open(RoomFile(directory).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (room.get() >= 0) posix_fallocate(room.get(), 0, kRoomBytes);
}

// Makes the file that kept room the file at `path`. Returns false if that fails.
bool WriteInRoom(const std::string& directory, const std::string& path, const std::string& content) {
  const std::string file = RoomFile(directory);
  const FileDescriptor room(open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  return room.get() >= 0 && WriteAll(room.get(), content) == 0 &&
         ftruncate(room.get(), static_cast<off_t>(content.size())) == 0 && fsync(room.get()) == 0 &&
         rename(file.c_str(), path.c_str()) == 0;
}

Json ReadRecord(const std::string& directory) {
  return Json::Parse(ReadRunFile(directory + "/" + RunDirectory::kRecord));
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

bool IsNamed(const Json& record) {
  const Json* const named = record.Find("named_by_dtrain");
  return named != nullptr && named->is_boolean() && named->get<bool>();
}

// Returns the directories in `parent` that dtrain has named and that have their name still, with their
// records.
std::vector<std::pair<std::string, Json>> NamedIn(const std::string& parent) {
  std::vector<std::pair<std::string, Json>> found;
  std::error_code failed;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code unknown;
    Json record = fs::is_symlink(entry->path(), unknown) ? Json() : ReadRecord(entry->path().string());
    if (IsNamed(record) && TextIn(record, "name") == entry->path().filename().string())
      found.emplace_back(entry->path().string(), std::move(record));
  }
  return found;
}

// Returns "pid 12 on node1", of the run that has the directory.
std::string Holder(const std::string& path) {
  const Json record = ReadRecord(path);
  const Json* const pid = record.Find("pid");
  if (pid == nullptr || !pid->is_number_integer()) return "another run";
  return fmt::format("another run (pid {} on {})", pid->get<int64_t>(), TextIn(record, "host"));
}

// Returns the command line without values that may be secret. "..." in their place is refused as a value.
std::vector<std::string> ShownWords() {
  const std::string set = "--set=";
  std::vector<std::string> words = OwnWords();
  for (size_t i = 1; i < words.size(); ++i) {
    std::string& word = words[i];
    const size_t key = word.rfind(set, 0) == 0 ? set.size() : 0;
    const auto sets = [&](const std::string& name) { return word.compare(key, name.size(), name) == 0; };
    const bool is_set = key > 0 || words[i - 1] == "--set";
    if (is_set && (sets("launch=") || sets("launch.hosts")))
      word = word.substr(0, word.find('=', key)) + "=...";
  }
  return words;
}

// What comes next is `dtrain eval` or `inspect`, the same command again, which goes on in the directory, or
// that with the checkpoints inside of the directory, whatever checkpoint.dir is.
constexpr char kAgain[] = "again";
constexpr char kAgainInside[] = "again, inside";

// Returns the command that comes next for the directory of the run with this record. Empty: `what` is.
std::string CommandOf(const Json& record, const std::string& what, const std::string& directory) {
  if (what.empty()) return "";
  std::vector<std::string> words;
  bool value = false;
  const Json* const line = record.Find("command_line");
  const Json none = Json::array();
  for (const Json& each : line != nullptr && line->is_array() ? *line : none) {
    const std::string word = each.is_string() ? each.get<std::string>() : "";
    const bool run = std::exchange(value, word == "--run") || value || word.rfind("--run=", 0) == 0;
    if (!run) words.push_back(word);
  }
  if (what.rfind(kAgain, 0) != 0) return ShellLine({words.empty() ? "dtrain" : words[0], what, directory});
  words.insert(words.end(), {"--run", directory});
  if (what == kAgainInside)
    words.insert(words.end(), {"--set", "checkpoint.dir=" + directory + "/checkpoints"});
  return ShellLine(words);
}

[[noreturn]] void ThrowNoDirectory(const std::string& path, const char* what, int error_number) {
  ThrowUnwritable(
      fmt::format("run.dir = {}: cannot be {}: {}. {}ame another directory or none.", path, what,
                  ErrnoText(error_number), IsLackOfRoom(error_number) ? "Free some space, or n" : "N"),
      error_number);
}

// Whether a text has the path of a directory, or one that is in it.
bool NamesPath(const std::string& text, const std::string& path) {
  for (size_t at = text.find(path); at != std::string::npos; at = text.find(path, at + 1)) {
    const size_t end = at + path.size();
    if (end == text.size() || std::string("/\n\"', ]}").find(text[end]) != std::string::npos) return true;
  }
  return false;
}

std::string Resolved(const std::string& path) {
  std::error_code failed;
  return fs::weakly_canonical(fs::absolute(path, failed), failed).string();
}

// Returns in lines each text in `json` as a path without links, and so what it stands for: the checkpoints of
// a run, or the files that fit a pattern.
std::string ResolvedTexts(const Json& json) {
  std::string lines;
  if (json.is_string() && !json.get<std::string>().empty()) {
    const std::string text = json.get<std::string>();
    lines = Resolved(text) + "\n" + Resolved(CheckpointsOf(text)) + "\n";
    glob_t found{};
    if (glob(text.c_str(), 0, nullptr, &found) == 0) {
      for (size_t i = 0; i < found.gl_pathc; ++i) lines += Resolved(found.gl_pathv[i]) + "\n";
    }
    globfree(&found);
  }
  if (json.is_array()) {
    for (const Json& each : json) lines += ResolvedTexts(each);
  }
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) lines += ResolvedTexts(value);
  }
  return lines;
}

// A run writes files of these names.
void RefuseFilesOfOthers(const std::string& path, int lock_fd) {
  for (const char* const name : {RunDirectory::kRecord, RunDirectory::kResult, RunDirectory::kConfig}) {
    std::error_code failed;
    if (!fs::exists(fs::symlink_status(path + "/" + name, failed))) continue;
    UnlockRun(path, lock_fd);
    throw UserError(
        "run.dir = {}: there is a {}, which is of no run, and a run would write its own in its place. Name "
        "another directory.",
        path, name);
  }
}

std::string StemOf(const std::string& config_path) {
  std::string stem = fs::path(config_path).stem().string();
  std::replace_if(
      stem.begin(), stem.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; }, '_');
  return stem.empty() ? "run" : stem;
}

// Returns "runs/quickstart-20261127-210501"; from the second on with its number.
std::string MadeUpName(const std::string& config_path, int number) {
  const std::string now = WallText(WallNanos());  // "2026-01-31T23:59:59.123+01:00"
  std::string digits;
  for (const char c : now.substr(0, now.find('.'))) {
    if (c >= '0' && c <= '9') digits += c;
    if (c == 'T') digits += '-';
  }
  const std::string again = number == 1 ? "" : fmt::format("-{}", number);
  return fmt::format("{}/{}-{}{}", kMadeUpIn, StemOf(config_path), digits, again);
}

// Whether the run in a directory ended before it began, and nothing is among its checkpoints. False if nobody
// can look.
bool IsFailedStart(const std::string& path, const Json& record) {
  const std::string checkpoints = path + "/checkpoints";
  std::error_code failed;
  return TextIn(record, "run_id").empty() && fs::exists(path + "/" + RunDirectory::kResult, failed) &&
         (fs::symlink_status(checkpoints, failed).type() == fs::file_type::not_found ||
          fs::is_empty(checkpoints, failed));
}

// Returns a path as a user in the directory `from`, or else in this one, would write it: relative if it is
// below.
std::string ShownPath(const std::string& path, fs::path from = {}) {
  std::error_code failed;
  if (from.empty()) from = fs::current_path(failed);
  const fs::path relative = fs::path(path).lexically_relative(from);
  const bool below = !relative.empty() && *relative.begin() != "..";
  return below ? relative.string() : path;
}

bool IsDone(const std::string& status) { return status == "done" || status == "already_done"; }

// Whether a run with this record was killed, lost a peer, or had to end by SIGTERM. Ctrl-C is a person's
// wish.
bool IsCutShort(const Json& record) {
  const std::string status = TextIn(record, "status");
  if (status == "running") return true;
  return !IsDone(status) && !TextIn(record, "next").empty() &&
         NumberIn(record, "exit_code") != static_cast<double>(ExitCode::kInterrupted);
}

std::string Absolute(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

}  // namespace

std::string ReadRunFile(const std::string& path) {
  constexpr uintmax_t kMaxBytes = 256 << 20;
  std::error_code failed;
  if (!fs::is_regular_file(path, failed) || fs::file_size(path, failed) > kMaxBytes) return "";
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

int64_t BytesIn(const std::string& directory) {
  uintmax_t bytes = 0;
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code unknown;  // a run may have removed it just now
    const bool is_file = fs::is_regular_file(entry->symlink_status(unknown));
    const uintmax_t size = is_file ? entry->file_size(unknown) : 0;
    if (!unknown) bytes += size;
  }
  return static_cast<int64_t>(bytes);
}

RunDirectory::RunDirectory(std::string path, const Writer& writer, bool is_named, int lock_fd)
    : path_(std::move(path)), writer_(writer), is_named_(is_named), lock_fd_(lock_fd) {}

RunDirectory::~RunDirectory() {
  unlink(RoomFile(path_).c_str());
  UnlockRun(path_, lock_fd_);
}

std::unique_ptr<RunDirectory> RunDirectory::Open(const std::string& path, const Writer& writer, bool named) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) ThrowNoDirectory(path, "made", failed.value());
  const int fd = LockRun(path, /*strictly=*/false);
  if (fd < 0 && errno == EWOULDBLOCK) {
    throw UserError(
        "run.dir = {}: in use by {}. Give each run a directory of its own, or end that one first.", path,
        Holder(path));
  }
  if (fd < 0) ThrowNoDirectory(path, "written", errno);
  const Json old = ReadRecord(path);
  if (TextIn(old, "start_time").empty()) RefuseFilesOfOthers(path, fd);
  return std::unique_ptr<RunDirectory>(new RunDirectory(path, writer, named || IsNamed(old), fd));
}

std::unique_ptr<RunDirectory> RunDirectory::Make(const std::string& path, const Writer& writer) {
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  if (failed) {
    throw FileError(fmt::format("{}: {}", fs::path(path).parent_path().string(), ErrnoText(failed.value())),
                    failed.value());
  }
  if (mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST) return nullptr;
    throw FileError(fmt::format("{}: {}", path, ErrnoText(errno)), errno);
  }
  return std::unique_ptr<RunDirectory>(
      new RunDirectory(path, writer, /*is_named=*/true, LockRun(path, /*strictly=*/false)));
}

bool RunDirectory::IsWrittenByOther(const std::string& path, const Writer& writer) {
  const Json record = ReadRecord(path);
  return !writer.start_id.empty() && TextIn(record, "start_id") == writer.start_id &&
         TextIn(record, "written_by") != writer.name;
}

void RunDirectory::Begin(const Config& config, const std::string& config_path) {
  status_ = "running";
  keep_ = config.run.keep;
  has_eval_rows_ = config.eval.on == EvalOn::kValidation || config.data.test.format != DataFormat::kNone;
  config_ = DumpConfig(WithoutSecrets(config));
  flat_config_ = FlatConfig(config);
  if (!TextIn(ReadRecord(path_), "run_id").empty()) {
    for (const char* const name : {kRecord, kResult, kConfig, RunMonitor::kStatus}) {
      earlier_[name] = ReadRunFile(path_ + "/" + name);
    }
  }
  Json& record = record_;
  record["name"] = fs::path(path_).filename().string();
  record["named_by_dtrain"] = is_named_;
  record["status"] = status_;
  record["error"] = nullptr;
  record["exit_code"] = nullptr;
  record["command_line"] = ShownWords();
  record["working_directory"] = fs::current_path().string();
  record["config_file"] = Absolute(config_path);
  record["version"] = kVersion;
  record["commit"] = TextOrNull(ProgramCommit());
  record["config_digest"] = ConfigDigest(config);
  record["run_id"] = nullptr;
  record["start_id"] = writer_.start_id;
  record["written_by"] = writer_.name;
  record["host"] = HostName();
  record["pid"] = static_cast<int64_t>(getpid());
  record["hosts"] = Json::object();
  // `local` finds the ports later, or has threads, to which nobody can connect.
  record["ps"] = writer_.name == "local" ? Json::array() : Json(config.cluster.ps);
  record["workers"] = static_cast<int64_t>(config.cluster.worker.size());
  record["start_time"] = WallText(ProcessStartWallNanos());
  record["end_time"] = nullptr;
  SetNext(kAgain);  // for those who find that the run was killed
  record["checkpoints"] = config.checkpoint.dir;
  record["logs"] = config.log.dir;
  record["summaries"] = config.summary.dir;
  Write();  // first: from now on the other files here are of a run
  KeepRoom(path_);
  WriteFileAtomically(path_ + "/" + kConfig, config_);
  rename((path_ + "/" + kResult).c_str(), ResultBefore().c_str());
}

void RunDirectory::SetAddresses(const std::vector<std::string>& ps) {
  record_["ps"] = Json(ps);
  Write();
}

void RunDirectory::End(const RunSummary& summary, const RunAccount& account, const std::string& result) {
  status_ = summary.status;
  std::error_code failed;
  const bool gone = !fs::exists(path_ + "/" + kRecord, failed);
  if (gone) {
    fs::create_directories(path_, failed);
    WriteFileAtomically(path_ + "/" + kConfig, config_);
  }
  const std::string before = EarlierResult();
  const bool nothing_done = status_ == "already_done" && IsDone(TextIn(Json::Parse(before), "status"));
  keeps_earlier_ = account.identity.run_id.empty() && !before.empty();
  if (keeps_earlier_ || nothing_done) RestoreEarlier();
  if (keeps_earlier_) return;
  model_ = summary.checkpoint.value_or("");
  const auto leader = account.identity.hosts.find(TaskName({Role::kPs, 0}));
  const std::string fetched = path_ + "/checkpoints/" + fs::path(model_).filename().string();
  const bool is_here =
      model_.empty() || fs::exists(model_) || fs::exists(fetched) || leader == account.identity.hosts.end();
  model_at_ = is_here ? "" : leader->second;
  if (model_at_ == HostName()) {  // somebody has removed it
    model_.clear();
    model_at_.clear();
  }
  const std::string inside = path_ + "/checkpoints";
  moved_ = fs::equivalent(fs::path(model_).parent_path(), inside, failed) &&
           !fs::equivalent(record_.at("checkpoints").get<std::string>(), inside, failed);
  if (moved_) record_["checkpoints"] = inside;  // checkpoint.dir could not be made
  // A run that diverged, or that failed by its config or data, would only do so again. One that met a fault
  // in its data while it trained was saved, so that it can go on when that is mended.
  const bool saved = account.exit_code == static_cast<int>(ExitCode::kUser) && !model_.empty();
  goes_on_ = status_ == "stopped" || status_ == "peer_lost" || saved ||
             account.exit_code == static_cast<int>(ExitCode::kInternal);
  if (nothing_done) return;
  record_["status"] = status_;
  record_["error"] = TextOrNull(BlameText(account.blame));
  record_["exit_code"] = account.exit_code ? Json(*account.exit_code) : Json(nullptr);
  if (!account.identity.run_id.empty()) record_["run_id"] = account.identity.run_id;
  Json hosts = Json::object();
  for (const auto& [task, host] : account.identity.hosts) hosts[task] = host;
  record_["hosts"] = hosts;
  record_["end_time"] = WallText(account.end_nanos);
  SetNext(What());
  if (!WriteInRoom(path_, ResultPath(), result)) WriteFileAtomically(ResultPath(), result);
  unlink(ResultBefore().c_str());
  Write();
  made_anew_ = gone;
}

std::string RunDirectory::EarlierResult() const {
  const auto found = earlier_.find(kResult);
  return found == earlier_.end() ? std::string() : found->second;
}

void RunDirectory::RestoreEarlier() const {
  unlink(RoomFile(path_).c_str());  // they need it on a full disk
  for (const auto& [name, text] : earlier_) {
    if (!text.empty()) WriteFileAtomically(path_ + "/" + name, text);
  }
  unlink(ResultBefore().c_str());
}

void RunDirectory::Write() const { WriteFileAtomically(path_ + "/" + kRecord, record_.dump(2) + "\n"); }

std::string RunDirectory::Shown() const { return ShownPath(path_); }

bool RunDirectory::is_done() const { return IsDone(status_); }

std::string RunDirectory::WatchCommand() const { return ShellLine({OwnWords().at(0), "status", Shown()}); }

std::string RunDirectory::What() const {
  const bool has_model = is_done() && !model_.empty() && model_at_.empty();
  if (has_model) return has_eval_rows_ ? "eval" : "inspect";
  return !goes_on_ ? "" : moved_ ? kAgainInside : kAgain;
}

std::string RunDirectory::NextCommand() const { return CommandOf(record_, What(), Shown()); }

void RunDirectory::SetNext(const std::string& what) {
  record_["next"] = TextOrNull(CommandOf(record_, what, Shown()));
  record_["next_is"] = TextOrNull(what);
}

std::string RunDirectory::OthersAgain() const {
  if (writer_.name != TaskName({Role::kPs, 0}) || NextCommand().find(" --role ") == std::string::npos)
    return "";
  const auto others = [](const char* role, size_t first, size_t count) {
    if (first == count) return std::string();
    const std::string to = first + 1 < count ? fmt::format(" to {}", count - 1) : "";
    return fmt::format(", --role {} --index {}{}", role, first, to);
  };
  return "; and the other tasks by their own commands" + others("ps", 1, record_.at("ps").size()) +
         others("worker", 0, record_.at("workers").get<size_t>());
}

std::string RunDirectory::NextLine() const {
  const std::string where = "run: " + Shown() + (made_anew_ ? ", which was gone and is made anew" : "");
  const std::string next = NextCommand();
  if (keeps_earlier_) return where + " keeps the result of the run before";
  if (is_done() && !model_at_.empty()) {
    return fmt::format("{}; the model is {} on {}", where, model_, model_at_);
  }
  if (!next.empty() && is_done()) return fmt::format("{}; next: {}", where, next);
  if (!next.empty()) return fmt::format("{}; to go on: {}{}", where, next, OthersAgain());
  return is_done() ? where : fmt::format("{}; more: {}", where, WatchCommand());
}

std::vector<std::string> RunDirectory::RemoveOld() const {
  std::vector<std::string> lines;
  if (!is_named_) return lines;
  const std::string stem = StemOf(TextIn(record_, "config_file"));
  std::multimap<std::string, std::string> failed_starts, others;  // paths by start_time
  for (const auto& [path, record] : NamedIn(fs::path(path_).parent_path().string())) {
    const bool is_like_this = path != path_ && StemOf(TextIn(record, "config_file")) == stem;
    if (!is_like_this || IsInUse(path, record) || NamesPath(config_, path)) continue;
    (IsFailedStart(path, record) ? failed_starts : others).emplace(TextIn(record, "start_time"), path);
  }
  const auto remove = [&](std::multimap<std::string, std::string>* old, int64_t stay,
                          const std::string& why) {
    if (static_cast<int64_t>(old->size()) <= stay) return;
    const std::string resolved = ResolvedTexts(flat_config_);
    for (auto each = old->begin(); each != old->end();) {
      each = NamesPath(resolved, Resolved(each->second)) ? old->erase(each) : std::next(each);
    }
    int64_t left = static_cast<int64_t>(old->size());
    for (auto next = old->begin(); left > stay; ++next, --left) {
      const std::string& path = next->second;
      const int lock = LockRun(path, /*strictly=*/true);
      if (lock < 0) continue;
      const std::string size = BytesText(static_cast<double>(BytesIn(path)));
      std::error_code failed;
      fs::remove_all(path, failed);
      UnlockRun(path, lock);
      lines.push_back(failed ? fmt::format("{} cannot be removed: {}", ShownPath(path), failed.message())
                             : fmt::format("removed {} ({}): {}", ShownPath(path), size, why));
    }
  };
  remove(&failed_starts, kFailedStarts - (IsFailedStart(path_, ReadRecord(path_)) ? 1 : 0),
         fmt::format("its run never began; the newest {} of such directories stay", kFailedStarts));
  if (keep_ && is_done()) {
    remove(&others, *keep_ - 1, fmt::format("run.keep = {}, and this config has newer runs", *keep_));
  }
  return lines;
}

namespace {

// Returns the newest directory of the same command in which a run began, if that was cut short; empty: there
// is none.
std::string CutShort(const Config& config, const std::string& config_path,
                     const RunDirectory::Writer& writer) {
  Json newest;
  std::string path;
  for (const auto& [each, record] : NamedIn(Absolute(kMadeUpIn))) {
    const Json* const ps = record.Find("ps");
    const bool same = TextIn(record, "written_by") == writer.name &&
                      TextIn(record, "config_file") == Absolute(config_path) &&
                      TextIn(record, "config_digest") == ConfigDigest(config) && ps != nullptr &&
                      *ps == Json(config.cluster.ps);
    if (!same || TextIn(record, "start_time") < TextIn(newest, "start_time")) continue;
    if (IsFailedStart(each, record)) continue;  // such as one that found the port still in use
    newest = record;
    path = each;
  }
  return config.checkpoint.resume == "auto" && IsCutShort(newest) ? path : "";
}

// Places the run in the directory that its config names.
PlacedRun PlaceIn(Config config, const std::string& config_path, const RunDirectory::Writer& writer) {
  PlaceOutputs(&config);
  PlacedRun placed{std::move(config), nullptr};
  placed.directory = RunDirectory::Open(placed.config.run.dir, writer);
  try {
    placed.directory->Begin(placed.config, config_path);
  } catch (const FileError& error) {
    ThrowUnwritable(fmt::format("run.dir = {}", error.what()), error.error_number());
  }
  return placed;
}

}  // namespace

void PlaceOutputs(Config* config) {
  if (!config->run.has_directory()) return;
  if (config->log.dir.empty()) config->log.dir = config->run.dir + "/logs";
  if (config->summary.dir.empty()) config->summary.dir = config->run.dir + "/summaries";
}

PlacedRun PlaceRun(const std::string& config_path, const RunDirectory::Writer& writer,
                   const std::function<void(const std::string&)>& tell,
                   const std::function<Config(const std::string& made_up)>& load) {
  PlacedRun placed;
  std::string why = "there are too many of this name";
  for (int number = 1; number <= kMaxNames; ++number) {
    const std::string made_up = Absolute(MadeUpName(config_path, number));
    placed.config = load(made_up);
    Config& config = placed.config;
    if (!config.run.has_directory()) return placed;
    if (config.run.dir != made_up) return PlaceIn(std::move(config), config_path, writer);
    if (writer.name == TaskName({Role::kPs, 0})) {
      const std::string old = CutShort(config, config_path, writer);
      try {
        if (!old.empty()) {
          PlacedRun again = PlaceIn(load(old), config_path, writer);
          tell(fmt::format("goes on with {}, which was cut short; to begin anew: --run DIR", ShownPath(old)));
          return again;
        }
      } catch (const Failure&) {  // in use, or it cannot be written: a new one serves as well
      }
    }
    PlaceOutputs(&config);
    try {
      placed.directory = RunDirectory::Make(config.run.dir, writer);
      if (placed.directory == nullptr) continue;
      placed.directory->Begin(config, config_path);
      return placed;
    } catch (const FileError& error) {
      placed.directory.reset();
      why = error.what();
      break;
    }
  }
  placed.config = load(kNoRunDirectory);
  const bool keeps_none = placed.config.checkpoint.dir.empty();
  tell(fmt::format("{}; this run has no directory{}. Run it where files can be made, or name one: --run DIR",
                   why, keeps_none ? ", so it keeps no model" : ""));
  placed.why_none = why;
  return placed;
}

std::string NextOf(const std::string& directory, const Json& record) {
  const std::string what = TextIn(record, "next_is");
  if (what.empty()) return TextIn(record, "next");  // of an older version, or none
  return CommandOf(record, what,
                   ShownPath(WithoutSlashes(Absolute(directory)), TextIn(record, "working_directory")));
}

std::string NewStartId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace dtrain
