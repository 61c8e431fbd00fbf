#include "trainer/ps/sync_rule.h"

#include <algorithm>
#include <utility>

#include "trainer/peer/peer_link.h"

namespace dtrain {
namespace {

// The push in a message that was verified when it came.
const wire::Push& PushIn(const net::Message& message) {
  return *wire::GetEnvelope(message.header.data())->body_as_Push();
}

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
      offering_block_(std::min(parts.shard.block_count(), kOpenBlocks) - 1),
      held_(static_cast<size_t>(parts.shard.block_count()) * static_cast<size_t>(workers_)),
      next_round_(static_cast<size_t>(parts.shard.block_count()), 1) {
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
    AdvanceAll();
  } else {
    Advance(block);
  }
  if (held.request == request) held.since = Clock::now();  // read only where it has to wait
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

void SyncRule::EndEarly() {
  plan_->EndHere();
  parts_.coordinator->EndEarly(static_cast<int64_t>(plan_->version()));
  DecideRounds();
  AdvanceAll();
}

void SyncRule::OnRound(const wire::Round& round) {
  if (round.number() != NextRound()) return;
  rounds_.push_back({round.number(), FromWire(round.contributors()), FromWire(round.answered())});
  AdvanceAll();
}

void SyncRule::AdvanceAll() {
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

// Those of a round that are still here, in its order. False: one of them has not come yet.
bool SyncRule::Gather(const std::vector<RoundExchange>& exchanges, int64_t block, std::vector<Named>* named) {
  named->clear();
  for (const RoundExchange& exchange : exchanges) {
    Member* member = parts_.members.Worker(exchange.worker);
    if (member == nullptr || !member->here() || member->incarnation != exchange.incarnation) continue;
    Held& held = HeldOf(exchange.worker, block);
    if (held.request == 0) return false;
    named->push_back({member, &held});
  }
  return true;
}

bool SyncRule::Apply(const RoundDecision& round, int64_t block) {
  if (!Gather(round.contributors, block, &contributors_)) return false;
  if (!Gather(round.answered, block, &answered_)) return false;
  const TimePoint now = Clock::now();  // what follows is the ps's own work, not a wait for workers
  gradients_.clear();
  for (const Named& named : contributors_) {
    if (named.held->is_push) {
      gradients_.push_back(net::Tensor(named.held->message, PushIn(named.held->message)));
    }
  }
  if (!round.contributors.empty()) parts_.shard.ApplyMean(block, gradients_);
  Finish(block, !round.contributors.empty(), now);
  return true;
}

// Counts the round at its last block, and answers everybody in it.
void SyncRule::Finish(int64_t block, bool with_contributors, TimePoint now) {
  Coordinator* const coordinator = parts_.coordinator;
  if (IsLast(block) && coordinator != nullptr && with_contributors) {
    for (const Named& named : contributors_) {
      if (!named.held->is_push) continue;
      coordinator->CountExamples(*named.member, PushIn(named.held->message).examples());
    }
    coordinator->RoundApplied();
  }
  contributors_.insert(contributors_.end(), answered_.begin(), answered_.end());
  for (const Named& named : contributors_) {
    Held held = std::exchange(*named.held, Held());
    if (IsLast(block) && held.is_push) {  // the first step was granted with Start
      ++named.member->taken;
      if (coordinator != nullptr) named.member->GrantOf(held.request) = coordinator->GrantNext(*named.member);
    }
    Answer(*named.member, held.request, block,
           held.since == TimePoint() ? Clock::duration() : now - held.since);
  }
}

}  // namespace dtrain
