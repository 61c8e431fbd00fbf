#include "trainer/ps/cut_keeper.h"

#include <doctest/doctest.h>

#include <vector>

#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

constexpr net::NodeId kLeader = 6;

struct Fixture : PsFixture {
  Fixture()
      : PsFixture(LinearCluster(1, 1, 100)),
        keeper(config, shard, rule, outbox, [this] { told.push_back(keeper.number()); }) {}
  void Cut(uint64_t number, uint64_t round, bool drop = false) {
    const net::Message message =
        Make([&](auto& builder) { return wire::CreateCut(builder, number, round, drop); });
    keeper.OnCut(*net::Decode(message)->body_as_Cut());
  }
  // The answer; null: none was sent.
  const wire::Envelope* Read(uint64_t number, uint64_t piece) {
    channel.sent.clear();
    const net::Message message =
        Make([&](auto& builder) { return wire::CreateReadPiece(builder, number, piece); });
    keeper.OnReadPiece(kLeader, *net::Decode(message)->body_as_ReadPiece());
    return channel.sent.empty() ? nullptr : &channel.sent.back().envelope();
  }
  bool Silent(uint64_t number, uint64_t piece) { return Read(number, piece) == nullptr; }

  std::vector<uint64_t> told;
  CutKeeper keeper;
};

TEST_CASE(
    "cut keeper: the range is kept when the round is finished, and that is told again when asked again") {
  Fixture f;
  f.rule.finished = 4;
  f.Cut(1, 5);
  f.Cut(1, 5);
  f.keeper.Tick();
  CHECK(f.told.empty());
  CHECK(f.Silent(1, 0));
  f.rule.finished = 5;
  f.keeper.Tick();
  CHECK(f.told == std::vector<uint64_t>{1});
  f.keeper.Tick();
  f.Cut(1, 5);
  CHECK(f.told == std::vector<uint64_t>{1, 1});
}

TEST_CASE("cut keeper: before there are values nothing is kept") {
  Fixture f;
  HostShard empty(f.config, f.layout, 0);
  int told = 0;
  CutKeeper keeper(f.config, empty, f.rule, f.outbox, [&] { ++told; });
  keeper.Take(1, 0);
  CHECK(told == 0);
  empty.Initialise();
  keeper.Tick();
  CHECK(told == 1);
}

TEST_CASE("cut keeper: a piece is answered with the values of the cut and their checksum") {
  Fixture f;
  f.Cut(1, 0);
  const uint64_t sum = f.shard.checksum(0);
  f.Update();
  const wire::Envelope* answer = f.Read(1, 0);
  REQUIRE(answer != nullptr);
  const wire::Piece* piece = answer->body_as_Piece();
  REQUIRE(piece != nullptr);
  CHECK(piece->number() == 1);
  CHECK(piece->piece() == 0);
  CHECK(piece->checksum() == sum);
  const net::TensorView values = net::Tensor(f.channel.sent.back().message, *piece);
  CHECK(net::PayloadChecksum(values.data, values.size) == sum);
}

TEST_CASE("cut keeper: what is not kept is not answered, whatever number a peer says") {
  Fixture f;
  CHECK(f.Silent(0, 0));
  f.Cut(2, 0);
  CHECK(f.Silent(1, 0));
  CHECK(f.Silent(2, 1));
  CHECK(f.Silent(2, ~uint64_t{0}));
  f.Cut(2, 0, true);
  CHECK(f.Silent(2, 0));
}

TEST_CASE("cut keeper: a ps 0 whose queue is full is sent nothing, and nothing stays lent to it") {
  Fixture f;
  f.Cut(1, 0);
  f.channel.full = true;
  CHECK(f.Read(1, 0) == nullptr);
  CHECK_FALSE(f.outbox.late());
  f.channel.full = false;
  CHECK(f.Read(1, 0) != nullptr);
}

TEST_CASE(
    "cut keeper: a newer checkpoint takes the place of an older one, and nothing that is late of that") {
  Fixture f;
  f.Cut(1, 0);
  f.Cut(2, 9);
  CHECK(f.Silent(1, 0));
  f.Cut(1, 0);
  f.Cut(1, 0, true);
  f.rule.finished = 9;
  f.keeper.Tick();
  CHECK(f.told == std::vector<uint64_t>{1, 2});
  CHECK_FALSE(f.Silent(2, 0));
  f.Cut(1, 0, true);
  CHECK_FALSE(f.Silent(2, 0));
}

TEST_CASE("cut keeper: one that was dropped before it could be taken is not taken") {
  Fixture f;
  f.Cut(1, 5);
  f.Cut(1, 5, true);
  f.rule.finished = 5;
  f.keeper.Tick();
  f.Cut(1, 5);
  CHECK(f.told.empty());
  CHECK(f.Silent(1, 0));
}

}  // namespace
}  // namespace dtrain
