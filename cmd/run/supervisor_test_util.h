// Shells as the children of a Supervisor, and a Supervisor for each test.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/testing/files.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/run/supervisor.h"

namespace dtrain {

// Files that the children know by their names; gone with the test.
struct Folder {
  const std::string path = testing::NewDirectory();

  Folder() = default;
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string Pipe(const std::string& name) const {
    DT_CHECK(mkfifo((path + "/" + name).c_str(), 0600) == 0);
    return path + "/" + name;
  }
};

// In the shell, `again` is whether the child was started before, in `folder`.
inline ChildCommand Child(const Folder& folder, const std::string& name, const std::string& script) {
  ChildCommand command;
  command.name = name;
  command.program = "/bin/bash";  // its read -t: see Waits()
  const std::string file = fmt::format("'{}/{}'", folder.path, name);
  command.arguments = {
      "-c", fmt::format("if [ -e {0} ]; then again=true; else again=false; : > {0}; fi\n{1}", file, script)};
  command.can_return = true;
  return command;
}

constexpr char kDiesOnce[] = "if $again; then exit 0; fi; kill -KILL $$";

// Ends only by a signal. Looks up again and again, because a shell may miss one with a trap that comes after
// its last look and before it waits.
inline std::string Waits(const Folder& folder) {
  const std::string never = folder.path + "/never";
  return fmt::format("while :; do read -t 0.5 x <> '{}'; done",
                     std::filesystem::exists(never) ? never : folder.Pipe("never"));
}

inline RestartRules Rules(int64_t max, milliseconds never_lost_before) {
  RestartRules rules;
  rules.max = max;
  rules.peer_lost_exit = 138;
  rules.never_lost_before = never_lost_before;
  return rules;
}

// What ps 0 says when the run is done.
inline std::string DoneReport() {
  RunSummary summary;
  summary.status = "done";
  return std::string(kResultWord) + " " + ToWireJson(summary);
}

struct Runner {
  Console console{LiveLine::kNone};
  ShutdownTimeouts timeouts;
  SignalPipe signals{SIGINT, SIGTERM, SIGCHLD};
  Supervisor supervisor;

  explicit Runner(int64_t max, milliseconds never_lost_before = milliseconds(0),
                  ShutdownTimeouts how_long = {})
      : timeouts(how_long), supervisor(timeouts, Rules(max, never_lost_before), signals, console, false) {}
  // `stage`: how far the run is from the start.
  Outcome Run(const std::vector<ChildCommand>& commands, RunStage stage = RunStage::kRunning) {
    if (stage != RunStage::kStarting) supervisor.TakeReport("ps 0", kBegunWord);
    if (stage == RunStage::kDone) supervisor.TakeReport("ps 0", DoneReport());
    supervisor.Start(commands);
    return supervisor.Run();
  }
};

inline const ChildEnd& EndOf(const Outcome& outcome, const std::string& name) {
  for (const ChildEnd& end : outcome.ends) {
    if (end.name == name) return end;
  }
  FAIL(name);
  return outcome.ends.front();
}

}  // namespace dtrain
