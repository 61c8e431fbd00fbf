#include "trainer/leader/steps.h"

#include <algorithm>
#include <utility>

namespace dtrain {

Steps::Steps(const Config& config, TaskTable& members, Outbox& outbox)
    : config_(config), members_(members), outbox_(outbox), grants_(config.train.steps) {}

void Steps::EndEarly(std::optional<int64_t> rounds) {
  grants_.EndEarly(rounds ? *rounds - applied() : 0);
  ServeWaiting();
}

// A worker never holds more than it may have in flight, whatever it asks for.
uint32_t Steps::Grant(Member& member, int64_t wanted) {
  const int64_t room = std::max<int64_t>(0, config_.train.in_flight - member.open_steps);
  const int64_t steps = grants_.Take(std::min(wanted, room));
  member.open_steps += steps;
  return static_cast<uint32_t>(steps);
}

uint32_t Steps::GrantFirst(Member& member) {
  if (sync()) return GrantNext(member);
  if (member.open_steps == 0) Grant(member, config_.train.in_flight);
  return static_cast<uint32_t>(member.open_steps);
}

uint32_t Steps::GrantNext(Member& member) {
  if (sync()) return over() ? 0 : 1;
  return closed_ ? 0 : Grant(member, 1);
}

void Steps::OnNeedStep(Member& member, uint64_t request) {
  uint32_t& steps = member.GrantOf(request);
  if (steps == 0) steps = GrantNext(member);
  if (steps == 0 && !over()) {
    member.step_request = request;
    return;
  }
  outbox_.Send(member.node, request, [&](auto& builder) {
    return wire::CreateGrant(builder, steps, steps == 0, static_cast<uint64_t>(applied()));
  });
}

void Steps::ServeWaiting() {
  for (Member& member : members_.all()) {
    uint64_t& waiting = member.step_request;
    if (waiting == 0 || !member.here()) continue;
    OnNeedStep(member, std::exchange(waiting, 0));
  }
}

void Steps::GiveBack(Member& member) { grants_.GiveBack(std::exchange(member.open_steps, 0)); }

}  // namespace dtrain
