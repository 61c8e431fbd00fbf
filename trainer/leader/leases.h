// Leases: the leader's part in data.split: dynamic. It leases batches to the workers before they run out of
// them (lease_ledger.h): about as many as a worker takes in a second. Of a worker that is gone it first has
// every ps say what it has taken, and then leases the rest to the others. For a checkpoint it has the workers
// pause, so that every ps has the same steps. With the other splits all of this is off. Owner: LocalLeader.
// Thread: the ps loop. docs/wire.md: Lease, NeedStep, Incarnation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/order/lease_ledger.h"
#include "trainer/peer/lease_message.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/task_table.h"

namespace dtrain {

class Leases {
 public:
  // The arguments outlive this.
  Leases(const Config& config, const Layout& layout, TaskTable& members, RunHistory& history, Outbox& outbox,
         Logger& log);
  // Called when batches are free that a waiting worker may take, or it is known what a worker that was gone
  // had done: it may start now.
  void set_on_free(std::function<void()> on_free) { on_free_ = std::move(on_free); }

  bool on() const { return ledger_.has_value(); }
  // The run goes on with what `plan` has left of data of so many rows. Member::taken must have its values.
  void BeginAt(const DataPlan& plan, std::optional<int64_t> train_rows);

  // Why this worker cannot take part; empty: it can. All have as many devices, so that any may go on with
  // what another one leaves.
  std::string WhyNot(const Member& worker) const;
  // A worker is told to start: leases it its first batches. From now on its process may push.
  void Start(const Member& worker);
  // With the answer to a gradient: leases more if it will need them soon.
  void Refill(const Member& worker);
  // A worker without a step asks: whether it has a batch for one now.
  bool Ask(const Member& worker);
  // The newest lease, for an answer, until the worker must know it.
  net::WeightsHead::Lease NewestFor(const Member& worker) const;
  flatbuffers::Offset<WireLeases> Encode(const Member& worker, flatbuffers::FlatBufferBuilder& builder) const;
  // Whether the worker may push: it has a batch.
  bool Has(const Member& worker) const { return !on() || Left(worker) > 0; }

  // ps 0 has counted its step, whose gradient is of so many rows, or was in the weights before (0).
  void Taken(const Member& worker, int64_t rows);
  // The same; it came too late for its round, and its batches are free again.
  void Dropped(const Member& worker);
  // Every ps has all gradients of the worker, which takes no step before it is granted one.
  void Pauses(const Member& worker);
  void GoesOn(const Member& worker) { pauses_[Index(worker)] = false; }
  // It takes no more steps: what it was leased is free.
  void Release(const Member& worker);

  // Its process is gone, or begins anew. Others get its batches when every ps has said what it has.
  void Lost(Member& worker);
  // Whether what its last process has done is not known yet: it cannot start.
  bool IsUnknown(const Member& worker) const { return on() && gone_[Index(worker)].has_value(); }
  void OnTaken(const Member& ps, const wire::TakenState& state);
  void Tick(TimePoint now);

  // For a checkpoint: grants no steps from now on. Returns whether every ps has all steps that were granted;
  // not while a step is in the weights of some ps only, unless `at_end`: no more steps are granted in this
  // run.
  bool Hold(bool at_end);
  void GoOn() { held_ = false; }
  bool held() const { return held_; }

  // To read it, call BeginAt() first.
  template <typename Archive>
  void State(Archive& archive) {
    if (on()) archive(devices_, *ledger_, processes_, gone_, paces_, pauses_, held_);
  }

  // Every batch of all epochs is in the weights.
  bool over() const { return on() && ledger_->over(); }
  // What was taken, for a checkpoint.
  TakenSteps Taken() const { return on() ? ledger_->Taken() : TakenSteps(); }

 private:
  struct Process {
    uint64_t incarnation = 0;  // that was told to start; 0: none
    int64_t first_step = 0;
    template <typename Archive>
    void State(Archive& archive) {
      archive(incarnation, first_step);
    }
  };
  // A process that is gone, and what each ps has taken of it as far as it has said so.
  struct Gone {
    uint32_t worker = 0;
    Process process;
    std::vector<std::optional<TakenOfProcess>> by_ps;
    template <typename Archive>
    void State(Archive& archive) {
      archive(worker, process, by_ps);
    }
  };
  // How fast a worker takes steps, and its newest lease.
  struct Pace {
    int64_t taken = 0;  // when it was leased the newest
    TimePoint at;
    int64_t steps = 0;     // of the newest
    int64_t end = 0;       // its leases end before this local step
    int64_t known_at = 0;  // it knows the newest when it has taken so many steps
    template <typename Archive>
    void State(Archive& archive) {
      archive(taken, at, steps, end, known_at);
    }
  };

  static size_t Index(const Member& worker) { return static_cast<size_t>(worker.task.index); }
  int64_t Left(const Member& worker) const { return paces_[Index(worker)].end - worker.taken; }
  const Lease* Deal(const Member& worker, bool asks);
  int64_t MaxInStep(const Member& worker) const;
  void TellEnded();
  void OrderReports(const Gone& gone) const;
  void TakeReport(size_t worker, size_t ps, const TakenOfProcess& count);
  void Resolve(size_t worker);

  const Config& config_;
  const Layout& layout_;
  TaskTable& members_;
  RunHistory& history_;
  Outbox& outbox_;
  Logger& log_;
  std::function<void()> on_free_;
  std::optional<LeaseLedger> ledger_;
  // By worker.
  std::vector<Process> processes_;
  std::vector<std::optional<Gone>> gone_;
  std::vector<Pace> paces_;
  std::vector<bool> pauses_;
  TimePoint next_order_;
  int64_t devices_ = 1;  // of a worker
  const bool in_step_;   // sync: a round waits for all workers
  const int64_t ahead_;  // how many steps a worker must know behind the one that ps 0 has taken
  bool held_ = false;
};

}  // namespace dtrain
