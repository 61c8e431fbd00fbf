// ChiefRole: which worker is the chief, and the number of its term. What a chief says that was given up, and
// still lives, is told by its term from what the present one says.
// Owner: Coordinator; what it knows outlives a rollback. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <functional>

#include "trainer/config/config.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/run_history.h"

namespace dtrain {

class ChiefRole {
 public:
  ChiefRole(const Config& config, Membership& members, RunHistory& history)
      : config_(config), members_(members), history_(history) {}

  bool Is(const Member& member) const {
    return member.task.role == Role::kWorker && member.task.index == history_.chief;
  }
  Member& member() { return members_.At({Role::kWorker, history_.chief}); }
  int index() const { return history_.chief; }
  uint32_t term() const { return history_.term; }

  // Whether the run cannot begin without this task, as its chief: worker 0 of a run that never had begun, or
  // where no other worker may take its place.
  bool NeedsToBegin(const Member& member) const {
    const bool first = member.task.role == Role::kWorker && member.task.index == 0;
    return first && !(history_.begun && HasSpareChiefs(config_));
  }
  // The run begins, or goes on from a checkpoint, with this chief.
  void BeginWith(const Member& chief);
  // The worker of the lowest index that may take the place of the chief; null: there is none.
  Member* Successor(const std::function<bool(const Member&)>& can) const;
  // The chief is lost. Null: it keeps its role for when it is back.
  void PassOnTo(const Member* successor);

 private:
  const Config& config_;
  Membership& members_;
  RunHistory& history_;
};

}  // namespace dtrain
