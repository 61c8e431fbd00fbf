// What peers make a ps hold: parts without end, frames that never end, connections that say nothing, answers
// that nobody reads. Memory stays within the promise, and the run goes on.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "cmd/testing/honest_run.h"

namespace dtrain::testing {
namespace {

constexpr size_t kMib = 1 << 20;
// The promise for a message of parts without end, on a run without keys.
constexpr int64_t kEndlessMib = 64;
// The time in which an attacker of today's limits is through.
constexpr milliseconds kWrite{10000};

// Writes a block again and again, `times` at most; whether the other side has closed the connection by then.
bool IsCutOff(const RawPeer& peer, const std::string& block, int times) {
  for (int i = 0; i < times; ++i) {
    if (!peer.Write(block, kWrite)) return true;
  }
  return peer.ClosedIn(milliseconds(3000));
}

// How much comes in before a ps looks depends on when the machine lets it: the least of so many runs counts.
void CheckEndless(const std::string& block, int times) {
  constexpr int kRuns = 10;
  int64_t least = kEndlessMib + 1;
  for (int attempt = 0; attempt < kRuns && least > kEndlessMib; ++attempt) {
    HonestRun run;
    {
      const RawPeer peer(run.address());
      REQUIRE(peer.Handshake());
      CHECK(IsCutOff(peer, block, times));
      least = std::min(least, run.GrownMib());
    }
    run.CheckGoesOn();
    run.CheckEnds();
  }
  CHECK(least <= kEndlessMib);
}

TEST_CASE("attack: a message of empty parts without end costs at most 64 MiB, and its connection") {
  std::string parts;
  while (parts.size() < kMib) parts += ZmtpFrame("", true);
  CheckEndless(parts, 10);
}

TEST_CASE("attack: a message of large parts without end costs at most 64 MiB, and its connection") {
  CheckEndless(ZmtpFrame(std::string(kMib, 'x'), true), 300);
}

TEST_CASE("attack: large frames that are sent in part cost nothing, before the handshake or after it") {
  HonestRun run;
  constexpr int kPeers = 8;
  {
    const std::string part = ZmtpClaim(41 * kMib) + std::string(40 * kMib, 'x');
    std::vector<RawPeer> peers;
    for (int i = 0; i < kPeers; ++i) {
      peers.emplace_back(run.address());
      i % 2 == 0 ? peers.back().Handshake() : peers.back().Greet();
      peers.back().Write(part, milliseconds(2000));
    }
    run.CheckMemory(kPeers);
  }
  run.CheckGoesOn();
  run.CheckEnds();
}

TEST_CASE("attack: claims of 1 GiB without bytes cost nothing") {
  HonestRun run;
  constexpr int kPeers = 64;
  std::vector<RawPeer> peers;
  for (int i = 0; i < kPeers; ++i) {
    peers.emplace_back(run.address());
    REQUIRE(peers.back().Handshake());
    peers.back().Write(ZmtpClaim(uint64_t{1} << 30), kWrite);
  }
  run.CheckGoesOn();
  run.CheckMemory(kPeers);
  run.CheckEnds();
}

TEST_CASE("attack: idle connections, with a handshake and without, cost 64 KiB each at most") {
  HonestRun run;
  constexpr int kPeers = 1000;
  std::vector<RawPeer> idle, silent;
  for (int i = 0; i < kPeers; ++i) {
    idle.emplace_back(run.address());
    idle.back().Handshake();
    silent.emplace_back(run.address());
  }
  run.CheckGoesOn();
  run.CheckMemory(2 * kPeers);
  run.CheckEnds();
}

TEST_CASE("attack: strangers that ask and never read cost 64 KiB each at most") {
  HonestRun run;
  constexpr int kPeers = 100;
  {
    std::string hellos;
    HelloWords words = run.Words();
    words.settings.clear();
    const net::Message hello = EncodeHello(words);
    while (hellos.size() < kMib / 2) hellos += ZmtpFrame(hello.header.text());
    std::vector<RawPeer> peers;
    for (int i = 0; i < kPeers; ++i) {
      peers.emplace_back(run.address());
      peers.back().Handshake();
    }
    for (const RawPeer& peer : peers) peer.Write(hellos, milliseconds(20));
    run.CheckGoesOn();
    run.CheckMemory(kPeers);
  }
  run.CheckEnds();
}

// A model of 6 MiB. A member asks for its blocks, one after the other. While another worker trains, each
// answer may keep 1 MiB of another version of the weights: 32 answers in the queue of the connection and one
// that is being sent (QueueMessages in trainer/task/run_task.cc), and 18 in the ps (MaxOpenRequests).
TEST_CASE("attack: a member that pulls and never reads costs no more than its requests") {
  constexpr int64_t kAnswersMib = 32 + 1 + 18;
  HonestJob job;
  job.model = "model: {kind: mlp, inputs: 784, outputs: 10, hidden: [2000]}\n";
  job.data = "data: {train: {format: synthetic, name: digits, rows: 600}}\n";
  job.log_every = 10;
  HonestRun run(job);
  {
    Stranger member(run.address(), net::NewNodeId(), 1);
    REQUIRE(member.Join(run.Words(), kPatience));
    // The member stops asking before a ps without a bound takes all memory.
    constexpr int64_t kStopMib = 400;
    const int64_t before = MemoryKib(run.ps().pid(), "VmRSS");
    const TimePoint until = Clock::now() + std::chrono::seconds(5);
    for (uint64_t request = 1; Clock::now() < until; ++request) {
      const auto pull = [&](auto& builder) { return wire::CreatePull(builder, request % 6, request == 1); };
      if (!member.Send(request, pull)) break;
      if (MemoryKib(run.ps().pid(), "VmRSS") - before > kStopMib * 1024) break;
    }
    CHECK(run.GrownMib() <= PromisedMib(1) + kAnswersMib);
    run.CheckGoesOn();
  }
  run.CheckEnds();
}

}  // namespace
}  // namespace dtrain::testing
