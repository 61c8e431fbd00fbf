// Console and TimedOutput: standard error of this process, as whole lines with one live line below them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace dtrain {

// TimedOutput: writes to a descriptor that people read, such as standard error. The reader may stop reading
// (a pager, a terminal after Ctrl-S, a program that hangs); the run goes on all the same. A write waits up to
// `timeout` for room. After that, lines are dropped and counted until there is room again. Owner: the
// process (StandardError()). Thread: any.
class TimedOutput {
 public:
  // `fd` stays the caller's and outlives this object.
  TimedOutput(int fd, milliseconds timeout);
  ~TimedOutput();
  TimedOutput(const TimedOutput&) = delete;
  TimedOutput& operator=(const TimedOutput&) = delete;

  // Writes `text`, which is whole lines. Returns after `timeout` at the latest. The first line that is
  // dropped may have been written in part; the next one then begins on a line of its own. When the reader has
  // closed its end, lines are dropped without being counted.
  void Write(std::string_view text);

  // Returns the number of lines dropped since the last call; 0 as long as there is no room.
  int64_t TakeMissing();

 private:
  bool HasRoom(milliseconds timeout) const;
  // Returns the number of bytes written.
  size_t WritePart(std::string_view text, milliseconds timeout);

  const int given_;
  const int fd_;  // the same file, opened so that writes do not wait
  const milliseconds timeout_;
  std::mutex mutex_;
  bool stalled_ = false;
  bool cut_ = false;  // the last write did not end with a line end
  int64_t missing_ = 0;
};

// Returns standard error of this process. It waits up to 3 s, which is less than peers wait for a silent
// task.
TimedOutput& StandardError();

// Returns the line that is written in place of dropped ones: "3 lines are missing here: ...".
std::string MissingText(int64_t lines);

// The size of a terminal in characters; both 0: there is none.
struct TerminalSize {
  int columns = 0;
  int rows = 0;
};
TerminalSize SizeOfTerminal(int fd);

enum class Colour { kBold, kRed, kYellow };
// Whether text on this descriptor may be coloured: it is a terminal, and NO_COLOR is not set.
bool ShowsColours(int fd);
// Returns the text with the codes that colour it on a terminal. A line end at its end stays the last.
std::string Coloured(Colour colour, std::string_view text);

// How the live line is shown.
enum class LiveLine {
  kNone,     // not shown
  kDrawn,    // standard error is a terminal
  kRelayed,  // sent as a marked line to the parent, whose console draws it (Console::PassOn)
};

// Console: whole lines on standard error, and below them one live line that is redrawn in place. Each change
// is one write of a TimedOutput. Owner: the command; tasks that run as threads share one. Thread: any.
class Console {
 public:
  explicit Console(LiveLine live) : live_(live) {}
  ~Console() { End(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  static bool IsTerminal();

  bool live() const { return live_ != LiveLine::kNone; }
  // Replaces the live line; an empty text removes it. `text` is ASCII without control characters. It is cut
  // off at the width of the terminal.
  void SetLive(std::string_view text);
  // Writes `line`, which ends with its newline. A terminal shows errors of a log in red and warnings in
  // yellow.
  void WriteLine(std::string_view line);
  // Writes a line of a child process. A live line of the child becomes this console's live line.
  void PassOn(std::string_view line);
  // Removes the live line. Later calls of SetLive() have no effect.
  void End();

  // Whether a line of a child process is its live line.
  static bool IsRelayed(std::string_view line) { return !line.empty() && line.front() == '\r'; }

 private:
  std::string Drawing() const;

  const LiveLine live_;
  std::mutex mutex_;
  std::string text_;  // the live line as drawn now
  bool ended_ = false;
};

}  // namespace dtrain
