// SaveDeskFixture: ps 0's SaveDesk beside a ps 1 and a saver of the chief that say what the test makes them
// say.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_test_util.h"
#include "trainer/ps/save_desk.h"

namespace dtrain {

constexpr net::NodeId kSaver = 6;
constexpr net::NodeId kPs1 = 100;
constexpr uint32_t kTerm = 3;
constexpr double kEverySecs = 10;

inline Config Saving(TrainMode mode, int ps = 2) {
  Config config = LinearCluster(ps, 1, 100);
  config.train.mode = mode;
  config.checkpoint.dir = testing::NewDirectory();
  config.checkpoint.every_secs = 0;
  return config;
}

inline Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

struct SaveDeskFixture : PsFixture {
  explicit SaveDeskFixture(const Config& of, bool joint_writes = false)
      : PsFixture(of),
        directory(config.checkpoint.dir),
        log("ps 0", LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}),
        keeper(config, shard, rule, outbox, [this] { desk.OnKept(); }),
        joint(config, layout, directory, "ps 0 on here", log),
        desk({config, members, outbox, rule, keeper, history, log, joint_writes ? &joint : nullptr,
              [this] { return step; }, [this] { return "at step " + std::to_string(step); }}) {
    history.term = kTerm;
    if (config.cluster.ps.size() > 1) members.At({Role::kPs, 1}).node = kPs1;
    desk.set_ended([this](const std::string& error) { ended.push_back(error); });
  }

  // ps 1, where there is one, has kept its range for checkpoint `number`.
  void Kept(uint64_t number) {
    if (config.cluster.ps.size() == 1) return;
    const net::Message state =
        Make([&](auto& builder) { return wire::CreateCutState(builder, number, false, 0, 0); });
    desk.OnCutState(members.At({Role::kPs, 1}), *net::Decode(state)->body_as_CutState());
  }
  // The saver asks, and tells how checkpoint `handled` ended.
  void AskSave(uint64_t handled, const std::string& path = "", const std::string& error = "",
               uint32_t term = kTerm) {
    const net::Message question = Make([&](auto& builder) {
      const auto where = path.empty() ? 0 : builder.CreateString(path);
      return wire::CreateAskSave(builder, term, handled, where, builder.CreateString(error));
    });
    desk.OnAskSave(kSaver, ++request, *net::Decode(question)->body_as_AskSave());
  }
  // Whether the saver may give checkpoint `number` its name.
  bool Confirmed(uint64_t number, uint32_t term = kTerm) {
    const net::Message question =
        Make([&](auto& builder) { return wire::CreateConfirmSave(builder, number, term); });
    desk.OnConfirm(kSaver, ++request, *net::Decode(question)->body_as_ConfirmSave());
    const wire::Envelope& answer = channel.sent.back().envelope();
    CHECK(answer.request() == request);
    const wire::Refuse* refuse = answer.body_as_Refuse();
    CHECK((refuse != nullptr || answer.body_type() == wire::Body::Ack));
    return refuse == nullptr;
  }
  // A worker asks for a checkpoint.
  void Save(bool best, double loss = 0) {
    best ? desk.AskBest({loss, 0.5}) : desk.OnSave();
  }
  // One that was asked for, from the cut to the end.
  void Complete(uint64_t number) {
    Kept(number);
    AskSave(number, "dir/step");
  }
  void StepTo(int64_t last) {
    while (step < last) {
      ++step;
      desk.OnStep();
    }
  }

  // What ps 1 was told; null: nothing since the last look.
  const wire::Cut* LastCut() {
    told = Take(kPs1);
    return told.empty() ? nullptr : told.back().envelope().body_as_Cut();
  }
  // The order that the saver has got since the last look; null: none.
  const wire::SaveOrder* Order() {
    told = Take(kSaver);
    return told.empty() ? nullptr : told.back().envelope().body_as_SaveOrder();
  }
  std::vector<FakeChannel::Sent> Take(net::NodeId to) {
    std::vector<FakeChannel::Sent> taken;
    for (FakeChannel::Sent& sent : channel.sent) {
      if (sent.to == to) taken.push_back(std::move(sent));
    }
    channel.sent.clear();
    return taken;
  }
  bool Logged(const std::string& text) const {
    return testing::FileContent(log.path()).find(text) != std::string::npos;
  }

  CheckpointDirectory directory;
  Logger log;
  RunHistory history;
  CutKeeper keeper;
  JointSave joint;
  SaveDesk desk;
  int64_t step = 0;
  uint64_t request = 0;
  std::vector<std::string> ended;
  std::vector<FakeChannel::Sent> told;
};

}  // namespace dtrain
