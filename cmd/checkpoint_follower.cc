#include "cmd/checkpoint_follower.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "cmd/poll_timeout.h"
#include "trainer/checkpoint/checkpoint_names.h"

namespace dtrain {
namespace {

constexpr milliseconds kLookEvery{500};

}  // namespace

int CheckpointFollower::signal() {
  if (signal_ == 0) signal_ = signals_.Take();
  return signal_;
}

int64_t CheckpointFollower::PassOver() {
  const std::vector<ListedCheckpoint> listed = List();
  if (!listed.empty()) last_ = listed.front().sequence;
  return static_cast<int64_t>(listed.size());
}

std::optional<std::string> CheckpointFollower::Next(milliseconds patience) {
  const TimePoint deadline = Clock::now() + patience;
  while (signal() == 0) {
    if (const std::optional<ListedCheckpoint> next = OldestNew()) {
      last_ = next->sequence;
      return directory_.PathOf(next->name);
    }
    const TimePoint now = Clock::now();
    if (now >= deadline) break;
    pollfd wake{signals_.fd(), POLLIN, 0};
    poll(&wake, 1, PollTimeout(std::min(deadline, now + kLookEvery)));
  }
  return std::nullopt;
}

std::optional<ListedCheckpoint> CheckpointFollower::OldestNew() {
  std::vector<std::string> names = directory_.Names();
  if (names == names_) return std::nullopt;
  std::optional<ListedCheckpoint> oldest;
  for (const ListedCheckpoint& each : List()) {  // the newest first
    if (each.sequence > last_ && !IsReplacedName(each.name)) oldest = each;
  }
  if (!oldest) names_ = std::move(names);
  return oldest;
}

std::vector<ListedCheckpoint> CheckpointFollower::List() {
  std::vector<std::string> unreadable;
  std::vector<ListedCheckpoint> listed = directory_.List(&unreadable);
  for (const std::string& line : unreadable) {
    const std::string warning = fmt::format("warning: {}/{}; skipped", directory_.path(), line);
    if (told_.insert(warning).second) errors_.Print(warning);
  }
  // The newest is never removed alone: then all were, and a new run counts from 1.
  if (unreadable.empty() && !listed.empty() && listed.front().sequence < last_) last_ = 0;
  return listed;
}

}  // namespace dtrain
