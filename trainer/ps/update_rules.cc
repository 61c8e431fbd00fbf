#include "base/check.h"
#include "trainer/config/config.h"
#include "trainer/ps/ssp_rule.h"
#include "trainer/ps/sync_rule.h"

namespace dtrain {
namespace {

// AsyncRule: applies each gradient when it arrives and answers at once (Hogwild-like, without a wait; the
// parameter server's eventual consistency, Li et al., OSDI 2014).
class AsyncRule : public UpdateRule {
 public:
  using UpdateRule::UpdateRule;

  void OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) override {
    ApplyAlone(member, push, message);
    if (IsLast(push.block())) {
      CountStep(member, push);
      Grant(member, request);
    }
    Answer(member, request, push.block());
  }
};

}  // namespace

std::unique_ptr<UpdateRule> MakeUpdateRule(const PsParts& parts) {
  switch (parts.config.train.mode) {
    case TrainMode::kAsync:
      return std::make_unique<AsyncRule>(parts);
    case TrainMode::kSsp:
      return std::make_unique<SspRule>(parts);
    case TrainMode::kSync:
      return std::make_unique<SyncRule>(parts);
  }
  DT_CHECK(false, static_cast<int>(parts.config.train.mode));
  return nullptr;
}

}  // namespace dtrain
