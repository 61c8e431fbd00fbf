#include "trainer/ps/async_rule.h"

namespace dtrain {

void AsyncRule::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  const net::TensorView gradient = net::Tensor(message, push);
  parts_.shard.Apply(push.block(), gradient);
  if (IsLast(push.block())) {
    ++member.taken;
    if (Coordinator* coordinator = parts_.coordinator) {
      coordinator->StepApplied(member, push.examples());
      member.GrantOf(request) = coordinator->GrantNext(member);
    }
  }
  Answer(member, request, push.block());
}

}  // namespace dtrain
