// LeaseLedger: which batches are leased to which worker, which are taken, and which are free (data.split:
// dynamic). At most two epochs are open: workers that find nothing free in the first begin the second, and
// the first ends when every ps has all of its batches. Batches of an epoch are numbered among those that the
// plan of the run has left. Its memory is as large as the workers and the lost leases are many, whatever the
// data. Owner: the leader. Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/order/data_plan.h"
#include "trainer/order/lease.h"
#include "trainer/order/order.h"

namespace dtrain {

class LeaseLedger {
 public:
  // `spec`: the order of the data; its worker does not count. `epochs`: unset: without end. `remaining`: what
  // the plan of the run has left; null: all. `taken`: by worker, the local steps that it begins with.
  LeaseLedger(const OrderSpec& spec, std::optional<int64_t> epochs,
              std::shared_ptr<const RemainingData> remaining, const std::vector<int64_t>& taken);

  // Leases to the worker what follows its leases: about `steps` steps, at most 1 / (2 * workers) of the
  // batches that are free in the epoch, at least `min_steps`, and no more than one free run. Null: nothing is
  // free now. While a step of a lost worker waits that some ps have, nothing else is leased: with `alone` the
  // first of those steps is, in a lease of its own (Lease::taken), and nothing without. Valid until the next
  // call.
  const Lease* Deal(int worker, int64_t steps, int64_t min_steps, bool alone);

  // The batches that are free in the first epoch that has any.
  int64_t FreeBatches() const;
  // The leases of a worker, the oldest first, from the one with its first step that is not confirmed.
  const std::deque<Lease>& Of(int worker) const;
  // Its leased steps that ps 0 has not taken.
  int64_t Left(int worker) const;
  // The next one of these; null: it has none left.
  const Lease* Next(int worker) const;

  // ps 0 has taken its next step, whose gradient is of `rows` rows. `rows` of a step whose gradient ps 0 had
  // before (Lease::taken) are 0.
  void Taken(int worker, int64_t rows) {
    Worker& of = workers_[static_cast<size_t>(worker)];
    if (of.taken >= of.now_end) SetNow(&of);
    *of.now_rows += rows;
    ++of.taken;
  }
  // The same, and the gradient is in no weights: it came too late for its round. Its batches are free again.
  void Dropped(int worker);
  // Every ps has all of the worker's steps before this local step, none of which is above the taken ones.
  // They count when they are all of a lease.
  void Confirm(int worker, int64_t step) {
    Worker& of = workers_[static_cast<size_t>(worker)];
    if (step >= of.first_end) ConfirmLeases(&of, step);
  }

  // What a ps has taken of a worker's process.
  struct TakenByPs {
    int64_t steps = 0;    // it has all before this local step
    uint32_t blocks = 0;  // and so many blocks of this one
    uint32_t of = 0;      // blocks of a whole gradient for this ps
  };
  // The worker is gone, and no ps takes anything more of it. Of its steps that are not in the weights of
  // every ps, those that no ps has are free again; those that some have are leased again, alone, for the
  // others. `keeps`: all of them stay its own instead, from the local step on that ps 0 has not taken.
  // Returns how many steps are leased again.
  int64_t Lose(int worker, const std::vector<TakenByPs>& by_ps, bool keeps);
  // Whether a step that some ps have waits, or is leased and not confirmed.
  bool HasTorn() const;

  // Every batch of all epochs is in the weights of every ps.
  bool over() const;
  // The epochs of which that is true, with those of the plan.
  int64_t epochs_done() const;
  struct EndedEpoch {
    int64_t epoch = 0;  // from 0
    int64_t rows = 0;   // that were taken in this run
    int64_t of = 0;     // that the plan had left of it
    bool whole = true;  // which is all
    template <typename Archive>
    void State(Archive& archive) {
      archive(epoch, rows, of, whole);
    }
  };
  // Those that have ended since the last call.
  std::vector<EndedEpoch> TakeEnded();
  bool has_ended() const { return !ended_.empty(); }
  // All but the arguments of the constructor.
  template <typename Archive>
  void State(Archive& archive) {
    archive(workers_, open_, next_epoch_, done_batches_, torn_, ended_);
  }
  // The batches that ps 0 has taken, for a checkpoint. With steps that some ps have it has those too.
  TakenSteps Taken() const;

 private:
  struct Epoch {
    int64_t number = 0;
    int64_t batches = 0;              // that the plan has left
    std::map<int64_t, int64_t> free;  // runs of batches, by their first one: their ends
    int64_t free_batches = 0;
    int64_t undone = 0;  // batches that are not in the weights of every ps
    int64_t rows = 0;    // that were taken
    template <typename Archive>
    void State(Archive& archive) {
      archive(number, batches, free, free_batches, undone, rows);
    }
  };
  struct Worker {
    int64_t confirmed = 0;        // the local step before which every ps has all
    int64_t taken = 0;            // and ps 0
    int64_t end = 0;              // with which the next lease begins
    std::deque<Lease> leases;     // of the steps from `confirmed` on
    std::deque<int64_t> dropped;  // the steps of these that are in no weights
    int64_t first_end = 0;        // the step behind the first of these leases; without one as large as can be
    int64_t now_end = 0;          // behind the one of step `taken`, and the rows of its epoch; 0: not known
    int64_t* now_rows = nullptr;
    template <typename Archive>
    void State(Archive& archive) {
      archive(confirmed, taken, end, leases, dropped, first_end);
      if (!archive.reads()) return;
      now_end = 0;
      now_rows = nullptr;
    }
  };
  // The batches [first, end) of a lease.
  struct Run {
    int64_t first = 0;
    int64_t end = 0;
  };

  static Worker Begun(int64_t step);
  int64_t EndOf(const Lease& lease) const { return lease.step + lease.Steps(spec_.devices); }
  const Lease& LeaseOf(const Worker& worker, int64_t step) const;
  void SetNow(Worker* worker);
  void SetFirst(Worker* worker) const;
  void ConfirmLeases(Worker* worker, int64_t step);
  Run BatchesOf(const Lease& lease, int64_t begin, int64_t end) const;
  Epoch& EpochOf(int64_t number);
  int64_t BatchesLeft(int64_t epoch) const;
  int64_t RowsLeft(int64_t epoch) const;
  void Open();
  void CloseDone();
  Epoch* WithFree();
  void Free(int64_t epoch, Run run);
  int64_t BatchesToLease(const Epoch& epoch, const Run& free, int64_t steps, int64_t min_steps) const;
  const Lease* Give(Lease lease, Worker* worker) const;

  const OrderSpec spec_;
  const std::optional<int64_t> epochs_;
  const std::shared_ptr<const RemainingData> remaining_;  // null: all
  std::vector<Worker> workers_;
  std::deque<Epoch> open_;         // two at most
  int64_t next_epoch_ = 0;         // behind these
  int64_t done_batches_ = 0;       // of epochs that have ended in this run
  std::deque<Lease> torn_;         // steps that some ps have and nobody has leased
  std::vector<EndedEpoch> ended_;  // for TakeEnded()
};

}  // namespace dtrain
