// Console: standard error of this process: whole lines, and below them one live line that is drawn over and
// // over. Each change is one write, of which what nobody takes is dropped (PatientOutput).
// Owner: the command; tasks that run as threads share one. Thread: any.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace dtrain {

enum class LiveLine {
  kNone,     // not shown: nobody would see it move
  kDrawn,    // standard error is a terminal
  kRelayed,  // sent as a line of its own kind to a parent that draws it (Console::PassOn)
};

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
  // A line of a child: its live line becomes this console's.
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
