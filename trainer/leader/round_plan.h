// RoundPlan: the rounds of a synchronous run, decided by ps 0 alone so that every ps applies the same
// gradients. A round takes up the open exchanges of some workers: fresh gradients, computed from the latest
// weights, whose mean is applied; and others (a gradient that is late, or a worker that begins) which are
// answered with the weights after the round and contribute nothing.
//
// A round is decided when min(aggregate, workers that can still contribute) fresh gradients are here. With
// fewer than all it is Chen et al.'s backup workers (arXiv:1604.00981). Nobody can contribute: an empty round
// answers those that wait.
//
// A worker that is lost leaves, or is absent: rounds then wait for it as for one that is computing. Those
// that have begun or returned meanwhile, and can make up for it, are answered by an empty round. Thread: ps
// 0's loop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/ps/leader.h"

namespace dtrain {

// Where a worker begins, or goes on, as the leader tells it with Start.
struct StartPoint {
  int64_t local_step = 0;  // its next one: where its data go on
  uint64_t clock = 0;      // ssp: the count of gradients that it begins with, the same at every ps
  // sync: it was lost and waited for. Its next gradient is of the weights of `version`, which every ps has.
  bool resume = false;
  uint64_t version = 0;
  // That gradient is in a round which was decided before the worker was lost. It may have reached some ps and
  // not others, so it is computed and sent once more; where it has been counted it is not counted again.
  bool again = false;
};

class RoundPlan {
 public:
  // What a checkpoint has already.
  struct Start {
    uint64_t version = 0;                // rounds with contributors
    std::vector<int64_t> contributions;  // by worker; empty: none
  };
  // `aggregate`: gradients that a round waits for. `total`: rounds with contributors, those of `start`
  // included; unset: no limit.
  RoundPlan(size_t workers, int64_t aggregate, std::optional<int64_t> total, const Start& start);

  // The worker takes part: rounds wait for it from now on.
  void Expect(int worker) { workers_[static_cast<size_t>(worker)].expected = true; }
  // An exchange of the worker is here: a gradient of the weights of `version`, or none.
  void Offer(RoundExchange exchange, std::optional<uint64_t> version);
  void Leave(int worker);
  // The worker is lost and will return: what it had offered is dropped, and rounds go on waiting for it.
  void Lose(int worker);
  // It is back. Unset: it begins like a newcomer, with an exchange that contributes nothing. Only where every
  // round takes all workers (aggregate = workers) and waits for the absent does it have a place to go on
  // from.
  std::optional<StartPoint> Return(int worker);

  // No more rounds with contributors than have been decided.
  void EndHere();

  // The next round, where one can be decided; to be called until there is none.
  std::optional<RoundDecision> Next();

  // Rounds with contributors that have been decided: the version that the next gradients are to be of.
  uint64_t version() const { return version_; }

 private:
  enum class Open { kNone, kFresh, kOther };
  struct WorkerState {
    bool expected = false;
    Open open = Open::kNone;
    uint64_t incarnation = 0;
    bool absent = false;           // lost, and waited for
    int64_t contributions = 0;     // rounds that have a gradient of it
    std::optional<uint64_t> last;  // the version that the latest of them was of
  };

  bool Over() const { return total_ && version_ >= static_cast<uint64_t>(*total_); }
  int64_t Count(Open open) const;
  bool WaitsForAbsent(int64_t fresh, int64_t under_way) const;
  RoundDecision Take(bool with_contributors);

  int64_t aggregate_;
  std::optional<int64_t> total_;
  std::vector<WorkerState> workers_;  // by worker
  uint64_t version_;
  uint64_t last_number_ = 0;
};

}  // namespace dtrain
