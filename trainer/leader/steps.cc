#include "trainer/leader/steps.h"

#include <algorithm>
#include <utility>

#include "base/fault_point.h"

namespace dtrain {

Steps::Steps(const Config& config, TaskTable& members, Outbox& outbox, Leases& leases,
             std::function<uint64_t(Member&)> clock_of)
    : config_(config),
      members_(members),
      outbox_(outbox),
      leases_(leases),
      clock_of_(std::move(clock_of)),
      grants_(config.train.steps) {}

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
  if (leases_.held() || !leases_.Has(member)) return 0;
  leases_.GoesOn(member);
  if (sync()) return GrantNext(member);
  if (member.open_steps == 0) Grant(member, config_.train.in_flight);
  return static_cast<uint32_t>(member.open_steps);
}

uint32_t Steps::GrantNext(Member& member) {
  if (sync()) return over() ? 0 : 1;
  return closed_ || leases_.held() || !leases_.Has(member) ? 0 : Grant(member, 1);
}

// A worker that waits for batches would hold up those that have them, in sync and ssp: it enters again later.
void Steps::OnNeedStep(Member& member, uint64_t request, bool paused) {
  uint32_t& steps = member.GrantOf(request);
  if (steps == 0 && !over() && !leases_.on()) steps = GrantNext(member);
  if (steps == 0 && !over() && leases_.on() && !closed_ && leases_.Ask(member)) steps = GrantFirst(member);
  const bool pauses = leases_.on() && config_.train.mode != TrainMode::kAsync && !paused;
  if (steps > 0 || over() || pauses) return Answer(member, request, steps, pauses && steps == 0 && !over());
  member.step_request = request;
  member.step_paused = paused;
}

void Steps::Answer(Member& member, uint64_t request, uint32_t steps, bool pause) {
  const bool ended = steps == 0 && !pause;
  const uint64_t clock = leases_.on() && steps > 0 ? clock_of_(member) : 0;
  const FaultScope fault("leader.grant");
  outbox_.Answer(member.node, request, [&](auto& builder) {
    const auto leases = leases_.Encode(member, builder);
    return wire::CreateGrant(builder, steps, ended, static_cast<uint64_t>(applied()), false, 0, leases, pause,
                             clock);
  });
}

void Steps::ServeWaiting() {
  for (Member& member : members_.all()) {
    uint64_t& waiting = member.step_request;
    if (waiting == 0 || !member.here()) continue;
    OnNeedStep(member, std::exchange(waiting, 0), member.step_paused);
  }
}

bool Steps::AllWait() const {
  return std::none_of(members_.all().begin(), members_.all().end(), [](const Member& member) {
    return member.is_worker() && member.here() && member.takes_part && !member.done &&
           member.step_request == 0;
  });
}

void Steps::GiveBack(Member& member) { grants_.GiveBack(std::exchange(member.open_steps, 0)); }

}  // namespace dtrain
