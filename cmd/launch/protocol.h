// What the relay here and the guard on a task's machine tell each other: lines of text over the standard
// input and output of one command, so that any shell, ssh or person can stand between them.
#pragma once

#include <cstddef>

namespace dtrain {

// A result may have a value for each row, worker or label.
constexpr size_t kLongestReport = 16 << 20;

// From the relay: what the task is sent, and now and then that somebody is still there.
constexpr char kAliveLine[] = "alive";
constexpr char kInterruptLine[] = "INT";
constexpr char kTerminateLine[] = "TERM";
constexpr char kHangUpLine[] = "HUP";
constexpr char kKillLine[] = "KILL";

// From the guard: the first word of a line. What a login shell prints before them is passed over; the guard
// begins with a line break, since that may have none.
constexpr char kStartedWord[] = "@started";  // the task is
constexpr char kBegunWord[] = "@begun";      // the run, as --result-fd tells it
constexpr char kResultWord[] = "@result";    // and wire JSON
constexpr char kLostWord[] = "@lost";        // and a task's name, as --lost-fd tells it
constexpr char kExitWord[] = "@exit";        // and the task's exit code; the last line
constexpr char kSignalWord[] = "@signal";    // and the signal that killed the task; the last line

}  // namespace dtrain
