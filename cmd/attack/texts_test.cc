// Texts, figures and positions of a peer: none ends a task, none reaches a log as it is, and a task that
// fails ends in time whatever comes in.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <limits>

#include "cmd/testing/honest_run.h"

namespace dtrain::testing {
namespace {

constexpr size_t kLong = 1000000;  // nearly as long as a header may be
const std::string kForgedLine = "2026-01-01T00:00:00.000+00:00 ps 0 | saved /forged/step-000000009 in 0.01 s";
const std::string kHostile = "\x1b[2J\x1b]0;owned\x07 \r\n" + kForgedLine + "\n\x1b[31m\xc2\x9b 5m\xff";

// Lines of a log that a peer has written; and control characters.
void CheckClean(const std::string& log) {
  CHECK(Count("\n" + log, "\n" + kForgedLine) == 0);
  for (const char* bad : {"\x1b", "\x07", "\r", "\xc2\x9b"}) CHECK(Count(log, bad) == 0);
}

TEST_CASE("attack: control characters and line breaks of peers do not reach the log") {
  HonestRun run;
  HelloWords words = run.Words();
  words.process = words.version = words.address = words.host = kHostile;
  Stranger stranger(run.address());
  words.protocol = 1;
  stranger.Send(EncodeHello(words));
  words.protocol = net::kProtocol;
  words.settings[0].second = kHostile;
  stranger.Send(EncodeHello(words));
  words = run.Words();
  words.process = kHostile;
  words.checkpoint_dir = kHostile;
  REQUIRE(stranger.Join(words, kPatience));
  // Another one of the same index: the log names both.
  Stranger other(run.address());
  other.Send(EncodeHello(words));
  stranger.Send(0, [](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString(kHostile), 1, builder.CreateString(kHostile),
                                 0, 0, 0, 0, builder.CreateString(kHostile), 7);
  });
  stranger.Send(1, [](auto& builder) {
    return wire::CreateReady(builder, true, 5, 5, 0, builder.CreateString(kHostile), 5);
  });
  stranger.Send(0, [](auto& builder) {
    return wire::CreateAbort(builder, 1, wire::Role::Worker, 1, builder.CreateString(kHostile));
  });
  REQUIRE(run.ps().WaitForLine("ended with exit code 1"));
  run.CheckGoesOn();
  CheckClean(run.ps().standard_error());
  CheckClean(run.worker().standard_error());
  run.CheckEnds();
}

TEST_CASE("attack: a worker's reason to end the run reaches no log and no result as it is") {
  HonestRun run;
  Stranger member(run.address());
  REQUIRE(member.Join(run.Words(), kPatience));
  member.Send(1, [](auto& builder) {
    return wire::CreateAbort(builder, 3, wire::Role::Worker, 1, builder.CreateString(kHostile));
  });
  REQUIRE(run.ps().WaitForEnd());
  REQUIRE(run.worker().WaitForEnd());
  CheckClean(run.ps().standard_error());
  CheckClean(run.worker().standard_error());
}

TEST_CASE("attack: refusals and bad frames that repeat give few lines") {
  HonestRun run;
  const int before = Count(run.ps().standard_error(), "\n");
  HelloWords words = run.Words();
  for (int i = 0; i < 10; ++i) {
    Stranger stranger(run.address());
    for (int again = 0; again < 100; ++again) {
      words.process = fmt::format("stranger {} of {}", again, i);
      words.settings[0].second = fmt::format("value {}", again);
      stranger.Send(EncodeHello(words));
      stranger.SendBytes(fmt::format("no message {}", again));
      stranger.Send(0, [](auto& builder) {
        return wire::CreateHeartbeat(builder, builder.CreateString("step"), 1, builder.CreateString(""));
      });
    }
    while (stranger.Receive(milliseconds(100)) != nullptr) {
    }
  }
  CHECK(Count(run.ps().standard_error(), "\n") - before <= 40);
  run.CheckGoesOn();
  run.CheckEnds();
}

// What a member says once, each on a conversation of its own.
using Say = std::function<void(Stranger&)>;

std::vector<Say> LongThings() {
  const std::string text(kLong, 'x');
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Say> things;
  things.push_back([=](Stranger& member) {
    member.Send(0, [&](auto& builder) {
      const auto activity = builder.CreateString(text);
      return wire::CreateHeartbeat(builder, activity, ~uint64_t{0}, activity, ~uint32_t{0}, ~uint64_t{0},
                                   ~uint64_t{0}, std::numeric_limits<int32_t>::min(), activity, ~uint64_t{0});
    });
  });
  things.push_back([=](Stranger& member) {
    member.Send(1, [&](auto& builder) {
      return wire::CreateReady(builder, true, ~uint64_t{0}, ~uint64_t{0}, 0, builder.CreateString(text),
                               ~uint64_t{0}, true);
    });
  });
  things.push_back([=](Stranger& member) {
    member.Send(1, [&](auto& builder) {
      const std::vector<std::string> names(10000, std::string(40, '"'));
      const std::vector<double> shift(10000, 1e308);
      const auto classes = builder.CreateVectorOfStrings(names);
      const auto values = builder.CreateVector(shift);
      const auto form = wire::CreateInputForm(builder, classes, classes, values, values, -7);
      const auto data = wire::CreateDataFacts(builder, form, 1, std::numeric_limits<int64_t>::min(), true);
      return wire::CreateReady(builder, false, 0, 0, data);
    });
  });
  things.push_back([=](Stranger& member) {
    member.Send(1, [](auto& builder) { return wire::CreateReady(builder); });
    member.Send(2, [&](auto& builder) {
      const auto figures = builder.CreateString(std::string(kLong / 2, '['));
      const auto device = builder.CreateString(std::string(kLong / 2, '\x01'));
      return wire::CreateDone(builder, ~uint64_t{0}, nan, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max(), ~uint64_t{0}, ~uint64_t{0}, nan, figures,
                              device, nan);
    });
  });
  things.push_back([=](Stranger& member) {
    for (uint64_t step : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      member.Send(step + 1, [&](auto& builder) {
        return wire::CreateEvaluatedDirect(builder, step, ~uint64_t{0}, "{", R"({"rows":1e999,"loss":[]})");
      });
    }
  });
  things.push_back([=](Stranger& member) {
    member.Send(1, [](auto& builder) {
      const std::vector<uint64_t> squares(100000, ~uint64_t{0});
      return wire::CreateWaitEnd(builder, ~uint64_t{0}, builder.CreateVector(squares), true);
    });
    member.Send(2, [](auto& builder) {
      const std::vector<uint32_t> workers(200000, ~uint32_t{0});
      return wire::CreatePull(builder, ~uint32_t{0}, true, builder.CreateVector(workers), ~uint64_t{0}, true,
                              ~uint64_t{0});
    });
    const std::vector<float> gradient(100000, 1.0F);
    net::Encoder encoder;
    member.Send(encoder.Push(member.run().Envelope(3), ~uint32_t{0}, ~uint32_t{0}, 1,
                             {gradient.data(), gradient.size() * sizeof(float), nullptr, nullptr}));
  });
  things.push_back([=](Stranger& member) {
    member.Send(1, [&](auto& builder) { return wire::CreateHookRequest(builder, true, 0); });
    member.Send(0, [&](auto& builder) {
      return wire::CreateAbort(builder, std::numeric_limits<int32_t>::min(), wire::Role::Ps, ~uint32_t{0},
                               builder.CreateString(text));
    });
  });
  return things;
}

TEST_CASE("attack: no text and no figure of a member ends another task") {
  HonestRun run;
  HelloWords words = run.Words();
  const std::string text(kLong / 4, 'x');
  words.process = words.version = words.address = words.host = text;
  for (const Say& say : LongThings()) {
    Stranger member(run.address());
    REQUIRE(member.Join(words, kPatience));
    say(member);
    while (member.Receive(milliseconds(200)) != nullptr) {
    }
    member.Send(0, [](auto& builder) {
      return wire::CreateAbort(builder, 1, wire::Role::Worker, 1, builder.CreateString("bye"));
    });
    run.CheckGoesOn();
  }
  run.CheckEnds();
}

TEST_CASE("attack: a run that ends by a member's longest words ends with an exit code, not with an abort") {
  HonestRun run;
  Stranger member(run.address());
  REQUIRE(member.Join(run.Words(), kPatience));
  member.Send(0, [&](auto& builder) {
    return wire::CreateAbort(builder, 3, wire::Role::Worker, 1,
                             builder.CreateString(std::string(net::kMaxHeaderBytes - 512, 'x')));
  });
  CheckEnd(run.ps(), 3);
  CheckEnd(run.worker(), 3);
  CHECK(run.ps().standard_error().size() < kLong);
}

// A stranger is the first worker, so that the run takes what it says of the data.
TEST_CASE("attack: what the first worker says of its data and of the run before aborts no ps") {
  const auto ready = [](size_t names, char of, bool returning) {
    return [=](auto& builder) {
      const auto list = builder.CreateVectorOfStrings(std::vector<std::string>(names, std::string(40, of)));
      const auto values = builder.CreateVector(std::vector<double>(names, 1e308));
      const auto form = wire::CreateInputForm(builder, list, list, values, values, -7);
      const auto data = wire::CreateDataFacts(builder, form, 1, ~int64_t{0}, true, 1, true, true);
      const auto where = builder.CreateString(returning ? std::string(kLong / 4, of) : "");
      return wire::CreateReady(builder, returning, ~uint64_t{0}, 0, data, where, ~uint64_t{0});
    };
  };
  struct Taken {
    Taken()
        : cluster(1, 1,
                  HonestJob().model + HonestJob().data +
                      "train: {steps: 9, batch_size: 8}\ncheckpoint: {dir: " + NewDirectory() + "/ckpt}\n") {}
    const Cluster cluster;
    const std::unique_ptr<Process> ps = cluster.Start("ps", 0);
    Stranger worker{cluster.address("ps", 0)};
  };
  std::vector<std::unique_ptr<Taken>> runs;
  for (const bool returning : {false, true}) {
    for (const size_t names : {size_t{2}, size_t{4000}, size_t{10000}}) {
      runs.push_back(std::make_unique<Taken>());
      Taken& run = *runs.back();
      HelloWords words;
      words.settings = RunSettings(LoadConfig(run.cluster.config(), {}, {}));
      REQUIRE(run.worker.Join(words, kPatience));
      run.worker.Send(1, ready(names, names == 4000 ? '\x01' : '"', returning));
      run.worker.ReceiveA<wire::Start>(milliseconds(returning ? 100 : 500));
      run.ps->Signal(SIGTERM);
    }
  }
  for (const auto& run : runs) {
    REQUIRE(run->ps->WaitForEnd());
    const int code = run->ps->exit_code();
    CHECK((code <= 4 || code == 128 + SIGTERM));
  }
}

// Worker 0 is stopped and does not say Bye; Hellos come in faster than ps 0 reads them.
TEST_CASE("attack: a ps that fails ends in time while a flood comes in") {
  HonestRun run;
  Stranger member(run.address());
  REQUIRE(member.Join(run.Words(), kPatience));
  HelloWords words = run.Words();
  words.settings.clear();  // a small message that is dear to refuse
  std::string hellos;
  while (hellos.size() < kLong) hellos += ZmtpFrame(EncodeHello(words).header.text());
  std::vector<std::unique_ptr<Flood>> floods;
  for (int i = 0; i < 50; ++i) {
    floods.push_back(std::make_unique<Flood>([&hellos, address = run.address()] {
      const RawPeer peer(address);
      peer.Handshake();
      while (peer.Write(hellos, milliseconds(500))) {
      }
      return peer.open();
    }));
  }
  run.worker().Signal(SIGSTOP);
  member.Send(0, [](auto& builder) {
    return wire::CreateAbort(builder, 3, wire::Role::Worker, 1, builder.CreateString("diverged"));
  });
  CHECK(run.ps().WaitForEnd(milliseconds(15000)));
  floods.clear();
  run.worker().Signal(SIGKILL);
}

}  // namespace
}  // namespace dtrain::testing
