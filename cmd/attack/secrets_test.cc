// What a stranger learns by asking: nothing of the run, little of its settings, and no data.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>

#include "cmd/testing/honest_run.h"

namespace dtrain::testing {
namespace {

constexpr milliseconds kNoMore{300};  // after this long no answer comes any more
// So many differences of settings are told with both values, to all strangers together.
constexpr int kValuesTold = 20;

// Whether any byte of the answers is of the run's id. `answers`: how many came.
bool HearsRunId(Stranger& stranger, uint64_t run_id, int* answers) {
  const std::string bytes(reinterpret_cast<const char*>(&run_id), sizeof run_id);
  bool heard = false;
  while (stranger.Receive(kNoMore) != nullptr) {
    ++*answers;
    heard = heard || Contains(std::string(stranger.message().header.text()), bytes);
  }
  return heard;
}

void AskEverything(Stranger& stranger) {
  stranger.Send(0, [](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString("step"), 1, builder.CreateString(""));
  });
  for (const uint64_t request : {uint64_t{0}, uint64_t{7}}) {
    stranger.Send(request, [](auto& builder) { return wire::CreateReady(builder); });
    stranger.Send(request, [](auto& builder) { return wire::CreatePull(builder, 0, true); });
    stranger.Send(request, [](auto& builder) { return wire::CreateNeedStep(builder); });
    stranger.Send(request, [](auto& builder) { return wire::CreateWaitEnd(builder); });
    stranger.Send(request, [](auto& builder) { return wire::CreateReadPiece(builder, 1, 0, 0); });
    stranger.Send(request, [](auto& builder) { return wire::CreateNeedBatch(builder, 1, 0, true, 1); });
    stranger.Send(request, [](auto& builder) { return wire::CreateHookRequest(builder, true); });
    stranger.Send(request, [](auto& builder) { return wire::CreateBye(builder); });
  }
}

TEST_CASE("attack: no answer to who has not joined names the run") {
  HonestRun run;
  int answers = 0;
  for (const net::NodeId mark : {net::NodeId{0}, net::NodeId{1}}) {
    Stranger stranger(run.address(), (net::NewNodeId() & ~net::NodeId{1}) | mark);
    AskEverything(stranger);
    CHECK_FALSE(HearsRunId(stranger, run.run().id, &answers));
  }
  Stranger stranger(run.address());
  HelloWords words = run.Words();
  words.index = 0;  // in use
  stranger.Send(EncodeHello(words));
  words.index = 77;
  stranger.Send(EncodeHello(words));
  words = run.Words();
  words.settings.clear();
  stranger.Send(EncodeHello(words));
  words.protocol = 1;
  stranger.Send(EncodeHello(words));
  words = run.Words();
  words.ps = 3;
  stranger.Send(EncodeHello(words));
  CHECK_FALSE(HearsRunId(stranger, run.run().id, &answers));
  CHECK(answers > 0);
  run.CheckGoesOn();
  run.CheckEnds();
}

// What the ps says to a Hello, asked again while it says to wait; empty: nothing.
std::string RefusalOf(Stranger& stranger, const HelloWords& words) {
  const TimePoint deadline = Clock::now() + std::chrono::seconds(3);
  while (Clock::now() < deadline) {
    REQUIRE(stranger.Send(EncodeHello(words)));
    const wire::Refuse* const refusal = stranger.ReceiveA<wire::Refuse>(kNoMore);
    if (refusal != nullptr && refusal->reason() != wire::Reason::NotReady) return refusal->text()->str();
    stranger.ReceiveA<wire::Welcome>(milliseconds(30));
  }
  return "";
}

// A stranger who knows no value says Hello again and again, each time with what the last refusal told it.
TEST_CASE("attack: by wrong Hellos a stranger learns few values of the config, however often it asks") {
  HonestRun run;
  const Settings ours = RunSettings(run.config());
  constexpr size_t kAsked = kValuesTold + 10;
  REQUIRE(ours.size() > kAsked);
  HelloWords words = run.Words();
  for (auto& [key, value] : words.settings) value = "a guess";
  int told = 0;
  auto stranger = std::make_unique<Stranger>(run.address());
  for (size_t i = 0; i < kAsked; ++i) {
    if (i % 8 == 0) stranger = std::make_unique<Stranger>(run.address());  // as another one
    const auto& [key, value] = ours[i];
    if (Contains(RefusalOf(*stranger, words), key + " is " + value + " on ps 0")) ++told;
    // Whatever it was told, it goes on to the next key: a stranger may know some from elsewhere.
    words.settings[i].second = value;
  }
  CHECK(told > 0);  // people need it to mend their file
  CHECK(told <= kValuesTold);
  run.CheckGoesOn();
  run.CheckEnds();
}

TEST_CASE("attack: with data.split: feed a stranger gets no batch, even if it knows the run's id") {
  const ReservedPort port;
  HonestJob job;
  job.model = "model: {kind: softmax, inputs: 784, outputs: 10}\n";
  job.data = "data: {train: {format: synthetic, name: digits, rows: 600}, split: feed}\n";
  job.sets = {fmt::format("cluster.worker=[\"{}\", \"localhost:2\"]", port.address())};
  HonestRun run(job);
  Stranger stranger(port.address());
  int answers = 0;
  for (const uint64_t token : {uint64_t{0}, uint64_t{1}}) {
    stranger.Send(1, [&](auto& builder) { return wire::CreateNeedBatch(builder, 1, 0, true, token); });
  }
  stranger.Send(0, [](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString("step"), 1, builder.CreateString(""));
  });
  CHECK_FALSE(HearsRunId(stranger, run.run().id, &answers));
  CHECK(answers > 0);
  stranger.set_run(run.run());
  for (const uint64_t token : {uint64_t{0}, uint64_t{1}, run.run().id}) {
    stranger.Send(1, [&](auto& builder) { return wire::CreateNeedBatch(builder, 1, 0, true, token); });
    CHECK(stranger.ReceiveA<wire::DataBatch>(kNoMore) == nullptr);
  }
  run.CheckGoesOn();
  run.CheckEnds();
}

}  // namespace
}  // namespace dtrain::testing
