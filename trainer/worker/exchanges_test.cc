#include "trainer/worker/exchanges.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/model/layout.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using Blocks = std::vector<uint32_t>;

Config ConfigOf(TrainMode mode, int64_t in_flight = 1) {
  Config config;
  config.train.mode = mode;
  config.train.in_flight = in_flight;
  return config;
}

// Ranges with these numbers of blocks, each a variable; the last block of each, which travels first, has one
// value.
Layout LayoutOf(const std::vector<int64_t>& blocks) {
  Layout layout;
  for (const int64_t count : blocks) {
    const int64_t begin = layout.size;
    layout.size += (count - 1) * kBlockValues + 1;
    layout.ps.push_back({begin, layout.size});
    layout.variables.push_back({"", layout.size - begin, 1, false, 1, 1, begin});
  }
  return layout;
}

uint32_t BlockIn(const wire::Envelope& envelope) {
  const bool push = envelope.body_type() == wire::Body::Push;
  return push ? envelope.body_as_Push()->block() : envelope.body_as_Pull()->block();
}

// A ps's answer with a block of weights, all of one value.
struct Answer {
  float value = 0;
  uint64_t version = 0;
  uint64_t global_step = 0;
  uint32_t steps = 0;
  uint32_t held_us = 0;
};

// Exchanges with every ps; the test plays the ps.
struct Fixture {
  explicit Fixture(const Config& of, const std::vector<int64_t>& blocks)
      : config(of), layout(LayoutOf(blocks)), parameters(static_cast<size_t>(layout.size)) {
    config.cluster.ps.assign(blocks.size(), "127.0.0.1:10001");
    for (size_t ps = 0; ps < blocks.size(); ++ps) {
      const size_t most = MaxOpenRequests(Exchanges::WindowOf(config.train, layout, ps));
      links.emplace_back(channel, config.cluster, TaskId{Role::kPs, static_cast<int>(ps)}, most);
    }
    Connect();
  }
  // The exchanges of the layout as it is now.
  void Connect() {
    std::vector<Conversation*> pointers;
    for (Conversation& link : links) pointers.push_back(&link);
    exchanges = std::make_unique<Exchanges>(config, layout, pointers);
    exchanges->set_parameters(parameters.data());
  }
  net::NodeId NodeOf(size_t ps) const { return links[ps].node(); }
  size_t BufferBytes() const { return parameters.size() * sizeof(float); }

  // The blocks that this ps was asked for so far.
  Blocks SentTo(size_t ps) const {
    Blocks blocks;
    for (const FakeChannel::Sent& sent : channel.sent) {
      if (sent.to == NodeOf(ps)) blocks.push_back(BlockIn(sent.envelope()));
    }
    return blocks;
  }
  // The size of the block that was asked for by the oldest open request.
  int64_t OldestSize(size_t ps) const {
    for (const FakeChannel::Sent& sent : channel.sent) {
      if (sent.to != NodeOf(ps) || sent.envelope().request() != links[ps].oldest_open()) continue;
      return BlockOf(layout.ps[ps], BlockIn(sent.envelope())).size();
    }
    return 0;
  }
  // Weights of `size` values as the answer to `request`.
  void Take(size_t ps, uint64_t request, int64_t size, const Answer& answer = {}, uint64_t checksum = 0) {
    const std::vector<float> values(static_cast<size_t>(size), answer.value);
    net::Encoder encoder;
    const net::Message message = encoder.Weights(
        {1, 0, request}, {answer.version, answer.global_step, answer.steps, checksum, answer.held_us},
        {values.data(), values.size() * sizeof(float), nullptr, nullptr});
    exchanges->OnWeights(ps, message, *net::Decode(message));
  }
  // The answer to the oldest open request.
  void AnswerOldest(size_t ps, const Answer& answer = {}) {
    Take(ps, links[ps].oldest_open(), OldestSize(ps), answer);
  }

  Config config;
  Layout layout;
  FakeChannel channel;
  std::deque<Conversation> links;
  std::vector<float> parameters;
  std::unique_ptr<Exchanges> exchanges;
};

// The first `count` blocks that travel of a range of `all`.
Blocks First(uint32_t count, uint32_t all) {
  Blocks blocks;
  for (uint32_t block = all; block-- > all - count;) blocks.push_back(block);
  return blocks;
}

// Drops the messages, whose bytes are lent on their own.
void ForgetSent(Fixture& at) {
  for (Conversation& link : at.links) link.Clear();
  at.channel.sent.clear();
}

// All fields of a Push.
template <typename Value>
Value PushedIn(const net::Message& push) {
  const net::TensorView tensor = net::Tensor(push, *net::Decode(push)->body_as_Push());
  REQUIRE(tensor.size == sizeof(Value));
  Value value;
  std::memcpy(&value, tensor.data, sizeof(value));
  return value;
}

TEST_CASE("exchanges: blocks go out in order, and no more than the window of each ps holds") {
  Fixture at(ConfigOf(TrainMode::kAsync), {18, 17});
  at.exchanges->Pull();
  CHECK(at.SentTo(0) == First(16, 18));
  CHECK(at.SentTo(1) == First(16, 17));
  at.AnswerOldest(0);
  CHECK(at.SentTo(0) == First(17, 18));
  CHECK(at.SentTo(1) == First(16, 17));  // an answer makes room only with its own ps
  at.AnswerOldest(0);
  at.AnswerOldest(0);
  CHECK(at.SentTo(0) == First(18, 18));
}

TEST_CASE("exchanges: the blocks of a gradient follow those of the one before") {
  Fixture at(ConfigOf(TrainMode::kAsync, 2), {9});
  const net::LentBuffer first(at.BufferBytes());
  const net::LentBuffer second(at.BufferBytes());
  at.exchanges->Push(first, 1);
  at.exchanges->Push(second, 1);
  Blocks expected = First(9, 9);
  for (const uint32_t block : First(7, 9)) expected.push_back(block);
  CHECK(at.SentTo(0) == expected);
  CHECK(at.exchanges->open() == 2);
}

TEST_CASE("exchanges: each ps is sent its own part of the gradient") {
  Fixture at(ConfigOf(TrainMode::kAsync), {1, 1});
  const net::LentBuffer gradient(at.BufferBytes());
  gradient.floats()[0] = 3;
  gradient.floats()[1] = 4;
  at.exchanges->Push(gradient, 7);
  for (const size_t ps : {0, 1}) {
    const net::Message& message = at.channel.sent[ps].message;
    CHECK(net::Decode(message)->body_as_Push()->examples() == 7);
    CHECK(PushedIn<float>(message) == (ps == 0 ? 3 : 4));
  }
}

TEST_CASE("exchanges: weights land in the range of the ps that sent them, block by block") {
  Fixture at(ConfigOf(TrainMode::kAsync), {2, 1});
  std::vector<Range> arrived;
  at.exchanges->set_on_weights([&](const float*, Range part) { arrived.push_back(part); });
  at.exchanges->Pull();
  at.AnswerOldest(0, {1});
  at.AnswerOldest(1, {2});
  at.AnswerOldest(0, {3});
  CHECK(at.parameters[0] == 3);
  CHECK(at.parameters[kBlockValues - 1] == 3);
  CHECK(at.parameters[kBlockValues] == 1);
  CHECK(at.parameters[kBlockValues + 1] == 2);
  REQUIRE(arrived.size() == 3);
  CHECK(arrived[0].begin == kBlockValues);
  CHECK(arrived[1].begin == kBlockValues + 1);
  CHECK(arrived[2].begin == 0);
}

TEST_CASE("exchanges: the oldest is closed when every ps has answered all of it, and only once") {
  Fixture at(ConfigOf(TrainMode::kAsync, 2), {2, 1});
  CHECK_FALSE(at.exchanges->CloseOldest());
  const net::LentBuffer gradient(at.BufferBytes());
  at.exchanges->Push(gradient, 1);
  at.exchanges->Push(gradient, 1);
  at.AnswerOldest(1);
  at.AnswerOldest(0);
  CHECK_FALSE(at.exchanges->CloseOldest());
  at.AnswerOldest(0);
  CHECK(at.exchanges->awaits(0));
  CHECK(at.exchanges->CloseOldest());
  CHECK_FALSE(at.exchanges->CloseOldest());
  CHECK(at.exchanges->open() == 1);
  at.AnswerOldest(0);
  at.AnswerOldest(0);
  CHECK_FALSE(at.exchanges->CloseOldest());
  at.AnswerOldest(1);
  CHECK(at.exchanges->CloseOldest());
  CHECK(at.exchanges->open() == 0);
  CHECK_FALSE(at.exchanges->awaits(0));
}

// A range of 4 blocks on one ps with two variables. The second variable begins within block 1.
struct Announced : Fixture {
  Announced() : Fixture(ConfigOf(TrainMode::kAsync), {4}) {
    layout.variables = {layout.variables[0], layout.variables[0]};
    layout.variables[0].rows = layout.variables[1].offset = kBlockValues + 5;
    layout.variables[1].rows = layout.size - layout.variables[1].offset;
    Connect();
    exchanges->Announce(gradient, 7);
  }
  void Finish(size_t variable) {
    const Variable& one = layout.variables[variable];
    exchanges->Ready({one.offset, one.offset + one.size()});
  }
  const net::LentBuffer gradient{BufferBytes()};
};

TEST_CASE("exchanges: a block of an announced gradient goes out when all of its variables are ready") {
  Announced at;
  CHECK(at.SentTo(0).empty());
  CHECK(at.exchanges->open() == 1);
  at.Finish(1);
  CHECK(at.SentTo(0) == First(2, 4));
  CHECK(at.exchanges->steps() == 0);
  at.Finish(0);
  CHECK(at.SentTo(0) == First(3, 4));  // it counts with the last one
  at.exchanges->Push(at.gradient, 7, {0.5f, std::nullopt});
  CHECK(at.SentTo(0) == First(4, 4));
  CHECK(at.exchanges->steps() == -1);
  for (const FakeChannel::Sent& sent : at.channel.sent) {
    const wire::Push& push = *sent.envelope().body_as_Push();
    CHECK(push.examples() == 7);
    CHECK(push.loss().has_value() == (push.block() == 0));
  }
  for (int block = 0; block < 4; ++block) at.AnswerOldest(0);
  CHECK(at.exchanges->CloseOldest());
}

TEST_CASE(
    "exchanges: an announced gradient goes out whole if nothing was ready; variables come in any order") {
  Announced at;
  at.exchanges->Push(at.gradient, 7);
  CHECK(at.SentTo(0) == First(4, 4));
  Announced first;
  first.Finish(0);
  CHECK(first.SentTo(0).empty());  // the last block, which is the second variable's, is not ready
  first.Finish(1);
  CHECK(first.SentTo(0) == First(3, 4));
}

TEST_CASE("exchanges: an announced gradient is dropped with its exchange, and the next one goes out whole") {
  Announced at;
  at.Finish(1);
  ForgetSent(at);
  at.exchanges->DropOpen();
  CHECK_FALSE(at.gradient.lent());
  at.exchanges->Pull();
  CHECK(at.SentTo(0) == First(4, 4));
}

TEST_CASE("exchanges: an announced gradient waits for room behind the one before it") {
  Fixture at(ConfigOf(TrainMode::kAsync, 2), {10});
  const net::LentBuffer gradient(at.BufferBytes());
  at.exchanges->Push(gradient, 1);
  at.exchanges->Announce(gradient, 1);
  at.exchanges->Ready({0, at.layout.size});
  CHECK(at.SentTo(0).size() == 16);
  for (int block = 0; block < 10; ++block) at.AnswerOldest(0);
  CHECK(at.SentTo(0).size() == 19);
  CHECK(at.exchanges->CloseOldest());
  at.exchanges->Push(gradient, 1);
  CHECK(at.SentTo(0).size() == 20);
}

TEST_CASE("exchanges: an answer that comes twice counts once") {
  Fixture at(ConfigOf(TrainMode::kAsync, 2), {1});
  const net::LentBuffer gradient(at.BufferBytes());
  at.exchanges->Push(gradient, 1);
  at.exchanges->Push(gradient, 1);
  const uint64_t request = at.links[0].oldest_open();
  at.Take(0, request, 1, {5, 1, 10, 4});
  at.Take(0, request, 1, {6, 2, 20, 4});
  CHECK(at.parameters[0] == 5);
  CHECK(at.exchanges->steps() == 4 - 2);
  CHECK(at.exchanges->global_step() == 10);
  CHECK(at.exchanges->CloseOldest());
  CHECK_FALSE(at.exchanges->CloseOldest());
}

TEST_CASE("exchanges: steps and the global step are those that ps 0 says; the longest hold is of any") {
  Fixture at(ConfigOf(TrainMode::kAsync), {1, 1});
  at.exchanges->AddSteps(2);
  const net::LentBuffer gradient(at.BufferBytes());
  at.exchanges->Push(gradient, 1);
  at.AnswerOldest(0, {0, 1, 30, 5, 100});
  at.AnswerOldest(1, {0, 1, 40, 7, 900});
  CHECK(at.exchanges->steps() == 2 - 1 + 5);
  CHECK(at.exchanges->global_step() == 30);
  CHECK(at.exchanges->TakeHeld() == 900);
  CHECK(at.exchanges->TakeHeld() == 0);
}

TEST_CASE("exchanges: a gradient is lent while blocks of it wait for room, and dropped with its exchange") {
  Fixture at(ConfigOf(TrainMode::kAsync), {17});
  const net::LentBuffer gradient(at.BufferBytes());
  at.exchanges->Push(gradient, 1);
  ForgetSent(at);
  CHECK(gradient.lent());
  at.exchanges->DropOpen();
  CHECK_FALSE(gradient.lent());
}

TEST_CASE("exchanges: a gradient is given back when its last block is sent, not when it is answered") {
  Fixture at(ConfigOf(TrainMode::kAsync), {17});
  const net::LentBuffer gradient(at.BufferBytes());
  at.exchanges->Push(gradient, 1);
  at.AnswerOldest(0);
  ForgetSent(at);
  CHECK_FALSE(gradient.lent());
}

TEST_CASE("exchanges: after a rejoin what was open is dropped, and the next begins at its first block") {
  Fixture at(ConfigOf(TrainMode::kAsync, 2), {18, 1});
  const net::LentBuffer gradient(at.BufferBytes());
  at.exchanges->AddSteps(9);
  at.exchanges->Push(gradient, 1);
  at.exchanges->Push(gradient, 1);
  at.AnswerOldest(0, {1});
  const uint64_t old = at.links[0].oldest_open();
  ForgetSent(at);
  at.exchanges->DropOpen();
  CHECK(at.exchanges->open() == 0);
  CHECK(at.exchanges->steps() == 0);
  CHECK_FALSE(at.exchanges->awaits(0));
  at.exchanges->set_run({5, 3});
  at.exchanges->Pull();
  CHECK(at.SentTo(0) == First(16, 18));
  CHECK(at.SentTo(1) == First(1, 1));
  CHECK(RunIdOf(at.channel.sent[0].envelope()) == RunId{5, 3});
  at.Take(0, old, kBlockValues, {2});  // of the run before
  CHECK(at.parameters[16 * kBlockValues] == 0);
  CHECK(at.SentTo(0) == First(16, 18));
  for (int block = 0; block < 18; ++block) at.AnswerOldest(0, {4});
  at.AnswerOldest(1, {4});
  CHECK(at.parameters[0] == 4);
  CHECK(at.exchanges->CloseOldest());
}

TEST_CASE("exchanges: a pull that enters says how, another only asks for weights") {
  Fixture at(ConfigOf(TrainMode::kSync), {1});
  at.exchanges->Pull(Exchanges::Entry{{0, 2}, 6, true, 8});
  const wire::Pull& entering = *at.channel.sent[0].envelope().body_as_Pull();
  CHECK(entering.enter());
  CHECK(entering.workers()->size() == 2);
  CHECK(entering.clock() == 6);
  CHECK(entering.resume());
  CHECK(entering.version() == 8);
  at.AnswerOldest(0);
  REQUIRE(at.exchanges->CloseOldest());
  at.exchanges->Pull();
  CHECK_FALSE(at.channel.sent[1].envelope().body_as_Pull()->enter());
}

TEST_CASE(
    "exchanges: sync: a gradient says the oldest version of its weights, and answers of every ps count") {
  Fixture at(ConfigOf(TrainMode::kSync), {1, 1});
  const net::LentBuffer gradient(at.BufferBytes());
  at.exchanges->Pull();
  at.AnswerOldest(0, {0, 5});
  at.AnswerOldest(1, {0, 4});
  CHECK(at.exchanges->versions().torn());
  REQUIRE(at.exchanges->CloseOldest());
  at.exchanges->Push(gradient, 1);
  CHECK(at.channel.sent.back().envelope().body_as_Push()->version() == 4);
  at.AnswerOldest(0, {0, 8});
  CHECK(at.exchanges->versions().too_late() == 0);
  at.AnswerOldest(1, {0, 8});
  CHECK(at.exchanges->versions().too_late() == 1);
}

TEST_CASE("exchanges: async: staleness is what ps 0 applied between a gradient's weights and the gradient") {
  Fixture at(ConfigOf(TrainMode::kAsync), {1, 1});
  const net::LentBuffer gradient(at.BufferBytes());
  at.exchanges->Pull();
  at.AnswerOldest(0, {0, 10});
  at.AnswerOldest(1, {0, 50});
  REQUIRE(at.exchanges->CloseOldest());
  at.exchanges->Push(gradient, 1);
  at.AnswerOldest(0, {0, 14});
  at.AnswerOldest(1, {0, 90});
  CHECK(at.exchanges->staleness().all().count() == 1);
  CHECK(at.exchanges->staleness().all().sum() == 3);
}

TEST_CASE("exchanges: where parameters stay on a device a block is its address, there and back") {
  Fixture at(ConfigOf(TrainMode::kAsync), {2, 1});
  at.exchanges->PushAddresses();
  const net::LentBuffer addresses(3 * sizeof(uint64_t));
  for (uint64_t block = 0; block < 3; ++block) {
    reinterpret_cast<uint64_t*>(addresses.floats())[block] = 100 + block;
  }
  at.exchanges->Push(addresses, 1);
  for (const uint64_t block : {0, 1, 2}) {
    const FakeChannel::Sent& sent = at.channel.sent[block];
    CHECK(PushedIn<uint64_t>(sent.message) == 100 + (block == 2 ? 2 : BlockIn(sent.envelope())));
  }
  constexpr int64_t kAddressFloats = sizeof(uint64_t) / sizeof(float);
  for (const size_t ps : {0, 0, 1}) at.Take(ps, at.links[ps].oldest_open(), kAddressFloats, {1});
  CHECK(at.exchanges->CloseOldest());
  CHECK(at.parameters[0] == 0);
}

TEST_CASE("exchanges: weights that nobody asked for, of a wrong size or a wrong checksum end the task") {
  Fixture at(ConfigOf(TrainMode::kAsync), {1});
  const uint64_t other = at.links[0].NextRequest();
  at.links[0].Send(other, net::Message());
  CHECK_THROWS_WITH_AS(at.Take(0, other, 1), "ps 0 (127.0.0.1:10001) sent weights that were not asked for",
                       Failure);
  at.exchanges->Pull();
  CHECK_THROWS_WITH_AS(at.Take(0, at.links[0].oldest_open(), 2),
                       "ps 0 (127.0.0.1:10001) sent 8 bytes for a block of 4 bytes", Failure);
  at.links[0].Clear();
  at.exchanges->DropOpen();
  at.exchanges->Pull();
  CHECK_THROWS_WITH_AS(at.Take(0, at.links[0].oldest_open(), 1, {}, 1),
                       doctest::Contains("do not have the checksum"), Failure);
}

Config Compressing(net::Compression push, net::Compression pull, int64_t in_flight = 1) {
  Config config = ConfigOf(TrainMode::kAsync, in_flight);
  config.net.compress = {push, pull};
  return config;
}

// The values of a pushed block.
std::vector<float> DecompressedIn(const net::Message& push, int64_t count) {
  const wire::Push& said = *net::Decode(push)->body_as_Push();
  const net::TensorView tensor = net::Tensor(push, said);
  std::vector<float> values(static_cast<size_t>(count));
  REQUIRE(net::Decompress(static_cast<net::Compression>(said.form()), tensor.data, tensor.size, count,
                          values.data()));
  return values;
}

TEST_CASE("exchanges: a gradient goes out as net.compress.push says, and a rejoin drops what it leaves out") {
  Fixture at(Compressing(net::Compression::kTopk, net::Compression::kNone, 2), {2});
  const net::LentBuffer ones(at.BufferBytes()), zeros(at.BufferBytes());
  std::fill_n(ones.floats(), at.parameters.size(), 1.0f);
  const auto sum_of_last = [&] {
    const std::vector<float> values = DecompressedIn(at.channel.sent.back().message, kBlockValues);
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  at.exchanges->Push(ones, 1);
  CHECK(sum_of_last() == kBlockValues / 16);
  CHECK(at.exchanges->bytes_saved() > 0);
  at.exchanges->Push(zeros, 1);
  CHECK(sum_of_last() == kBlockValues / 16);
  ForgetSent(at);
  at.exchanges->DropOpen();
  at.exchanges->Push(zeros, 1);
  CHECK(sum_of_last() == 0);
}

TEST_CASE("exchanges: compressed weights are taken where they were asked for, and full ones always") {
  Fixture at(Compressing(net::Compression::kNone, net::Compression::kInt8), {1});
  const auto answer = [&](net::Compression form) {
    std::vector<std::byte> bytes(net::CompressedBytes(form, 1));
    const float value = 3;
    form == net::Compression::kNone ? static_cast<void>(std::memcpy(bytes.data(), &value, sizeof value))
                                    : net::Compress(form, &value, nullptr, 1, bytes.data());
    net::Encoder encoder;
    const net::Message message = encoder.Weights({1, 0, at.links[0].oldest_open()}, {1, 0, 0, 0, 0, 0, form},
                                                 {bytes.data(), bytes.size(), nullptr, nullptr});
    at.exchanges->OnWeights(0, message, *net::Decode(message));
    return at.parameters[0];
  };
  const net::LentBuffer gradient(at.BufferBytes());
  for (const net::Compression form : {net::Compression::kNone, net::Compression::kInt8}) {
    at.parameters[0] = 0;
    at.exchanges->Push(gradient, 1);
    CHECK(answer(form) == 3);
    CHECK(at.exchanges->CloseOldest());
  }
  at.exchanges->Push(gradient, 1);
  CHECK_THROWS_WITH_AS(answer(net::Compression::kBf16),
                       doctest::Contains("sent weights as bf16, and net.compress.pull = int8"), Failure);
}

}  // namespace
}  // namespace dtrain
