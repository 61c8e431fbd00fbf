// RoundPlan: decides the rounds of a synchronous run, on ps 0 alone, so that every ps applies the same
// gradients. A round takes up the open exchanges of some workers. Its contributors are fresh gradients, of
// the latest weights; their mean is applied. The others (a late gradient, a worker that begins) are only
// answered with the weights after the round.
//
// A round is decided when min(aggregate, workers that can still contribute) fresh gradients are here; with
// fewer than all workers these are the backup workers of Chen et al. (arXiv:1604.00981). When no worker can
// contribute, an empty round answers those that wait.
//
// A lost worker either leaves, or is absent; rounds wait for an absent worker as for one that is computing.
// When only absent workers are missing, an empty round answers the workers that have begun or returned, so
// that they can contribute instead.
// Thread: the loop of ps 0.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/ps/leader.h"

namespace dtrain {

// Where a worker begins, or goes on. The leader sends it with Start.
struct StartPoint {
  int64_t local_step = 0;  // the next step, at which the worker's data goes on
  uint64_t clock = 0;      // ssp: the worker's first count of gradients, the same on every ps
  // sync: the worker was lost and waited for. Its next gradient is of `version`, which every ps has.
  bool resume = false;
  uint64_t version = 0;
  // That gradient is already in a round, decided before the worker was lost. It may have reached only some
  // ps, so the worker computes and sends it once more; a ps that has counted it does not count it again.
  bool again = false;
};

class RoundPlan {
 public:
  // The rounds that a checkpoint holds.
  struct Start {
    uint64_t version = 0;                // rounds with contributors
    std::vector<int64_t> contributions;  // by worker; empty: none
  };
  // `aggregate`: the gradients that a round waits for. `total`: the number of rounds with contributors, those
  // of `start` included; unset: no limit.
  RoundPlan(size_t workers, int64_t aggregate, std::optional<int64_t> total, const Start& start);

  // The worker takes part: rounds wait for it from now on.
  void Expect(int worker) { workers_[static_cast<size_t>(worker)].expected = true; }
  // Takes an exchange of the worker: a gradient of the weights of `version`, or none.
  void Offer(RoundExchange exchange, std::optional<uint64_t> version);
  void Leave(int worker);
  // The worker is lost and will return: drops what it offered; rounds go on waiting for it.
  void Lose(int worker);
  // The worker is back: where it goes on. Unset: it begins like a newcomer, with an exchange that contributes
  // nothing. It can go on only when rounds take all workers (aggregate = workers) and wait for absent ones.
  std::optional<StartPoint> Return(int worker);

  // Decides no more rounds with contributors.
  void EndHere();

  // The next round, if one can be decided. Call it until it returns none.
  std::optional<RoundDecision> Next();

  // The number of decided rounds with contributors, the version of the next gradients.
  uint64_t version() const { return version_; }

  template <typename Archive>
  void State(Archive& archive) {
    archive(total_, workers_, version_, last_number_);
  }

 private:
  enum class Open { kNone, kFresh, kOther };
  struct WorkerState {
    bool expected = false;
    Open open = Open::kNone;
    uint64_t incarnation = 0;
    bool absent = false;           // lost, and rounds wait for it
    int64_t contributions = 0;     // the rounds that have a gradient of it
    std::optional<uint64_t> last;  // the version of the weights of its latest gradient in a round
    template <typename Archive>
    void State(Archive& archive) {
      archive(expected, open, incarnation, absent, contributions, last);
    }
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
