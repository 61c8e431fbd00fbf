#include "trainer/ps/sync_rule.h"

#include <algorithm>
#include <utility>

#include "trainer/config/config.h"
#include "trainer/peer/conversation.h"

namespace dtrain {

SyncRule::SyncRule(const PsParts& parts)
    : UpdateRule(parts),
      workers_(static_cast<int>(parts.config.cluster.worker.size())),
      rounds_wait_(RoundsWaitForLost(parts.config)),
      offering_block_(
          std::min(parts.shard.block_count(), MaxOpenBlocks(parts.config.train, parts.shard.block_count())) -
          1),
      held_(static_cast<size_t>(parts.shard.block_count()) * static_cast<size_t>(workers_)),
      next_round_(static_cast<size_t>(parts.shard.block_count()), 1) {
  if (NormOfRounds(parts.config.train)) measured_.emplace(parts.shard.block_count());
}

void SyncRule::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  const int64_t block = push.block();
  const uint64_t version = push.version();
  if (rounds_wait_ && version < parts_.shard.version(block)) return AnswerCounted(member, request, block);
  HeldOf(member.task.index, block).message = std::move(message);  // and with it `push`
  Hold(member, request, block, version, true);
}

void SyncRule::OnPull(Member& member, uint64_t request, const wire::Pull& pull) {
  if (!pull.enter()) {
    if (pull.block() == 0) Left(member);  // it evaluates, and must not hold up the others
    return Answer(member, request, pull.block());
  }
  if (pull.resume()) return Resume(member, request, pull.block(), pull.version());
  if (pull.workers() != nullptr) leader().ExpectTogether(*pull.workers());
  Hold(member, request, pull.block(), std::nullopt, false);
}

// A worker that was waited for goes on from a version that this block has, had last, or will have next.
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
    Answer(*parts_.members.Worker(worker), held.request, block);
  }
}

// The gradient that this one repeats was in a round which this block has applied.
void SyncRule::AnswerCounted(Member& member, uint64_t request, int64_t block) {
  if (IsLast(block)) member.GrantOf(request) = leader().GrantNext(member);
  Answer(member, request, block);
}

void SyncRule::Hold(Member& member, uint64_t request, int64_t block, std::optional<uint64_t> version,
                    bool is_push) {
  Held& held = HeldOf(member.task.index, block);
  held.request = request;
  held.is_push = is_push;
  // As much as a worker sends without an answer is here; what follows, to every ps, a round may count on.
  if (block == offering_block_) leader().Offer({member.task.index, member.incarnation}, version);
  measured_&& IsLast(block) ? Advance() : AdvanceBlock(block);
  if (held.request == request) held.since = Clock::now();  // read only where it has to wait
}

void SyncRule::OnRepeated(Member& member, uint64_t request, int64_t block) {
  if (HeldOf(member.task.index, block).request != request) Answer(member, request, block);
}

void SyncRule::OnRepeatedPull(Member& member, uint64_t request, const wire::Pull& pull) {
  if (HeldOf(member.task.index, pull.block()).request == request) return;
  if (pull.resume()) return Resume(member, request, pull.block(), pull.version());
  Answer(member, request, pull.block());
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

void SyncRule::Lost(Member& member) { TakeOut(member, waits_for_lost()); }

// What it had open is dropped; rounds wait for it where it `comes_back`, and go on without it elsewhere.
void SyncRule::TakeOut(Member& member, bool comes_back) {
  if (member.task.role != Role::kWorker) return;
  DropHeld(member);
  leader().LeaveRounds(member, comes_back);
  Advance();
}

void SyncRule::OnRound(RoundDecision round) {
  if (round.number == NextRound()) rounds_.push_back(std::move(round));
}

void SyncRule::Advance() {
  if (!measured_) return AdvanceBlocks();
  uint64_t first = 0;
  do {  // a round that is done may let the next be measured
    first = first_round_;
    MeasureNorm();
    AdvanceBlocks();
  } while (first_round_ != first && !rounds_.empty());
}

void SyncRule::AdvanceBlocks() {
  for (int64_t block = 0; block < parts_.shard.block_count(); ++block) AdvanceBlock(block);
}

void SyncRule::AdvanceBlock(int64_t block) {
  uint64_t& next = next_round_[static_cast<size_t>(block)];
  while (next < NextRound() && Apply(rounds_[next - first_round_], block)) {
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

// Null: the task that the exchange was of has left.
Member* SyncRule::Here(const RoundExchange& exchange) {
  Member* const member = parts_.members.Worker(exchange.worker);
  const bool same = member != nullptr && member->here() && member->incarnation == exchange.incarnation;
  return same ? member : nullptr;
}

// Null: its gradient is in no round any more.
Member* SyncRule::Contributor(const RoundExchange& exchange) {
  return rounds_wait_ ? parts_.members.Worker(exchange.worker) : Here(exchange);
}

// Those of a round that are still here, in its order. False: one of them has not come yet.
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

// As Gather, but whoever is gone comes back with the same gradient, under another incarnation.
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
  const TimePoint now = Clock::now();  // what follows is the ps's own work, not a wait for workers
  if (measured) {
    GatherMeasured(block);
    parts_.shard.ApplyMean(block, gradients_, *measured_->scale());
    measured_->Drop(block);
  } else if (!round.contributors.empty()) {
    GatherGradients(block);
    parts_.shard.ApplyMean(block, gradients_);
  }
  Finish(block, !round.contributors.empty(), now);
  return true;
}

// Those of the contributors, which are counted at their last block.
void SyncRule::GatherGradients(int64_t block) {
  gradients_.clear();
  for (const Named& named : contributors_) {
    if (!named.held->is_push) continue;
    gradients_.push_back(net::Tensor(named.held->message, PushIn(named.held->message)));
    if (IsLast(block)) Count(*named.member, PushIn(named.held->message));
  }
}

// A gradient that is in a round.
void SyncRule::Count(Member& member, const wire::Push& push) {
  ++member.taken;
  leader().CountExamples(member, push.examples());
}

// Counts the round at its last block, and answers everybody in it.
void SyncRule::Finish(int64_t block, bool with_contributors, TimePoint now) {
  if (IsLast(block)) {
    if (with_contributors) leader().RoundApplied();
    for (const Named& late : answered_) late.member->taken += late.held->is_push ? 1 : 0;
  }
  contributors_.insert(contributors_.end(), answered_.begin(), answered_.end());
  for (const Named& named : contributors_) {
    Held held = std::exchange(*named.held, Held());
    if (IsLast(block) && held.is_push) {  // the first step was granted with Start
      named.member->GrantOf(held.request) = leader().GrantNext(*named.member);
    }
    Answer(*named.member, held.request, block,
           held.since == TimePoint() ? Clock::duration() : now - held.since);
  }
}

// Of the next round, as soon as its gradients are here in full.
void SyncRule::MeasureNorm() {
  if (rounds_.empty() || rounds_.front().contributors.empty()) return;
  const RoundDecision& round = rounds_.front();
  const int64_t last = parts_.shard.block_count() - 1;
  if (measured_->number() == round.number || !GatherContributors(round, last)) return;
  measured_->Begin(round.number);
  for (const RoundExchange& exchange : round.contributors) TakeMeasured(exchange);
  measured_->Measure(parts_.shard);
  const std::optional<double> scale = leader().OnNorm(round.number, measured_->squares());
  if (scale) measured_->set_scale(*scale);
}

// From now on the gradient counts, whether or not its worker stays.
void SyncRule::TakeMeasured(const RoundExchange& exchange) {
  Member* const member = Contributor(exchange);
  if (member == nullptr) return;
  for (int64_t block = 0; block < parts_.shard.block_count(); ++block) {
    Held& held = HeldOf(exchange.worker, block);
    if (held.request == 0) continue;
    if (held.is_push) {
      if (IsLast(block)) Count(*member, PushIn(held.message));
      measured_->TakeGradient(block, std::move(held.message));
    }
    measured_->Take(block, {exchange, held.request});
  }
}

// The gradients that were measured, and those of their workers that still wait for the answer.
void SyncRule::GatherMeasured(int64_t block) {
  measured_->Views(block, &gradients_);
  contributors_.clear();
  for (const MeasuredRound::Waiting& waiting : measured_->WaitingFor(block)) {
    Member* const member = Contributor(waiting.exchange);
    if (member == nullptr) continue;
    Held& held = HeldOf(waiting.exchange.worker, block);
    // One that was waited for may have sent its gradient again since.
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
