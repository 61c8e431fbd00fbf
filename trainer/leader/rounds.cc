#include "trainer/leader/rounds.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/fault_point.h"
#include "trainer/config/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/ps/replica_holder.h"

namespace dtrain {
namespace {

// The exchanges in the rounds that are kept for the other ps: far more than all workers have open.
constexpr size_t kMaxKept = 1 << 20;

size_t ExchangesIn(const RoundDecision& round) { return round.contributors.size() + round.answered.size(); }

RoundPlan PlanFrom(const Config& config, TaskTable& members, int64_t step) {
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  RoundPlan::Start start{static_cast<uint64_t>(step), {}};
  for (int64_t worker = 0; worker < workers; ++worker) {
    start.contributions.push_back(members.Worker(worker)->taken);
  }
  return RoundPlan(static_cast<size_t>(workers), config.train.aggregate.value_or(workers), config.train.steps,
                   start);
}

}  // namespace

void RoundNorm::Begin(uint64_t round, const gpu::SquareSum& own) {
  if (round == round_) return;
  round_ = round;
  here_.assign(here_.size(), false);
  here_[0] = true;
  missing_ = here_.size() - 1;
  sum_ = own;
  Complete();
}

bool RoundNorm::Complete() {
  if (missing_ > 0) return false;
  known_.push_back({round_, ClipScale(sum_, clip_norm_)});
  return true;
}

bool RoundNorm::Add(uint64_t round, int ps, const gpu::SquareSum& part) {
  const auto index = static_cast<size_t>(ps);
  if (round == 0 || round != round_ || index >= here_.size() || here_[index]) return false;
  here_[index] = true;
  gpu::AddSum(part, &sum_);
  --missing_;
  return Complete();
}

std::optional<double> RoundNorm::Scale(uint64_t round) const {
  for (const Known& known : known_) {
    if (known.round == round) return known.scale;
  }
  return std::nullopt;
}

void RoundNorm::DropBefore(uint64_t round) {
  while (!known_.empty() && known_.front().round < round) known_.pop_front();
}

std::optional<gpu::SquareSum> SquaresIn(const wire::WaitEnd& question) {
  gpu::SquareSum sum;
  const auto* words = question.squares();
  if (words == nullptr || words->size() != sum.words.size()) return std::nullopt;
  std::copy(words->begin(), words->end(), sum.words.begin());
  sum.finite = !question.infinite();
  return sum;
}

Rounds::Rounds(const Config& config, TaskTable& members, Outbox& outbox, UpdateRule& rule)
    : config_(config),
      members_(members),
      outbox_(outbox),
      rule_(rule),
      alone_(config.cluster.ps.size() == 1),
      wait_for_lost_(RoundsWaitForLost(config)),
      plan_(PlanFrom(config, members, 0)) {
  if (NormOfRounds(config.train)) norm_.emplace(config.cluster.ps.size(), *config.train.optimizer.clip_norm);
}

void Rounds::BeginAt(int64_t step) { plan_ = PlanFrom(config_, members_, step); }

// The first list is the right one; a list that comes later could name a worker that has left since.
void Rounds::ExpectTogether(const flatbuffers::Vector<uint32_t>& workers) {
  if (together_) return;
  together_ = true;
  const bool waits_for_lost = config_.failure.worker_lost == WorkerLost::kWait;
  for (const uint32_t worker : workers) {
    const Member* other = members_.Worker(static_cast<int64_t>(worker));
    if (other == nullptr || (!other->here() && !waits_for_lost)) continue;
    plan_.Expect(other->task.index);
    if (!other->here()) plan_.Lose(other->task.index);
  }
}

// Where rounds wait for a lost worker, a gradient of older weights is in a round already.
void Rounds::Offer(RoundExchange exchange, std::optional<uint64_t> version) {
  if (wait_for_lost_ && version && *version < plan_.version()) return;
  if (IsDecided(exchange)) return;
  plan_.Offer(exchange, version);
  Decide();
}

// Whether the exchange is in a round that ps 0 has not finished: after a loss of ps 0 it is sent again.
bool Rounds::IsDecided(const RoundExchange& exchange) const {
  const auto is_it = [&](const RoundExchange& other) {
    return other.worker == exchange.worker && other.incarnation == exchange.incarnation;
  };
  const uint64_t next = rule_.NextRound();
  for (auto round = rounds_.rbegin(); next != 0 && round != rounds_.rend() && round->number >= next;
       ++round) {
    for (const auto* exchanges : {&round->contributors, &round->answered}) {
      if (std::any_of(exchanges->begin(), exchanges->end(), is_it)) return true;
    }
  }
  return false;
}

void Rounds::Leave(const Member& worker, bool comes_back) {
  comes_back ? plan_.Lose(worker.task.index) : plan_.Leave(worker.task.index);
  Decide();
}

std::optional<StartPoint> Rounds::Return(const Member& worker) {
  const std::optional<StartPoint> point = plan_.Return(worker.task.index);
  return wait_for_lost_ ? point : std::nullopt;
}

// Decides all rounds that it can before any of them is applied.
void Rounds::Decide() {
  if (held_) return;
  bool decided = false;
  while (std::optional<RoundDecision> round = plan_.Next()) {
    const FaultScope fault("leader.round");
    decided = true;
    last_ = round->number;
    Announce(*round);
    rule_.OnRound(std::move(*round));
  }
  if (decided) rule_.Advance();
}

uint64_t Rounds::Hold() {
  held_ = true;
  return last_;
}

void Rounds::GoOn() {
  held_ = false;
  Decide();
}

std::optional<double> Rounds::OnNorm(uint64_t round, const gpu::SquareSum& own) {
  norm_->Begin(round, own);
  if (alone_) norm_->DropBefore(round);
  return norm_->Scale(round);
}

void Rounds::Ask(Member& ps, const wire::WaitEnd& question) {
  ps.next_round = question.round();
  ps.oldest_round = question.oldest() == 0 ? question.round() : std::min(question.oldest(), question.round());
  ps.waits_for_scale = false;
  const bool complete = AddNorm(ps, question);
  for (const Member& other : members_.all()) {
    if (complete && &other != &ps && other.waits_for_scale) SendScale(other);
  }
  DropKnown();
  Answer(ps);
  if (!complete) return;
  const uint64_t round = question.round() - 1;
  rule_.OnScale(round, *norm_->Scale(round));
}

// Whether this part completes the norm.
bool Rounds::AddNorm(Member& ps, const wire::WaitEnd& question) {
  if (!norm_) return false;
  const std::optional<gpu::SquareSum> part = SquaresIn(question);
  if (!part) return false;
  ps.waits_for_scale = true;
  return norm_->Add(question.round() - 1, ps.task.index, *part);
}

void Rounds::Answer(const Member& ps) {
  if (ps.waits_for_scale) return SendScale(ps);
  for (const RoundDecision& round : rounds_) {
    if (round.number == ps.next_round) SendRound(ps, round);
  }
}

void Rounds::SendScale(const Member& ps) {
  const uint64_t round = ps.next_round - 1;
  const std::optional<double> scale = norm_->Scale(round);
  if (!scale) return;
  outbox_.Answer(ps.node, ps.end_request,
                 [&](auto& builder) { return wire::CreateRound(builder, round, 0, 0, *scale); });
}

void Rounds::SendRound(const Member& ps, const RoundDecision& round, bool of_replica) {
  const auto list = [](auto& builder, const std::vector<RoundExchange>& exchanges) {
    std::vector<wire::Exchange> structs;
    for (const RoundExchange& exchange : exchanges) {
      structs.emplace_back(exchange.incarnation, static_cast<uint32_t>(exchange.worker));
    }
    return builder.CreateVectorOfStructs(structs);
  };
  outbox_.Answer(ps.node, of_replica ? 0 : ps.end_request, [&](auto& builder) {
    const auto contributors = list(builder, round.contributors);
    return wire::CreateRound(builder, round.number, contributors, list(builder, round.answered), {},
                             of_replica);
  });
}

void Rounds::TellStandIn(const Member* holder, ReplicaHolder* here) {
  for (const RoundDecision& round : rounds_) {
    holder == nullptr ? here->OnRound(round) : SendRound(*holder, round, /*of_replica=*/true);
  }
}

void Rounds::TakeOver() {
  for (const RoundDecision& round : rounds_) rule_.OnRound(round);
  rule_.Advance();
}

void Rounds::Announce(const RoundDecision& round) {
  if (alone_) return;
  rounds_.push_back(round);
  kept_ += ExchangesIn(round);
  if (kept_ > kMaxKept) GiveUpSlowest();
  for (const Member& member : members_.all()) {
    const bool asks = !member.is_worker() && member.next_round == round.number;
    if (asks && !member.waits_for_scale) SendRound(member, round);
  }
}

// A ps that asks for a round has all earlier ones, and its replica those before the oldest that it names,
// also while the ps is away. The rounds kept are few: each names a worker, and a worker goes on only when
// every ps has answered it. A ps that waits for the scale of a round asks for the next one.
void Rounds::DropKnown() {
  uint64_t oldest = last_ + 1;
  for (const Member& member : members_.all()) {
    if (!member.is_worker()) oldest = std::min(oldest, member.oldest_round);
  }
  if (norm_ && oldest > 0) norm_->DropBefore(oldest - 1);
  for (; !rounds_.empty() && rounds_.front().number < oldest; rounds_.pop_front()) {
    kept_ -= ExchangesIn(rounds_.front());
  }
}

// A ps that answers workers and never asks for a round would have all rounds kept.
void Rounds::GiveUpSlowest() const {
  const Member* slowest = nullptr;
  for (const Member& member : members_.all()) {
    if (!member.is_worker() && (slowest == nullptr || member.oldest_round < slowest->oldest_round)) {
      slowest = &member;
    }
  }
  throw PeerLost("{} does not ask for its rounds: it is at round {} of {}. Look at its log.",
                 members_.NameOf(*slowest), slowest->oldest_round, last_);
}

}  // namespace dtrain
