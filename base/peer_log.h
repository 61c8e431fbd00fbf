// PeerLog: warnings about single peers, of which there may be any number: one line for each peer and reason
// up to a limit, and after that their number, once a minute and at the end. Owner and thread: one loop.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace dtrain {

class PeerLog {
 public:
  static constexpr size_t kMaxLines = 20;
  static constexpr milliseconds kCountEvery{60000};

  // `warn` writes a line. `what` names the untold warnings after their number: "refused tasks".
  PeerLog(std::function<void(const std::string&)> warn, std::string what)
      : warn_(std::move(warn)), what_(std::move(what)) {}
  PeerLog(Logger& log, std::string what)
      : PeerLog([&log](const std::string& line) { log.Warning("{}", line); }, std::move(what)) {}
  ~PeerLog() { TellCount(); }
  PeerLog(const PeerLog&) = delete;
  PeerLog& operator=(const PeerLog&) = delete;

  // Writes `text`, which is of one line (ShortText), if `peer` has not been warned of for this reason and
  // there is room for a line; otherwise counts it. `peer` is any number that stands for it. `reason` tells
  // few things apart, and has no text of peers.
  void Warn(uint64_t peer, const char* reason, const std::string& text);
  // Call this now and then: tells the count when it is due.
  void Tick(TimePoint now);

 private:
  void TellCount();

  const std::function<void(const std::string&)> warn_;
  const std::string what_;
  std::set<std::pair<uint64_t, std::string>> told_;
  uint64_t untold_ = 0;
  TimePoint next_count_;
};

}  // namespace dtrain
