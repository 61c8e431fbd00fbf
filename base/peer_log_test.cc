#include "base/peer_log.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/testing/files.h"

namespace dtrain {
namespace {

struct Fixture {
  std::string Logged() const { return testing::FileContent(log.path()); }
  size_t Lines() const {
    const std::string text = Logged();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  Logger log{"ps 0", LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}};
  std::optional<PeerLog> peers{std::in_place, log, "dropped frames"};
  TimePoint now = Clock::now();
};

TEST_CASE("peer log: one line for each peer and reason, and at the end the number of the others") {
  Fixture f;
  for (int again = 0; again < 5; ++again) {
    f.peers->Warn(1, "damaged", "damaged, from 1");
    f.peers->Warn(1, "late", "late, from 1");
    f.peers->Warn(2, "damaged", "damaged, from 2");
  }
  CHECK(f.Lines() == 3);
  f.peers.reset();
  CHECK(f.Lines() == 4);
  CHECK(f.Logged().find("12 more dropped frames") != std::string::npos);
}

TEST_CASE("peer log: however many peers there are, there is a limit to the lines, and a count each minute") {
  Fixture f;
  f.peers->Tick(f.now);
  for (uint64_t peer = 0; peer < 1000; ++peer) f.peers->Warn(peer, "damaged", "damaged");
  CHECK(f.Lines() == PeerLog::kMaxLines);
  f.peers->Tick(f.now + PeerLog::kCountEvery - milliseconds(1));
  CHECK(f.Lines() == PeerLog::kMaxLines);
  f.peers->Tick(f.now + PeerLog::kCountEvery);
  f.peers->Tick(f.now + PeerLog::kCountEvery);
  CHECK(f.Lines() == PeerLog::kMaxLines + 1);
  CHECK(f.Logged().find("980 more dropped frames") != std::string::npos);
  f.peers.reset();  // nothing more to tell
  CHECK(f.Lines() == PeerLog::kMaxLines + 1);
}

}  // namespace
}  // namespace dtrain
