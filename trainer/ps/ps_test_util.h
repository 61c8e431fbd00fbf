// What a ps consists of, without its loop, for tests that move it by hand.
#pragma once

#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/codec.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/ps/host_shard.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/update_rule.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {

// A rule whose rounds a test decides and finishes.
class FakeRule : public UpdateRule {
 public:
  using UpdateRule::UpdateRule;
  void OnPush(Member&, uint64_t, const wire::Push&, net::Message&) override {}
  bool HasFinished(uint64_t round) const override { return round <= finished; }
  uint64_t HoldRounds() override {
    held = true;
    return decided;
  }
  void GoOn() override { held = false; }
  void CloseRounds() override { closed = true; }

  uint64_t decided = 0;
  uint64_t finished = 0;
  bool held = false;
  bool closed = false;
};

// All that is kept: the weights, then each slot, each of the whole range.
inline std::vector<std::vector<float>> ValuesOf(const RangeCut& cut, size_t slots) {
  std::vector<std::vector<float>> values(1 + slots);
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  for (int64_t piece = 0; piece < cut.piece_count(); ++piece) {
    const RangeCut::Piece read = *cut.Read(piece, scratch.data());
    const auto* const begin = reinterpret_cast<const float*>(read.bytes.data);
    std::vector<float>& slot = values[static_cast<size_t>(cut.At(piece).slot)];
    slot.insert(slot.end(), begin, begin + read.bytes.size / sizeof(float));
  }
  return values;
}

struct PsFixture {
  explicit PsFixture(const Config& of, int ps = 0)
      : config(of),
        layout(PlaceVariables(ModelVariables(config.model), static_cast<int>(config.cluster.ps.size()),
                              config.placement)),
        shard(config, layout, ps),
        members(config, {Role::kPs, ps}),
        outbox(channel),
        rule({config, shard, members, outbox, nullptr, [] {}}) {
    shard.Initialise();
  }
  // `build(builder)` returns the offset of the body's table.
  template <typename Build>
  net::Message Make(Build&& build) {
    flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
    return encoder.Finish({}, build(builder));
  }
  // A gradient of ones.
  void Update() {
    for (int64_t block = 0; block < shard.block_count(); ++block) {
      const std::vector<float> ones(shard.bytes(block) / sizeof(float), 1);
      shard.Apply(block, {reinterpret_cast<const std::byte*>(ones.data()), shard.bytes(block)});
    }
  }

  Config config;
  Layout layout;
  HostShard shard;
  Membership members;
  FakeChannel channel;
  Outbox outbox;
  net::Encoder encoder;
  FakeRule rule;
};

// Calls `poll` until it gives what converts to true, and returns that. What it polls for is done by a thread.
template <typename Poll>
auto PollUntil(Poll&& poll) {
  constexpr std::chrono::seconds kHangs{60};
  const TimePoint deadline = Clock::now() + kHangs;
  while (true) {
    if (auto done = poll()) return done;
    DT_CHECK(Clock::now() < deadline);
    std::this_thread::yield();
  }
}

}  // namespace dtrain
