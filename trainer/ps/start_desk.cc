#include "trainer/ps/start_desk.h"

#include <string>
#include <vector>

#include "base/fault_point.h"
#include "trainer/peer/form_message.h"

namespace dtrain {

// There is nothing left to do for it, and nobody waits for its results.
bool StartDesk::ComesTooLate(const Member& member, bool over) const {
  if (member.task.role != Role::kWorker) return false;
  const Standings& standings = parts_.standings;
  return over || (parts_.steps.over() && !standings.Of(member).takes_part && !standings.IsAwaited(member));
}

void StartDesk::Tell(Member& member, uint64_t request, bool over) {
  Standing& standing = parts_.standings.Of(member);
  standing.ready_request = 0;
  if (ComesTooLate(member, over)) {
    standing.told = false;
    return SendOver(member, request);
  }
  const bool worker = member.task.role == Role::kWorker;
  StartPoint point;
  if (worker) {
    standing.takes_part = true;
    standing.lost = false;
    if (!over) standing.done = false;  // it left, and has more to do after all
    point = start_point_(member);
  }
  auto steps = static_cast<uint32_t>(standing.open_steps);
  if (worker && !standing.done) steps = point.again ? 1 : parts_.steps.GrantFirst(member);
  SendStart(member, request, steps, point);
}

// Once a step was applied whoever starts joins those that are under way; until then those who start together
// are named. One that is lost already is among them when rounds wait for it.
void StartDesk::SendStart(const Member& member, uint64_t request, uint32_t steps, const StartPoint& point) {
  const bool first = parts_.steps.applied() <= parts_.positions.first_step();
  const std::vector<uint32_t> together = first ? parts_.standings.Expected() : std::vector<uint32_t>();
  const std::string dealt = parts_.positions.DealtText();
  InputForm form;
  form.scale = parts_.history.scale;
  const KnownCheckpoint newest = parts_.history.Newest();
  const FaultScope fault("start.begin");
  parts_.outbox.Send(member.node, request, [&](auto& builder) {
    const auto dealt_text = dealt.empty() ? 0 : builder.CreateString(dealt);
    const auto inputs = form.scale.shift.empty() ? 0 : EncodeForm(form, builder);
    const auto checkpoint = newest.where.empty() ? 0 : builder.CreateString(newest.where);
    return wire::CreateStart(builder, steps, first && parts_.history.from_initial,
                             static_cast<uint64_t>(point.local_step), builder.CreateVector(together),
                             point.clock, point.resume, point.version, false, dealt_text, inputs,
                             static_cast<uint64_t>(parts_.history.data.rows), parts_.history.data.labels,
                             checkpoint, static_cast<uint64_t>(newest.step));
  });
}

void StartDesk::SendOver(const Member& member, uint64_t request) {
  parts_.log.Info("{} came when the run was over", TaskName(member.task));
  const FaultScope fault("start.begin");
  parts_.outbox.Send(member.node, request, [&](auto& builder) {
    return wire::CreateStart(builder, 0, false, static_cast<uint64_t>(member.taken), 0, 0, false, 0, true);
  });
}

}  // namespace dtrain
