// LeaderFixture: the Registrar and the LocalLeader of ps 0; the test plays all other tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "trainer/leader/local_leader.h"
#include "trainer/ps/registrar_test_util.h"

namespace dtrain {

struct LeaderFixture : RegistrarFixture {
  explicit LeaderFixture(const Config& of)
      : RegistrarFixture(of, [](const LeaderParts& parts) { return std::make_unique<LocalLeader>(parts); }) {}
  LocalLeader& local() { return static_cast<LocalLeader&>(*leader); }

  // A request of `member`, taken for the first time.
  template <typename Build>
  void Ask(Member& member, Build&& build) {
    const net::Message message = encoder.Finish({0, 0, ++request}, build(encoder.Begin()));
    CHECK(leader->OnRequest(member, *net::Decode(message), /*repeated=*/false));
  }
  // Every task is here and ready.
  void AllReady() {
    AllJoin();
    for (Member& member : members.all()) {
      Ask(member, [](auto& builder) { return wire::CreateReady(builder); });
    }
  }
  // Also gives every ps its first weights.
  void Begin() {
    AllReady();
    local().Begin(StartedFrom());
  }
  // How many messages of this kind `member` was sent.
  int64_t Sent(const Member& member, wire::Body kind) const {
    return std::count_if(channel.sent.begin(), channel.sent.end(), [&](const FakeChannel::Sent& sent) {
      return sent.to == member.node && sent.envelope().body_type() == kind;
    });
  }

  uint64_t request = 0;
};

}  // namespace dtrain
