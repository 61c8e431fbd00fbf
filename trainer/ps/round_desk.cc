#include "trainer/ps/round_desk.h"

#include <algorithm>

namespace dtrain {

RoundDesk::RoundDesk(const Config& config, Membership& members, Outbox& outbox)
    : members_(members), outbox_(outbox), questions_(config.cluster.ps.size()) {
  if (NormOfRounds(config.train)) norm_.emplace(config.cluster.ps.size(), *config.train.optimizer.clip_norm);
}

void RoundDesk::Ask(const Member& ps, uint64_t request, const wire::WaitEnd& question) {
  const auto index = static_cast<size_t>(ps.task.index);
  questions_[index] = {request, question.round(), false};
  const bool complete = AddNorm(ps, question);
  for (size_t other = 1; other < questions_.size(); ++other) {
    if (complete && other != index && questions_[other].scale) SendScale(other);
  }
  DropKnown();
  Answer(index);
}

// Whether the norm is complete with this part.
bool RoundDesk::AddNorm(const Member& ps, const wire::WaitEnd& question) {
  if (!norm_) return false;
  const std::optional<gpu::SquareSum> part = SquaresIn(question);
  if (!part) return false;
  questions_[static_cast<size_t>(ps.task.index)].scale = true;
  return norm_->Add(question.round() - 1, ps.task.index, *part);
}

void RoundDesk::Answer(size_t ps) {
  if (questions_[ps].scale) return SendScale(ps);
  for (const RoundDecision& round : rounds_) {
    if (round.number == questions_[ps].round) SendRound(ps, round);
  }
}

void RoundDesk::SendScale(size_t ps) {
  const uint64_t round = questions_[ps].round - 1;
  const std::optional<double> scale = norm_->Scale(round);
  if (!scale) return;
  outbox_.Send(NodeOf(ps), questions_[ps].request,
               [&](auto& builder) { return wire::CreateScale(builder, round, *scale); });
}

void RoundDesk::SendRound(size_t ps, const RoundDecision& round) {
  const auto list = [](auto& builder, const std::vector<RoundExchange>& exchanges) {
    std::vector<wire::Exchange> structs;
    for (const RoundExchange& exchange : exchanges) {
      structs.emplace_back(exchange.incarnation, static_cast<uint32_t>(exchange.worker));
    }
    return builder.CreateVectorOfStructs(structs);
  };
  outbox_.Send(NodeOf(ps), questions_[ps].request, [&](auto& builder) {
    const auto contributors = list(builder, round.contributors);
    return wire::CreateRound(builder, round.number, contributors, list(builder, round.answered));
  });
}

void RoundDesk::Announce(const RoundDecision& round) {
  if (questions_.size() == 1) return;
  rounds_.push_back(round);
  for (size_t ps = 1; ps < questions_.size(); ++ps) {
    if (questions_[ps].round == round.number && !questions_[ps].scale) SendRound(ps, round);
  }
}

// Whoever asks for a round has all before it. How many stay is bounded: each names a worker, which goes on
// only when every ps has answered it.
void RoundDesk::DropKnown() {
  const auto asks_for = [](const Question& one, const Question& other) { return one.round < other.round; };
  const uint64_t oldest = std::min_element(questions_.begin() + 1, questions_.end(), asks_for)->round;
  while (!rounds_.empty() && rounds_.front().number < oldest) rounds_.pop_front();
}

}  // namespace dtrain
