#include <fmt/core.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <limits>
#include <thread>

#include "base/clock.h"
#include "base/console.h"
#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "base/printable.h"
#include "cmd/common/load_config.h"
#include "cmd/common/report.h"
#include "cmd/common/run_directory.h"
#include "cmd/common/run_files.h"
#include "cmd/common/run_lock.h"
#include "cmd/status/run_list.h"
#include "cmd/status/status.h"
#include "cmd/status/status_text.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/user_text.h"
#include "trainer/monitor/run_monitor.h"
#include "trainer/peer/ask_status.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr milliseconds kPatience{2000};
constexpr milliseconds kPatienceIfGone{500};  // with a ps 0 whose run seems to be killed
constexpr milliseconds kWatchEvery{1000};
// How long one that watches waits for a ps 0 that may be started again.
constexpr std::chrono::seconds kWatchPatience{60};
constexpr int kWideColumns = 200;  // where the output is no terminal
constexpr int kNoLimit = std::numeric_limits<int>::max();

// What is known of the run now.
struct Seen {
  Json status;          // null: nothing is known
  std::string where;    // "run", or "file": the last one that was written
  std::string why;      // why the run itself did not answer
  Json record;          // run.json (cmd/common/run_directory.h); null: only an address was given
  Json result;          // of a run that has ended; otherwise null
  bool killed = false;  // its process is gone, nobody has written its result, and ps 0 says nothing
};

Json WithResult(const Seen& seen) {
  Json document = seen.status.is_object() ? seen.status : Json::object();
  document["source"] = seen.where.empty() ? Json(nullptr) : Json(seen.where);
  document["no_answer"] = seen.why.empty() ? Json(nullptr) : Json(seen.why);
  document["result"] = seen.result;
  return document;
}

// The address of ps 0 in the record of a run (cmd/common/run_directory.h).
std::string AddressIn(const Json& record) {
  const Json* const ps = record.Find("ps");
  return ps != nullptr && ps->is_array() && !ps->empty() && ps->at(0).is_string()
             ? ps->at(0).get<std::string>()
             : "";
}

// Why a run that nobody can connect to, since its tasks are threads, says nothing; empty: it is alive.
std::string WhyThreadsAreSilent(const Json& record) {
  const std::string host = TextIn(record, "host");
  return host == HostName() ? ""
                            : fmt::format("its tasks are threads of a process on {}: look from there", host);
}

// Says that a run without a result is dead. Returns an empty text if it is alive or not on this host.
std::string WhyKilled(const std::string& directory, const Json& record) {
  if (!IsGone(directory, record)) return "";
  return fmt::format(
      "the run is dead: its process, pid {:.0f} on {}, is gone without a result: it was killed, or could not "
      "write one",
      NumberIn(record, "pid").value_or(0), HostName());
}

// A status that a run wrote before it was killed shows its tasks as they were then. They are gone, but for
// the other tasks of a ps 0 that was started by hand: nobody knows of them.
void MarkGone(const Json& record, Json* status) {
  const Json* const tasks = status->Find("tasks");
  if (TextIn(*status, "phase") == "ended" || tasks == nullptr || !tasks->is_array()) return;
  Json marked = Json::array();
  const bool alone = TextIn(record, "written_by") == "ps 0";
  for (Json task : *tasks) {
    const std::string state = TextIn(task, "state");
    const bool self = TextIn(task, "role") == "ps" && task.Find("index") != nullptr && task["index"] == 0;
    if ((state == "here" || state == "preparing") && (self || !alone)) task["state"] = "gone";
    marked.push_back(std::move(task));
  }
  (*status)["tasks"] = std::move(marked);
}

// What a run told last may be older than the newest checkpoint on the disk, and that it told of may be gone.
// Changes nothing if the checkpoints are not on this host.
void ShowCheckpointOnDisk(const std::string& directory, const Json& record, Json* status) {
  const Json* const told = status->Find("checkpoint");
  const std::string place = CheckpointsOf(directory);
  std::error_code failed;
  const bool seen = fs::is_directory(place, failed);
  const bool here = TextIn(record, "host") == HostName() && TextIn(record, "written_by") != "launch";
  if (told == nullptr || (!seen && !here)) return;
  std::vector<ListedCheckpoint> found;
  try {
    if (seen) found = CheckpointDirectory(place).List();
  } catch (const Failure&) {
    return;  // it cannot be read
  }
  (*status)["checkpoint"] = nullptr;
  if (found.empty()) return;
  const std::string path = fs::absolute(place, failed).lexically_normal().string() + "/" + found[0].name;
  struct stat about {};
  const double age_s = stat(path.c_str(), &about) == 0 ? difftime(time(nullptr), about.st_mtime) : 0;
  (*status)["checkpoint"] = Json{{"path", path}, {"step", found[0].step}, {"age_s", age_s}};
}

// security.keys of a run's config; empty: it has none, or cannot be read.
std::string KeysOf(const std::string& config) {
  try {
    return LoadConfig(config, {}, SizedOptions({})).security.keys;
  } catch (const Failure&) {
    return "";
  }
}

// What to do about a run that has not answered, if that is known; begins with a blank.
std::string RemedyFor(const StatusArguments& arguments, const std::string& token_path) {
  if (!arguments.keys.empty()) return "";
  const bool unreadable = access(token_path.c_str(), F_OK) == 0 && access(token_path.c_str(), R_OK) != 0;
  if (unreadable) return fmt::format(" {} is for its owner alone: ask as that user.", token_path);
  const std::string keys = KeysOf(arguments.run + "/config.yaml");
  if (keys.empty()) return "";
  return fmt::format(
      " The run has keys: add --keys with the directory that has status.key (security.keys: {}).", keys);
}

Seen LookAtDirectory(const StatusArguments& arguments) {
  const std::string& directory = arguments.run;
  const Json record = Json::Parse(ReadRunFile(directory + "/run.json"));
  Seen seen;
  seen.record = record;
  seen.result = WithPresentKeys(Json::Parse(ReadRunFile(directory + "/result.json")));
  const std::string killed = seen.result.is_object() ? "" : WhyKilled(directory, record);
  const std::string token = ReadRunFile(directory + "/" + RunMonitor::kToken), address = AddressIn(record);
  if (!seen.result.is_object() && address.empty()) {
    seen.why = WhyThreadsAreSilent(record);
  } else if (!seen.result.is_object()) {
    const milliseconds patience = killed.empty() ? kPatience : kPatienceIfGone;
    const StatusAnswer answer = AskStatus(address, token, arguments.keys, patience);
    seen.status = Json::Parse(answer.json);
    if (seen.status.is_object()) seen.where = "run";
    if (!answer.why.empty()) {
      seen.why = answer.why + "." + RemedyFor(arguments, directory + "/" + RunMonitor::kToken);
    }
  }
  if (seen.status.is_object()) return seen;
  seen.killed = !killed.empty();
  if (seen.killed) seen.why = killed;
  seen.status = Json::Parse(ReadRunFile(directory + "/" + RunMonitor::kStatus));
  if (!seen.status.is_object()) return seen;
  seen.where = "file";
  if (seen.killed || seen.result.is_object()) MarkGone(record, &seen.status);
  return seen;
}

// What to try if nobody at an address says anything of a run; begins with a point.
std::string AdviceFor(const StatusArguments& arguments, const StatusAnswer& answer) {
  if (answer.refused) return "";
  return fmt::format(". {}Workers tell no status: name ps 0, the first address of cluster.ps.",
                     arguments.keys.empty() && !answer.nobody
                         ? "If the run has keys, add --keys with the directory that has status.key. "
                         : "");
}

Seen LookAtAddress(const StatusArguments& arguments) {
  std::string token;
  if (!arguments.token.empty()) {
    token = ReadRunFile(arguments.token);
    if (token.empty()) throw UserError("--token {}: cannot be read, or is empty", arguments.token);
  }
  const StatusAnswer answer = AskStatus(arguments.run, token, arguments.keys, kPatience);
  if (answer.json.empty()) throw Failure(ExitCode::kPeerLost, answer.why + AdviceFor(arguments, answer));
  return {Json::Parse(answer.json), "run", "", nullptr, nullptr};
}

Seen Look(const StatusArguments& arguments) {
  if (fs::is_directory(arguments.run)) {
    Seen seen = LookAtDirectory(arguments);
    const Json* const kept = seen.result.Find("checkpoint");
    const bool keeps_none = kept != nullptr && kept->is_null() && seen.status.Find("checkpoint") != nullptr;
    if (keeps_none) seen.status["checkpoint"] = nullptr;  // what is on the disk was skipped
    if (!keeps_none) ShowCheckpointOnDisk(arguments.run, seen.record, &seen.status);
    return seen;
  }
  if (arguments.run.find(':') == std::string::npos) {
    std::error_code failed;
    if (fs::exists(arguments.run, failed)) {
      throw UserError("{}: a file, and no directory. Name that of a run, such as one of runs/.",
                      arguments.run);
    }
    throw UserError(
        "{}: no such directory. Name that of a run, such as one of runs/, or HOST:PORT of its ps 0.{}",
        arguments.run, SimilarPathHint(arguments.run));
  }
  return LookAtAddress(arguments);
}

bool Ended(const Seen& seen) { return seen.result.is_object() || TextIn(seen.status, "phase") == "ended"; }

// What to do with a run that has ended, or how to go on with it; empty: nothing.
std::string NextText(const std::string& directory, const Json& record, const char* word) {
  const std::string next = NextOf(directory, record), where = TextIn(record, "working_directory");
  if (next.empty()) return "";
  std::error_code failed;
  const bool here = fs::equivalent(where, fs::current_path(failed), failed) && !failed;
  return fmt::format("{}{}: {}\n", word, here ? "" : " in " + Printable(where), Printable(next));
}

std::string TextOf(const std::string& directory, const Seen& seen, int columns) {
  std::string text;
  if (seen.result.is_object()) {
    text = ResultLine(seen.result) + "\n" + NextText(directory, seen.record, "next");
  } else if (seen.killed) {
    text = seen.why + "\n" + NextText(directory, seen.record, "to go on");
  } else if (!seen.why.empty()) {
    text = "no answer, and no result yet: " + seen.why + "\n";
  }
  if (!seen.status.is_object()) return text + "no status was written\n";
  if (!text.empty() && seen.where == "file") {
    text += fmt::format("the last status that it wrote, at {}:\n", TextIn(seen.status, "time"));
  }
  return text + StatusText(seen.status, columns, /*with_run=*/!seen.result.is_object());
}

// Shows the runs in a directory that is itself none.
int ShowRuns(const StatusArguments& arguments) {
  const Json runs = RunsIn(arguments.run);
  if (runs.empty()) {
    throw UserError(
        "{}: neither the directory of a run, with a run.json, nor one of such directories. Name one of "
        "runs/, "
        "or HOST:PORT of a ps 0.",
        arguments.run);
  }
  if (arguments.watch) {
    throw UserError("--watch: {} is a directory of {} runs. Name one of them.", arguments.run, runs.size());
  }
  const int columns = SizeOfTerminal(STDOUT_FILENO).columns;
  fmt::print("{}", arguments.json ? runs.dump(2) + "\n" : RunTable(runs, columns > 0 ? columns : kNoLimit));
  return 0;
}

void Show(const StatusArguments& arguments, const Seen& seen) {
  const TerminalSize size = SizeOfTerminal(STDOUT_FILENO);
  const bool terminal = size.columns > 0;
  // Draws over the last one: the cursor goes home, and what is below is erased.
  const bool draws = arguments.watch && !arguments.json && terminal;
  std::string text = arguments.json ? WithResult(seen).dump(arguments.watch ? -1 : 2) + "\n"
                                    : TextOf(arguments.run, seen, terminal ? size.columns : kWideColumns);
  if (draws) text = FirstLines(text, size.rows - 1);
  fmt::print("{}{}{}", draws ? "\x1b[H\x1b[2J" : "", text,
             arguments.watch && !draws && !arguments.json ? "\n" : "");
  if (fflush(stdout) != 0) throw OutputFailed(errno);
}

}  // namespace

int RunStatusCommand(const StatusArguments& arguments) {
  if (fs::is_directory(arguments.run) && ReadRunFile(arguments.run + "/run.json").empty()) {
    return ShowRuns(arguments);
  }
  for (TimePoint answered = Clock::now();;) {
    const Seen seen = Look(arguments);
    Show(arguments, seen);
    if (seen.why.empty()) answered = Clock::now();
    if (!arguments.watch || Ended(seen) || Clock::now() - answered > kWatchPatience) return 0;
    std::this_thread::sleep_for(kWatchEvery);
  }
}

}  // namespace dtrain
