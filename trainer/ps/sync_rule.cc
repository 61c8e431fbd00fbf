#include "trainer/ps/sync_rule.h"

#include <algorithm>
#include <utility>

#include "trainer/config/config.h"
#include "trainer/peer/conversation.h"
#include "trainer/ps/replica_link.h"

namespace dtrain {

namespace {

// Returns the position (InOrder) of the block with which a round may take up an exchange. If a round takes
// all workers that are here, this is the first block: a ps then applies and answers the blocks one by one as
// they come. In three cases it is the last block that a worker sends without an answer. Backup workers: a
// round takes the gradients that are complete first. clip_norm: the norm needs all blocks. A round that waits
// for a lost worker: if it was half applied, no checkpoint could be made until that worker is back.
int64_t OfferedAt(const PsParts& parts) {
  const TrainConfig& train = parts.config.train;
  const auto workers = static_cast<int64_t>(parts.config.cluster.worker.size());
  const bool of_all = train.aggregate.value_or(workers) >= workers;
  if (of_all && !NormOfRounds(train) && !RoundsWaitForLost(parts.config)) return 0;
  const int64_t blocks = parts.shard.block_count();
  return std::min(blocks, MaxOpenBlocks(train, blocks)) - 1;
}

}  // namespace

SyncRule::SyncRule(const PsParts& parts)
    : UpdateRule(parts),
      rounds_wait_(RoundsWaitForLost(parts.config)),
      offering_block_(parts.shard.InOrder(OfferedAt(parts))),
      held_(blocks_of_all()),
      next_round_(static_cast<size_t>(parts.shard.block_count()), 1) {
  if (NormOfRounds(parts.config.train)) measured_.emplace(parts.shard.block_count());
}

void SyncRule::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  const int64_t block = push.block();
  const uint64_t version = push.version();
  if (rounds_wait_ && version < parts_.shard.version(block)) return AnswerCounted(member, request, block);
  Held& held = HeldOf(member.task.index, block);
  held.keys = rows().KeysNamedBy(member.task.index, push);
  held.message = std::move(message);  // moves `push` too
  Hold(member, request, block, version, true);
}

void SyncRule::OnPull(Member& member, uint64_t request, const wire::Pull& pull) {
  if (!pull.enter()) {
    if (IsDoneWithSteps(pull)) Left(member);
    return AnswerPull(member, request, pull);
  }
  if (pull.resume()) return Resume(member, request, pull.block(), pull.version());
  if (ledger_ != nullptr && pull.workers() != nullptr) ledger_->ExpectTogether(*pull.workers());
  Hold(member, request, pull.block(), std::nullopt, false);
}

// A worker that was waited for goes on from the current version of this block, the previous one, or the next.
void SyncRule::Resume(Member& member, uint64_t request, int64_t block, uint64_t version) {
  const uint64_t current = parts_.shard.version(block);
  if (version + 1 == current && parts_.shard.has_previous(block)) {
    return AnswerPrevious(member, request, block);
  }
  if (version <= current) return Answer(member, request, block);
  Held& held = HeldOf(member.task.index, block);
  held = Held();
  held.request = request;
  held.resumes = true;
}

void SyncRule::AnswerResuming(int64_t block) {
  for (int worker = 0; worker < workers_; ++worker) {
    if (!HeldOf(worker, block).resumes) continue;
    const Held held = std::exchange(HeldOf(worker, block), Held());
    RecordOne(*parts_.members.Worker(worker), held.request);
    Answer(*parts_.members.Worker(worker), held.request, block);
  }
}

// This gradient was sent before, and this block has applied the round that had it.
void SyncRule::AnswerCounted(Member& member, uint64_t request, int64_t block) {
  Take(member, block);
  if (IsLast(block)) Grant(member, request);
  Settle(member, request, block);
  RecordOne(member, request);
  Answer(member, request, block);
}

void SyncRule::Hold(Member& member, uint64_t request, int64_t block, std::optional<uint64_t> version,
                    bool is_push) {
  Held& held = HeldOf(member.task.index, block);
  held.request = request;
  held.is_push = is_push;
  // The worker sends the rest without waiting for anything but answers to this; a round can rely on it, on
  // every ps.
  if (ledger_ != nullptr && block == offering_block_) {
    ledger_->Offer({member.task.index, member.incarnation}, version);
  }
  measured_&& IsLast(block) ? Advance() : AdvanceBlock(block);
  if (held.request == request) held.since = Clock::now();  // read the clock only when it has to wait
}

void SyncRule::OnRepeated(Member& member, uint64_t request, int64_t block) {
  if (HeldOf(member.task.index, block).request != request) Answer(member, request, block);
}

void SyncRule::OnRepeatedPull(Member& member, uint64_t request, const wire::Pull& pull) {
  if (HeldOf(member.task.index, pull.block()).request == request) return;
  if (pull.resume()) return Resume(member, request, pull.block(), pull.version());
  AnswerPull(member, request, pull);
}

bool SyncRule::Waits(const Member& member, int64_t block) const {
  return held_[IndexOf(member.task.index, block)].request != 0;
}

void SyncRule::DropHeld(const Member& member) {
  for (int64_t block = 0; block < parts_.shard.block_count(); ++block) {
    HeldOf(member.task.index, block) = Held();
  }
}

void SyncRule::Left(Member& member) { TakeOut(member, /*comes_back=*/false); }

void SyncRule::OnLost(Member& member) { TakeOut(member, waits_for_lost()); }

// Drops the worker's open exchanges. With `comes_back` rounds wait for it, else they go on without it.
void SyncRule::TakeOut(Member& member, bool comes_back) {
  if (member.task.role != Role::kWorker) return;
  DropHeld(member);
  if (ledger_ != nullptr) ledger_->LeaveRounds(member, comes_back);
  Advance();
}

void SyncRule::OnRound(RoundDecision round) {
  if (round.number == NextDecided()) rounds_.push_back(std::move(round));
}

void SyncRule::Advance() {
  if (!measured_) return AdvanceBlocks();
  uint64_t first = 0;
  do {  // when a round is finished the next can be measured
    first = first_round_;
    MeasureNorm();
    AdvanceBlocks();
  } while (first_round_ != first && !rounds_.empty());
}

// In the order in which workers await the answers.
void SyncRule::AdvanceBlocks() {
  for (int64_t i = 0; i < parts_.shard.block_count(); ++i) AdvanceBlock(parts_.shard.InOrder(i));
}

void SyncRule::AdvanceBlock(int64_t block) {
  uint64_t& next = next_round_[static_cast<size_t>(block)];
  while (next < NextDecided() && Apply(rounds_[next - first_round_], block)) {
    ++next;
    if (rounds_wait_) AnswerResuming(block);
  }
  if (IsLast(block)) DropFinishedRounds();
}

void SyncRule::DropFinishedRounds() {
  if (rounds_.empty()) return;
  const uint64_t oldest = OldestNext();
  for (; first_round_ < oldest; ++first_round_) rounds_.pop_front();
}

// The worker of the exchange; null: that incarnation has left.
Member* SyncRule::Here(const RoundExchange& exchange) {
  Member* const member = parts_.members.Worker(exchange.worker);
  const bool same = member != nullptr && member->here() && member->incarnation == exchange.incarnation;
  return same ? member : nullptr;
}

// The worker of a contribution; null: its gradient is not in the round any more.
Member* SyncRule::Contributor(const RoundExchange& exchange) {
  return rounds_wait_ ? parts_.members.Worker(exchange.worker) : Here(exchange);
}

// Collects the exchanges whose workers are still here, in the order of the round. False: one is missing.
bool SyncRule::Gather(const std::vector<RoundExchange>& exchanges, int64_t block, std::vector<Named>* named) {
  named->clear();
  for (const RoundExchange& exchange : exchanges) {
    Member* const member = Here(exchange);
    if (member == nullptr) continue;
    Held& held = HeldOf(exchange.worker, block);
    if (held.request == 0) return false;
    named->push_back({member, &held});
  }
  return true;
}

// Like Gather(), but waits for workers that are gone: they return with the same gradient and a new
// incarnation.
bool SyncRule::GatherWaiting(const std::vector<RoundExchange>& exchanges, int64_t block,
                             std::vector<Named>* named) {
  named->clear();
  for (const RoundExchange& exchange : exchanges) {
    Member* member = parts_.members.Worker(exchange.worker);
    if (member == nullptr || !HeldOf(exchange.worker, block).is_push) return false;
    named->push_back({member, &HeldOf(exchange.worker, block)});
  }
  return true;
}

bool SyncRule::GatherContributors(const RoundDecision& round, int64_t block) {
  return rounds_wait_ ? GatherWaiting(round.contributors, block, &contributors_)
                      : Gather(round.contributors, block, &contributors_);
}

bool SyncRule::Apply(const RoundDecision& round, int64_t block) {
  const bool measured = Measured(round);
  if (measured && (measured_->number() != round.number || !measured_->scale())) return false;
  if (!measured && !GatherContributors(round, block)) return false;
  if (!Gather(round.answered, block, &answered_)) return false;
  const TimePoint now = Clock::now();  // the rest is the ps's own work, not a wait for workers
  if (measured) {
    GatherMeasured(block);
    ApplyGradients(block, *measured_->scale());
  } else if (!round.contributors.empty()) {
    GatherGradients(block);
    ApplyGradients(block, 1);
  }
  Finish(round, block, now);
  if (measured) measured_->Drop(block);  // the record of the round has their keys
  return true;
}

void SyncRule::ApplyGradients(int64_t block, double scale) {
  if (replica_ == nullptr || !replica_->records()) return parts_.shard.ApplyMean(block, gradients_, scale);
  sum_ = parts_.shard.SumOf(block, gradients_, scale);
  parts_.shard.ApplySum(block, sum_);
}

RuleOfWorker SyncRule::OfWorker(int) const {
  RuleOfWorker of;
  of.next_rounds = next_round_;
  of.measured = measured_ ? measured_->number() : 0;
  return of;
}

void SyncRule::SetOfWorker(int, const RuleOfWorker& of) {
  if (of.next_rounds.size() != next_round_.size()) return;
  counted_ = of.measured;
  next_round_ = of.next_rounds;
  first_round_ = OldestNext();
}

void SyncRule::TakeRound(int64_t block, uint64_t round, const RoundSum* sum) {
  if (sum != nullptr) parts_.shard.ApplySum(block, *sum);
  next_round_[static_cast<size_t>(block)] = round + 1;
  first_round_ = OldestNext();
}

// Collects the contributors' gradients; counts them at their last block.
void SyncRule::GatherGradients(int64_t block) {
  gradients_.Clear();
  for (const Named& named : contributors_) {
    if (!named.held->is_push) continue;
    const wire::Push& push = PushIn(named.held->message);
    gradients_.Add(GradientIn(named.held->message, push, *named.held->keys), WeightIn(push));
    Take(*named.member, block);
    if (IsLast(block)) Count(*named.member, push);
  }
}

// Counts a gradient that is in a round.
void SyncRule::Count(Member& member, const wire::Push& push) {
  ++member.taken;
  if (ledger_ == nullptr) return;
  push.empty() ? ledger_->StepTakenBefore(member) : ledger_->CountGradient(member, push);
}

// Counts a gradient that was too late for its round.
void SyncRule::CountLate(Member& member) {
  ++member.taken;
  TakeDropped(member);
  if (ledger_ != nullptr) ledger_->StepDropped(member);
}

// Counts the round at its last block, and answers every worker in it.
void SyncRule::Finish(const RoundDecision& round, int64_t block, TimePoint now) {
  if (IsLast(block)) {
    if (ledger_ != nullptr && !round.contributors.empty()) ledger_->RoundApplied();
    for (const Named& late : answered_) {
      if (late.held->is_push) CountLate(*late.member);
    }
  }
  contributors_.insert(contributors_.end(), answered_.begin(), answered_.end());
  Record(round, block);
  for (const Named& named : contributors_) {
    Held held = std::exchange(*named.held, Held());
    if (IsLast(block) && held.is_push) Grant(*named.member, held.request);  // Start granted the first step
    Answer(*named.member, held.request, block,
           held.since == TimePoint() ? Clock::duration() : now - held.since);
  }
}

void SyncRule::Record(const RoundDecision& round, int64_t block) {
  if (replica_ == nullptr) return;
  exchanges_.clear();
  for (const Named& named : contributors_) {
    if (named.held->is_push) Settle(*named.member, named.held->request, block);
    named.member->settled = named.held->request;
    exchanges_.push_back(named.member);
  }
  if (!replica_->records()) return;
  replica_->Round(block, round.number, !round.contributors.empty(), std::exchange(sum_, RoundSum()),
                  exchanges_);
}

void SyncRule::RecordOne(Member& member, uint64_t request) {
  member.settled = request;
  if (replica_ != nullptr) replica_->Worker(member);
}

// The block of a worker's gradient needs nothing more.
void SyncRule::Settle(Member& member, uint64_t request, int64_t block) {
  member.settled = request;
  member.settled_blocks = IsLast(block) ? 0 : parts_.shard.InOrder(block) + 1;
}

// Measures the next round when its gradients are complete here.
void SyncRule::MeasureNorm() {
  if (rounds_.empty() || rounds_.front().contributors.empty()) return;
  const RoundDecision& round = rounds_.front();
  if (measured_->number() == round.number || !GatherContributors(round, last_block())) return;
  measured_->Begin(round.number);
  for (const RoundExchange& exchange : round.contributors) TakeMeasured(exchange, round.number > counted_);
  measured_->Measure(parts_.shard);
  const std::optional<double> scale = leader_->OnNorm(round.number, measured_->squares());
  if (scale) measured_->set_scale(*scale);
}

// The gradient counts from now on, even if its worker leaves.
void SyncRule::TakeMeasured(const RoundExchange& exchange, bool counts) {
  Member* const member = Contributor(exchange);
  if (member == nullptr) return;
  for (int64_t i = 0; i < parts_.shard.block_count(); ++i) {
    const int64_t block = parts_.shard.InOrder(i);
    Held& held = HeldOf(exchange.worker, block);
    if (held.request == 0) continue;
    if (held.is_push) {
      if (counts) Take(*member, block);
      if (counts && IsLast(block)) Count(*member, PushIn(held.message));
      measured_->TakeGradient(block, std::move(held.message), held.keys);
    }
    measured_->Take(block, {exchange, held.request});
  }
}

// Collects the measured gradients, and the exchanges that still wait for the answer.
void SyncRule::GatherMeasured(int64_t block) {
  measured_->Gradients(block, &gradients_);
  contributors_.clear();
  for (const MeasuredRound::Waiting& waiting : measured_->WaitingFor(block)) {
    Member* const member = Contributor(waiting.exchange);
    if (member == nullptr) continue;
    Held& held = HeldOf(waiting.exchange.worker, block);
    // A worker that was waited for may have sent its gradient again.
    const bool waits = rounds_wait_ ? held.is_push : held.request == waiting.request;
    if (waits) contributors_.push_back({member, &held});
  }
}

void SyncRule::OnScale(uint64_t round, double scale) {
  if (!measured_ || round != measured_->number() || measured_->scale()) return;
  measured_->set_scale(scale);
  Advance();
}

}  // namespace dtrain
