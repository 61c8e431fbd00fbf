// AsyncRule: each gradient is applied when it arrives and answered at once (Hogwild-like, without a wait; the
// parameter server's eventual consistency, Li et al., OSDI 2014).
#pragma once

#include "trainer/ps/update_rule.h"

namespace dtrain {

class AsyncRule : public UpdateRule {
 public:
  using UpdateRule::UpdateRule;
  void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) override;
};

}  // namespace dtrain
