#include "trainer/ps/chief_role.h"

namespace dtrain {

void ChiefRole::BeginWith(const Member& chief) {
  if (history_.term != 0 && Is(chief)) return;
  history_.chief = chief.task.index;
  ++history_.term;
}

Member* ChiefRole::Successor(const std::function<bool(const Member&)>& can) const {
  if (!HasSpareChiefs(config_)) return nullptr;
  for (int64_t index = 0; Member* member = members_.Worker(index); ++index) {
    if (member->here() && !Is(*member) && can(*member)) return member;
  }
  return nullptr;
}

// The term ends in both cases: another process may come, while the one before still writes.
void ChiefRole::PassOnTo(const Member* successor) {
  if (successor != nullptr) history_.chief = successor->task.index;
  ++history_.term;
}

}  // namespace dtrain
