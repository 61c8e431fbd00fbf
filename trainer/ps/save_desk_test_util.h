// SaveDeskFixture: ps 0's SaveDesk and what writes its checkpoints, beside a ps 1 that says and writes what
// the test makes it say and write.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/ps/ps_test_util.h"
#include "trainer/ps/save_desk.h"
#include "trainer/ps/shared_directory.h"

namespace dtrain {

constexpr net::NodeId kPs1 = 100;
constexpr RunId kSaveRun{77, 3};
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
  explicit SaveDeskFixture(const Config& of)
      : PsFixture(of),
        directory(config.checkpoint.dir),
        log("ps 0", LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}),
        keeper(config, shard, rule, outbox, [this] { desk.OnKept(); }),
        joint(
            config, layout, directory, "ps 0 on here", [this](size_t, uint64_t, int64_t) { ++pieces_asked; },
            log),
        desk({config, members, outbox, rule, keeper, history, log, joint,
              [this](const Member&) { return sees_directory; }, [this] { return step; },
              [this] { return "at step " + std::to_string(step); }}) {
    history.run = kSaveRun;
    if (config.cluster.ps.size() > 1) {
      members.At({Role::kPs, 1}).node = kPs1;
      ps1 = std::make_unique<PsFixture>(config, 1);
    }
    desk.set_ended([this](const std::string& error) { ended.push_back(error); });
  }

  void Tell(const net::Message& state) {
    desk.OnCutState(members.At({Role::kPs, 1}), *net::Decode(state)->body_as_CutState());
  }
  // ps 1, where there is one, has kept its range for checkpoint `number`, of the step of now.
  void Kept(uint64_t number) {
    if (ps1 == nullptr) return;
    Tell(Make([&](auto& builder) { return wire::CreateCutState(builder, number, false, 0, 0); }));
  }
  // ps 1 fails at its part, once it is told to write.
  void FailsToWrite(uint64_t number, const std::string& why) {
    WaitForOrder();
    Tell(Make([&](auto& builder) {
      return wire::CreateCutState(builder, number, false, builder.CreateString(why), 0);
    }));
    WaitForEnd();
  }
  // ps 1 writes its part of the checkpoint `number`, of the step `of`, and the save ends.
  void Written(uint64_t number, int64_t of) {
    if (ps1 != nullptr) {
      WaitForOrder();
      ShardSaver saver(layout, 1, 0);
      saver.Begin(number, ps1->shard.TakeCut(), directory.TemporaryPath(of, SaveToken(kSaveRun, number)));
      PollUntil([&] { return saver.Poll(); });
      REQUIRE(saver.Of(number)->error == "");
      Tell(Make([&](auto& builder) {
        return wire::CreateCutState(builder, number, true, 0,
                                    builder.CreateVector(saver.Of(number)->checksums));
      }));
    }
    WaitForEnd();
  }
  // One that was asked for at the step of now, from the cut to the end.
  void Complete(uint64_t number) {
    const int64_t of = step;
    Kept(number);
    Written(number, of);
  }
  // A worker asks for a checkpoint.
  void Save(bool best, double loss = 0) { best ? desk.AskBest({loss, 0.5}) : desk.OnSave(); }
  void StepTo(int64_t last) {
    while (step < last) {
      ++step;
      desk.OnStep();
    }
  }
  // The next checkpoint is not begun by the look at how this one ends: time stands still.
  void WaitForEnd() {
    const size_t before = ended.size();
    const uint64_t number = history.last_save;
    const TimePoint now = Clock::now();
    PollUntil([&] {
      desk.Tick(now);
      return ended.size() > before || history.last_save > number;
    });
  }
  void WaitForOrder() {
    PollUntil([&] {
      desk.Tick(Clock::now());
      const wire::Cut* cut = LastCut();
      return cut != nullptr && cut->write();
    });
  }

  // What ps 1 was told; null: nothing since the last look.
  const wire::Cut* LastCut() {
    told = Take(kPs1);
    return told.empty() ? nullptr : told.back().envelope().body_as_Cut();
  }
  std::vector<FakeChannel::Sent> Take(net::NodeId to) {
    std::vector<FakeChannel::Sent> taken;
    for (FakeChannel::Sent& sent : channel.sent) {
      if (sent.to == to) taken.push_back(std::move(sent));
    }
    channel.sent.clear();
    return taken;
  }
  std::string PathOf(const std::string& name) const { return directory.PathOf(name); }
  bool Logged(const std::string& text) const {
    return testing::FileContent(log.path()).find(text) != std::string::npos;
  }

  CheckpointDirectory directory;
  Logger log;
  RunHistory history;
  bool sees_directory = true;  // ps 1
  int pieces_asked = 0;
  CutKeeper keeper;
  JointSave joint;
  SaveDesk desk;
  int64_t step = 0;
  std::unique_ptr<PsFixture> ps1;
  std::vector<std::string> ended;
  std::vector<FakeChannel::Sent> told;
};

}  // namespace dtrain
