#include "trainer/leader/round_plan.h"

#include <doctest/doctest.h>

#include <string>

namespace dtrain {
namespace {

// "1: 0 2 | 1": round 1 has the gradients of workers 0 and 2 and answers worker 1 besides. Empty: no round.
std::string NextText(RoundPlan& plan) {
  const std::optional<RoundDecision> round = plan.Next();
  if (!round) return std::string();
  std::string text = std::to_string(round->number) + ":";
  for (const RoundExchange& exchange : round->contributors) text += " " + std::to_string(exchange.worker);
  text += " |";
  for (const RoundExchange& exchange : round->answered) text += " " + std::to_string(exchange.worker);
  return text;
}

// A plan that all workers have joined: round 1 has answered their first pulls.
RoundPlan Begun(int workers, int64_t aggregate, std::optional<int64_t> total = std::nullopt) {
  RoundPlan plan(static_cast<size_t>(workers), aggregate, total, {});
  for (int worker = 0; worker < workers; ++worker) plan.Expect(worker);
  for (int worker = 0; worker < workers; ++worker) plan.Offer({worker, 1}, std::nullopt);
  plan.Next();
  return plan;
}

TEST_CASE("round plan: the workers that start together are answered together, once all have asked") {
  RoundPlan plan(3, 3, std::nullopt, {});
  for (int worker = 0; worker < 3; ++worker) plan.Expect(worker);
  plan.Offer({2, 1}, std::nullopt);
  plan.Offer({0, 1}, std::nullopt);
  CHECK(NextText(plan) == "");
  plan.Offer({1, 1}, std::nullopt);
  CHECK(NextText(plan) == "1: | 0 1 2");
  CHECK(plan.version() == 0);
}

TEST_CASE("round plan: a round waits for all and has them in the order of the workers") {
  RoundPlan plan = Begun(3, 3);
  plan.Offer({2, 1}, 0);
  plan.Offer({1, 1}, 0);
  CHECK(NextText(plan) == "");
  plan.Offer({0, 1}, 0);
  CHECK(NextText(plan) == "2: 0 1 2 |");
  CHECK(NextText(plan) == "");
  CHECK(plan.version() == 1);
}

TEST_CASE(
    "round plan: with a backup worker the last gradient comes too late and is answered with the next round") {
  RoundPlan plan = Begun(3, 2);
  plan.Offer({2, 1}, 0);
  plan.Offer({0, 1}, 0);
  CHECK(NextText(plan) == "2: 0 2 |");
  plan.Offer({1, 1}, 0);  // of the weights before the round
  plan.Offer({0, 1}, 1);
  CHECK(NextText(plan) == "");
  plan.Offer({2, 1}, 1);
  CHECK(NextText(plan) == "3: 0 2 | 1");
  CHECK(plan.version() == 2);
}

TEST_CASE("round plan: a round needs no more gradients than there are workers that can still give one") {
  RoundPlan plan = Begun(3, 2);
  plan.Offer({0, 1}, 0);
  plan.Offer({1, 1}, 0);
  CHECK(NextText(plan) == "2: 0 1 |");
  plan.Leave(0);
  plan.Offer({2, 1}, 0);  // too late
  CHECK(NextText(plan) == "");
  plan.Offer({1, 1}, 1);
  CHECK(NextText(plan) == "3: 1 | 2");
}

TEST_CASE("round plan: a worker that leaves is not waited for, and what it had offered is dropped") {
  RoundPlan plan = Begun(3, 3);
  plan.Offer({0, 1}, 0);
  plan.Offer({1, 1}, 0);
  plan.Leave(0);
  CHECK(NextText(plan) == "");
  plan.Leave(2);
  CHECK(NextText(plan) == "2: 1 |");
}

TEST_CASE("round plan: one that comes later is answered with a round and then takes part") {
  RoundPlan plan = Begun(2, 2);
  plan.Leave(1);
  plan.Offer({1, 9}, std::nullopt);
  CHECK(NextText(plan) == "");
  plan.Offer({0, 1}, 0);
  CHECK(NextText(plan) == "2: 0 | 1");
  plan.Offer({0, 1}, 1);
  CHECK(NextText(plan) == "");
  plan.Offer({1, 9}, 1);
  const std::optional<RoundDecision> round = plan.Next();
  REQUIRE(round.has_value());
  REQUIRE(round->contributors.size() == 2);
  CHECK(round->contributors[1].incarnation == 9);
}

TEST_CASE("round plan: after the last round what is late is answered at once") {
  RoundPlan plan = Begun(3, 2, 1);
  plan.Offer({0, 1}, 0);
  plan.Offer({1, 1}, 0);
  CHECK(NextText(plan) == "2: 0 1 |");
  plan.Offer({2, 1}, 0);
  CHECK(NextText(plan) == "3: | 2");
  plan.Offer({0, 1}, 1);  // there is no round left for it
  CHECK(NextText(plan) == "4: | 0");
  CHECK(plan.version() == 1);
}

TEST_CASE("round plan: a worker that is absent is waited for, and goes on in the round that it left") {
  RoundPlan plan = Begun(2, 2);
  plan.Offer({0, 1}, 0);
  plan.Offer({1, 1}, 0);
  plan.Lose(1);  // its gradient of version 0 is dropped
  CHECK(NextText(plan) == "");
  const std::optional<StartPoint> point = plan.Return(1);
  REQUIRE(point.has_value());
  CHECK_FALSE(point->again);
  CHECK(point->version == 0);
  CHECK(point->local_step == 0);
  plan.Offer({1, 2}, 0);
  CHECK(NextText(plan) == "2: 0 1 |");
}

TEST_CASE("round plan: one that is back computes its last gradient again, since a ps may have missed it") {
  RoundPlan plan = Begun(2, 2);
  for (uint64_t version = 0; version < 3; ++version) {
    plan.Offer({0, 1}, version);
    plan.Offer({1, 1}, version);
    CHECK(plan.Next().has_value());
  }
  plan.Lose(1);
  for (int copy = 0; copy < 2; ++copy) {  // its Start may get lost too
    const std::optional<StartPoint> point = plan.Return(1);
    REQUIRE(point.has_value());
    CHECK(point->again);
    CHECK(point->version == 2);
    CHECK(point->local_step == 2);
  }
}

TEST_CASE("round plan: one that was lost before the first round begins with the others, who do not wait") {
  RoundPlan plan(3, 3, std::nullopt, {});
  for (int worker = 0; worker < 3; ++worker) plan.Expect(worker);
  plan.Lose(2);
  plan.Offer({0, 1}, std::nullopt);
  CHECK(NextText(plan) == "");
  CHECK_FALSE(plan.Return(2).has_value());
  plan.Lose(2);
  plan.Offer({1, 1}, std::nullopt);
  CHECK(NextText(plan) == "1: | 0 1");
  plan.Offer({0, 1}, 0);
  plan.Offer({1, 1}, 0);
  CHECK(NextText(plan) == "");
  CHECK(plan.Return(2)->version == 0);
  plan.Offer({2, 5}, 0);
  CHECK(NextText(plan) == "2: 0 1 2 |");
}

TEST_CASE("round plan: with a backup worker one that returns makes up for another that is absent") {
  RoundPlan plan = Begun(3, 2);
  plan.Lose(0);
  plan.Lose(1);
  plan.Offer({2, 1}, 0);
  CHECK(NextText(plan) == "");
  plan.Return(1);
  plan.Offer({1, 2}, std::nullopt);
  CHECK(NextText(plan) == "2: | 1");
  plan.Offer({1, 2}, 0);
  CHECK(NextText(plan) == "3: 1 2 |");
}

TEST_CASE("round plan: ended early, no round is decided any more and those that wait are answered") {
  RoundPlan plan = Begun(3, 3);
  for (const int worker : {0, 1, 2}) plan.Offer({worker, 1}, 0);
  CHECK(NextText(plan) == "2: 0 1 2 |");
  plan.Offer({1, 1}, 1);
  plan.EndHere();
  CHECK(NextText(plan) == "3: | 1");
  plan.Offer({2, 1}, 1);
  CHECK(NextText(plan) == "4: | 2");
  plan.EndHere();
  CHECK(plan.version() == 1);
}

TEST_CASE("round plan: begun at a checkpoint, versions, the total and local steps go on from there") {
  RoundPlan plan(2, 2, 12, {10, {10, 7}});
  for (int worker = 0; worker < 2; ++worker) plan.Expect(worker);
  for (int worker = 0; worker < 2; ++worker) plan.Offer({worker, 1}, std::nullopt);
  CHECK(NextText(plan) == "1: | 0 1");
  CHECK(plan.version() == 10);
  plan.Lose(1);
  const std::optional<StartPoint> before = plan.Return(1);
  REQUIRE(before.has_value());
  CHECK_FALSE(before->again);
  CHECK(before->version == 10);
  CHECK(before->local_step == 7);
  for (int worker = 0; worker < 2; ++worker) plan.Offer({worker, 1}, 10);
  CHECK(NextText(plan) == "2: 0 1 |");
  plan.Lose(1);
  const std::optional<StartPoint> after = plan.Return(1);
  REQUIRE(after.has_value());
  CHECK(after->again);
  CHECK(after->version == 10);
  CHECK(after->local_step == 7);
  for (int worker = 0; worker < 2; ++worker) plan.Offer({worker, 1}, 11);
  CHECK(NextText(plan) == "3: 0 1 |");
  plan.Offer({0, 1}, 12);
  CHECK(NextText(plan) == "4: | 0");
  CHECK(plan.version() == 12);
}

TEST_CASE(
    "round plan: begun where its last round is over, those that ask are answered and none contributes") {
  RoundPlan plan(1, 1, 10, {10, {10}});
  plan.Offer({0, 1}, std::nullopt);
  CHECK(NextText(plan) == "1: | 0");
  plan.Offer({0, 1}, 10);
  CHECK(NextText(plan) == "2: | 0");
  CHECK(plan.version() == 10);
}

}  // namespace
}  // namespace dtrain
