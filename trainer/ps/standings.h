// Standings: what ps 0 keeps of each task of its run, beside Membership's part: who is ready, takes part, is
// lost or done, which request of it waits for an answer, and what it has done.
// Owner: Coordinator. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "trainer/config/config.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/worker_result.h"

namespace dtrain {

// Requests are 0 when none waits.
struct Standing {
  bool ready = false;
  bool sees_directory = false;  // of a ps: it reads and writes in the checkpoint.dir of ps 0 itself
  bool takes_part = false;      // a worker that was told to start, and has not left since
  bool lost = false;            // one that took part and left before it was done
  TimePoint lost_at;
  bool done = false;
  bool evaluates = false;  // it has the rows that eval.on names
  bool told = false;       // has said Bye, or left after the end
  uint64_t ready_request = 0;
  uint64_t step_request = 0;
  uint64_t end_request = 0;
  int64_t open_steps = 0;  // granted, neither applied nor given back
  WorkerResult result;     // of a worker

  // It has left: it is not here, and nothing that it asked is answered.
  void Leave();
};

class Standings {
 public:
  // `members` outlives this and stays as long as it is.
  Standings(const Config& config, Membership& members);

  Standing& Of(const Member& member) { return standings_[IndexOf(member)]; }
  const Standing& Of(const Member& member) const { return standings_[IndexOf(member)]; }

  bool IsReady(const Member& member) const { return member.here() && Of(member).ready; }
  // Lost, and the run waits until it is back (failure.worker_lost: wait).
  bool IsAwaited(const Member& member) const { return Awaited(Of(member)); }
  // The workers that take part or are waited for.
  std::vector<uint32_t> Expected() const;
  // By worker: whether it takes part, is about to, or is waited for.
  std::vector<bool> WorkersNow() const;
  // Nobody who takes part, or is waited for, has still something to do.
  bool AllDone() const;
  // One that was lost before it was done is here again or, where lost tasks are started again, may still
  // come: nobody needs it, but its steps are not to be given up.
  bool MayReturn(TimePoint now) const;
  // Everybody who is here knows that the run is over.
  bool AllTold() const;
  // Throws PeerLost where one that is waited for was lost more than failure.wait_s ago.
  void CheckAwaited(TimePoint now) const;

 private:
  size_t IndexOf(const Member& member) const { return static_cast<size_t>(&member - members_.all().data()); }
  bool Awaited(const Standing& standing) const {
    return standing.lost && config_.failure.worker_lost == WorkerLost::kWait;
  }

  const Config& config_;
  Membership& members_;
  std::vector<Standing> standings_;  // as Membership::all()
};

}  // namespace dtrain
