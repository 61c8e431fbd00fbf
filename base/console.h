// Console: standard error of this process, as whole lines with one live line below them; and PatientOutput,
// through which it writes.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace dtrain {

// PatientOutput: a descriptor that people read, as standard error. Its reader may stop reading (a pager, a
// terminal after Ctrl-S, a program that hangs), and the run must not stop with it: a write waits for room up
// to `patience`; then lines are dropped and counted until there is room again. Owner: standard error is the
// process's (StandardError()). Thread: any.
class PatientOutput {
 public:
  // `fd` stays the caller's.
  PatientOutput(int fd, milliseconds patience);
  ~PatientOutput();
  PatientOutput(const PatientOutput&) = delete;
  PatientOutput& operator=(const PatientOutput&) = delete;

  // Writes `text`, whole lines. Returns after `patience` at the latest. The first line that is dropped may
  // have been written in part: the next one begins on a line of its own. Where the reader is gone for good,
  // lines are dropped without being counted.
  void Write(std::string_view text);

  // The number of lines that were dropped since the last call; 0 as long as there is no room.
  int64_t TakeMissing();

 private:
  bool HasRoom(milliseconds patience) const;
  // Returns how much of it is written.
  size_t WritePart(std::string_view text, milliseconds patience);

  const int given_;
  const int fd_;  // of the same file
  const milliseconds patience_;
  std::mutex mutex_;
  bool stalled_ = false;
  bool cut_ = false;  // what was written last has no line end
  int64_t missing_ = 0;
};

// Standard error of this process. It waits up to 3 s, less than the peers wait for a task that says nothing.
PatientOutput& StandardError();

// The line that stands where lines were dropped: "3 lines are missing here: ...".
std::string MissingText(int64_t lines);

// How the live line reaches people.
enum class LiveLine {
  kNone,     // not shown: nobody would see it move
  kDrawn,    // standard error is a terminal
  kRelayed,  // sent as a line of its own kind to the parent, whose console draws it (Console::PassOn)
};

// Console: standard error of this process: whole lines, and below them one live line that is drawn over and
// over. Each change is one write of a PatientOutput. Owner: the command; tasks that run as threads share one.
// Thread: any.
class Console {
 public:
  explicit Console(LiveLine live) : live_(live) {}
  ~Console() { End(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  static bool IsTerminal();

  bool live() const { return live_ != LiveLine::kNone; }
  // Replaces the live line; an empty text removes it. `text` is ASCII without control characters; what is
  // wider than the terminal is cut off.
  void SetLive(std::string_view text);
  // `line` ends with its newline.
  void WriteLine(std::string_view line);
  // Writes a line of a child. The child's live line becomes this console's.
  void PassOn(std::string_view line);
  // Removes the live line for good.
  void End();

  // Whether a child's line is a live line in disguise.
  static bool IsRelayed(std::string_view line) { return !line.empty() && line.front() == '\r'; }

 private:
  std::string Drawing() const;

  const LiveLine live_;
  std::mutex mutex_;
  std::string text_;  // drawn at the moment
  bool ended_ = false;
};

}  // namespace dtrain
