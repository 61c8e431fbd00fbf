#include "trainer/ps/step_desk.h"

#include <utility>

namespace dtrain {

StepDesk::StepDesk(const Config& config, Membership& members, Standings& standings, Outbox& outbox)
    : config_(config),
      members_(members),
      standings_(standings),
      outbox_(outbox),
      grants_(config.train.steps) {}

void StepDesk::EndEarly(std::optional<int64_t> rounds) {
  grants_.EndEarly(rounds ? *rounds - applied() : 0);
  ServeWaiting();
}

uint32_t StepDesk::Grant(const Member& member, int64_t wanted) {
  const int64_t steps = grants_.Take(wanted);
  standings_.Of(member).open_steps += steps;
  return static_cast<uint32_t>(steps);
}

uint32_t StepDesk::GrantFirst(const Member& member) {
  if (sync()) return GrantNext(member);
  if (standings_.Of(member).open_steps == 0) Grant(member, config_.train.in_flight);
  return static_cast<uint32_t>(standings_.Of(member).open_steps);
}

uint32_t StepDesk::GrantNext(const Member& member) {
  if (sync()) return over() ? 0 : 1;
  return closed_ ? 0 : Grant(member, 1);
}

void StepDesk::OnNeedStep(Member& member, uint64_t request) {
  uint32_t& steps = member.GrantOf(request);
  if (steps == 0) steps = GrantNext(member);
  if (steps == 0 && !over()) {
    standings_.Of(member).step_request = request;
    return;
  }
  outbox_.Send(member.node, request, [&](auto& builder) {
    return wire::CreateGrant(builder, steps, steps == 0, static_cast<uint64_t>(applied()));
  });
}

void StepDesk::ServeWaiting() {
  for (Member& member : members_.all()) {
    uint64_t& waiting = standings_.Of(member).step_request;
    if (waiting == 0 || !member.here()) continue;
    OnNeedStep(member, std::exchange(waiting, 0));
  }
}

void StepDesk::GiveBack(const Member& member) {
  grants_.GiveBack(std::exchange(standings_.Of(member).open_steps, 0));
}

}  // namespace dtrain
