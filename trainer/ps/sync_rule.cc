#include "trainer/ps/sync_rule.h"

#include <algorithm>
#include <utility>

#include "trainer/peer/peer_link.h"

namespace dtrain {
namespace {

std::vector<RoundExchange> FromWire(const flatbuffers::Vector<const wire::Exchange*>* exchanges) {
  std::vector<RoundExchange> list;
  if (exchanges == nullptr) return list;
  for (const wire::Exchange* exchange : *exchanges) {
    list.push_back({static_cast<int>(exchange->worker()), exchange->incarnation()});
  }
  return list;
}

}  // namespace

SyncRule::SyncRule(const PsParts& parts)
    : UpdateRule(parts),
      workers_(static_cast<int>(parts.config.cluster.worker.size())),
      offering_block_(
          std::min(parts.shard.block_count(), MostOpenBlocks(parts.config.train, parts.shard.block_count())) -
          1),
      held_(static_cast<size_t>(parts.shard.block_count()) * static_cast<size_t>(workers_)),
      next_round_(static_cast<size_t>(parts.shard.block_count()), 1) {
  if (NormOfRounds(parts.config.train)) measured_.emplace(parts.shard.block_count());
  if (parts.coordinator == nullptr) return;
  plan_.emplace(static_cast<size_t>(workers_), parts.config.train.aggregate.value_or(workers_),
                parts.config.train.steps);
}

void SyncRule::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  const int64_t block = push.block();
  const uint64_t version = push.version();
  HeldOf(member.task.index, block).message = std::move(message);  // and with it `push`
  Hold(member, request, block, version, true);
}

void SyncRule::OnPull(Member& member, uint64_t request, const wire::Pull& pull) {
  if (!pull.enter()) {
    if (pull.block() == 0) Left(member);  // it evaluates, and must not hold up the others
    return Answer(member, request, pull.block());
  }
  // The first list is every list; a later copy could name a worker that has left since.
  if (plan_ && !together_ && pull.workers() != nullptr) {
    together_ = true;
    for (const uint32_t worker : *pull.workers()) {
      const Member* other = parts_.members.Worker(static_cast<int64_t>(worker));
      if (other != nullptr && other->here()) plan_->Expect(other->task.index);
    }
  }
  Hold(member, request, pull.block(), std::nullopt, false);
}

void SyncRule::Hold(Member& member, uint64_t request, int64_t block, std::optional<uint64_t> version,
                    bool is_push) {
  Held& held = HeldOf(member.task.index, block);
  held.request = request;
  held.is_push = is_push;
  // As much as a worker sends without an answer is here; what follows, to every ps, a round may count on.
  if (plan_ && block == offering_block_) {
    plan_->Offer({member.task.index, member.incarnation}, version);
    DecideRounds();
    return AdvanceAll();
  }
  if (measured_ && IsLast(block)) return AdvanceAll();
  Advance(block);
}

void SyncRule::OnRepeated(Member& member, uint64_t request, int64_t block) {
  if (HeldOf(member.task.index, block).request != request) Answer(member, request, block);
}

bool SyncRule::Waits(const Member& member, int64_t block) const {
  return held_[IndexOf(member.task.index, block)].request != 0;
}

void SyncRule::Left(Member& member) {
  if (member.task.role != Role::kWorker) return;
  for (int64_t block = 0; block < parts_.shard.block_count(); ++block) {
    HeldOf(member.task.index, block) = Held();
  }
  if (plan_) {
    plan_->Leave(member.task.index);
    DecideRounds();
  }
  AdvanceAll();
}

void SyncRule::DecideRounds() {
  while (std::optional<RoundDecision> round = plan_->Next()) {
    parts_.coordinator->Announce(*round);
    rounds_.push_back(std::move(*round));
  }
}

void SyncRule::OnRound(const wire::Round& round) {
  if (round.number() != NextRound()) return;
  rounds_.push_back({round.number(), FromWire(round.contributors()), FromWire(round.answered())});
  AdvanceAll();
}

void SyncRule::AdvanceAll() {
  if (!measured_) return AdvanceBlocks();
  uint64_t first = 0;
  do {  // a round that is done may let the next be measured
    first = first_round_;
    MeasureNorm();
    AdvanceBlocks();
  } while (first_round_ != first && !rounds_.empty());
}

void SyncRule::AdvanceBlocks() {
  for (int64_t block = 0; block < parts_.shard.block_count(); ++block) Advance(block);
}

void SyncRule::Advance(int64_t block) {
  uint64_t& next = next_round_[static_cast<size_t>(block)];
  while (next < NextRound() && Apply(rounds_[next - first_round_], block)) ++next;
  if (IsLast(block)) DropFinishedRounds();
}

void SyncRule::DropFinishedRounds() {
  if (rounds_.empty()) return;
  const uint64_t oldest = *std::min_element(next_round_.begin(), next_round_.end());
  for (; first_round_ < oldest; ++first_round_) rounds_.pop_front();
}

// Null: the task that the exchange was of has left.
Member* SyncRule::Here(const RoundExchange& exchange) {
  Member* const member = parts_.members.Worker(exchange.worker);
  const bool same = member != nullptr && member->here() && member->incarnation == exchange.incarnation;
  return same ? member : nullptr;
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

bool SyncRule::Apply(const RoundDecision& round, int64_t block) {
  const bool measured = Measured(round);
  if (measured && (measured_->number() != round.number || !measured_->scale())) return false;
  if (!measured && !Gather(round.contributors, block, &contributors_)) return false;
  if (!Gather(round.answered, block, &answered_)) return false;
  if (measured) {
    GatherMeasured(block);
    parts_.shard.ApplyMean(block, gradients_, *measured_->scale());
    measured_->Drop(block);
  } else if (!round.contributors.empty()) {
    GatherGradients(block);
    parts_.shard.ApplyMean(block, gradients_);
  }
  Finish(block, !round.contributors.empty());
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
  if (parts_.coordinator != nullptr) parts_.coordinator->CountExamples(member, push.examples());
}

// Counts the round at its last block, and answers everybody in it.
void SyncRule::Finish(int64_t block, bool with_contributors) {
  Coordinator* const coordinator = parts_.coordinator;
  if (IsLast(block)) {
    if (coordinator != nullptr && with_contributors) coordinator->RoundApplied();
    for (const Named& late : answered_) late.member->taken += late.held->is_push ? 1 : 0;
  }
  contributors_.insert(contributors_.end(), answered_.begin(), answered_.end());
  for (const Named& named : contributors_) {
    Held held = std::exchange(*named.held, Held());
    if (IsLast(block) && held.is_push && coordinator != nullptr) {  // the first step was granted with Start
      named.member->GrantOf(held.request) = coordinator->GrantNext(*named.member);
    }
    Answer(*named.member, held.request, block);
  }
}

// Of the next round, as soon as its gradients are here in full.
void SyncRule::MeasureNorm() {
  if (rounds_.empty() || rounds_.front().contributors.empty()) return;
  const RoundDecision& round = rounds_.front();
  const int64_t last = parts_.shard.block_count() - 1;
  if (measured_->number() == round.number || !Gather(round.contributors, last, &contributors_)) return;
  measured_->Begin(round.number);
  for (const RoundExchange& exchange : round.contributors) TakeMeasured(exchange);
  measured_->Measure(parts_.shard);
  if (parts_.coordinator == nullptr) return parts_.ask_ps0();
  parts_.coordinator->BeginNorm(round.number, measured_->squares());
  TakeScale();
}

// From now on the gradient counts, whether or not its worker stays.
void SyncRule::TakeMeasured(const RoundExchange& exchange) {
  Member* const member = Here(exchange);
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
    Member* const member = Here(waiting.exchange);
    if (member == nullptr) continue;
    Held& held = HeldOf(waiting.exchange.worker, block);
    if (held.request == waiting.request) contributors_.push_back({member, &held});
  }
}

bool SyncRule::OwesNorm() const {
  return !rounds_.empty() && Measured(rounds_.back()) && measured_->number() != rounds_.back().number;
}

const gpu::SquareSum* SyncRule::squares() const {
  const bool wanted = measured_ && measured_->number() != 0 && !measured_->scale();
  return wanted ? &measured_->squares() : nullptr;
}

void SyncRule::OnScale(const wire::Scale& scale) {
  if (!measured_ || scale.round() != measured_->number()) return;
  measured_->set_scale(scale.scale());
  AdvanceAll();
}

void SyncRule::OnNorm() {
  if (measured_ && !measured_->scale() && TakeScale()) AdvanceAll();
}

// ps 0: whether the norm of the round that was measured is known.
bool SyncRule::TakeScale() {
  const std::optional<double> scale = parts_.coordinator->ScaleOf(measured_->number());
  if (scale) measured_->set_scale(*scale);
  return scale.has_value();
}

}  // namespace dtrain
