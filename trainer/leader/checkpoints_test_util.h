// CheckpointsFixture: the Checkpoints and the SnapshotKeeper of ps 0, and a ps 1 that the test plays.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/leader/checkpoints.h"
#include "trainer/ps/ps_task_test_util.h"
#include "trainer/shard/shared_directory.h"

namespace dtrain {

constexpr net::NodeId kPs1 = 100;
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

// A FakeLeader with Checkpoints.
class SavingLeader : public FakeLeader {
 public:
  explicit SavingLeader(std::optional<Checkpoints>& checkpoints) : checkpoints_(checkpoints) {}
  void OnSnapshot(int, uint64_t number, const ShardSaver::Outcome* part) override {
    checkpoints_->OnOwnSnapshot(number, part);
  }

 private:
  std::optional<Checkpoints>& checkpoints_;
};

struct CheckpointsFixture : PsTaskFixture {
  // `begun`: the run was begun before and goes on.
  explicit CheckpointsFixture(const Config& of, bool begun = false) : PsTaskFixture(of) {
    history.begun = begun;
    Lead(std::make_unique<SavingLeader>(checkpoints));
    checkpoints.emplace(Checkpoints::Parts{parts, rounds, steps, leases, positions,
                                           [this](const std::string& error) { ended.push_back(error); }});
    if (config.cluster.ps.size() > 1) {
      members.Ps(1).node = kPs1;
      members.Ps(1).sees_directory = true;
      ps1 = std::make_unique<PsFixture>(config, 1);
    }
    there_ = testing::NamesIn(config.checkpoint.dir);
  }

  int64_t step() const { return steps.applied(); }
  void SetStep(int64_t step) { steps.BeginAt(step); }
  void StepTo(int64_t last) {
    while (step() < last) {
      SetStep(step() + 1);
      checkpoints->OnStep();
    }
  }
  // Whether a gradient of the newest version that a worker offers is held: no round is decided.
  bool Held() {
    const size_t before = rule.rounds.size();
    rounds.Offer({0, 0}, static_cast<uint64_t>(rounds.version()));
    return rule.rounds.size() == before;
  }
  // Whether such a gradient is answered without being in a round.
  bool Closed() { return !Held() && rule.rounds.back().contributors.empty(); }

  void Tick(TimePoint now) {
    checkpoints->Tick(now);
    keeper.Tick();
  }
  void Tell(const net::Message& state) {
    checkpoints->OnSnapshotState(members.Ps(1), *net::Decode(state)->body_as_Report()->snapshot());
  }
  // ps 1, if any, has its snapshot for checkpoint `number` at the current step.
  void Kept(uint64_t number) {
    if (ps1 == nullptr) return;
    Tell(Make([&](auto& builder) {
      return wire::CreateReport(builder, 0, wire::CreateSnapshotState(builder, number, false, 0, 0));
    }));
  }
  // ps 1 is told to write its part, and fails.
  void FailsToWrite(uint64_t number, const std::string& why) {
    WaitForOrder();
    Fails(number, why);
  }
  // ps 1 says that it has no part.
  void Fails(uint64_t number, const std::string& why) {
    Tell(Make([&](auto& builder) {
      return wire::CreateReport(
          builder, 0, wire::CreateSnapshotState(builder, number, false, builder.CreateString(why), 0));
    }));
    WaitForEnd();
  }
  // ps 1 writes its part of checkpoint `number` of step `of`, and the save ends.
  void Written(uint64_t number, int64_t of) {
    if (ps1 != nullptr) {
      WaitForOrder();
      ShardSaver saver(layout, 1, 0);
      saver.Begin(number, ps1->shard.TakeSnapshot(),
                  checkpoints->directory().TemporaryPath(of, SaveToken(kTestRun, number)));
      PollUntil([&] { return saver.Poll(); });
      REQUIRE(saver.Of(number)->error == "");
      Tell(Make([&](auto& builder) {
        const auto checksums = builder.CreateVector(saver.Of(number)->part.checksums);
        return wire::CreateReport(builder, 0, wire::CreateSnapshotState(builder, number, true, 0, checksums));
      }));
    }
    WaitForEnd();
  }
  // A checkpoint at the current step, from the snapshots to the end.
  void Complete(uint64_t number) {
    const int64_t of = step();
    Kept(number);
    Written(number, of);
  }
  static EvaluationFigures FiguresOf(double loss) {
    EvaluationFigures figures;
    figures.loss = loss;
    figures.accuracy = 0.5;
    return figures;
  }
  // A worker asks for a checkpoint.
  void Save(bool best, double loss = 0) {
    best ? checkpoints->AskBest(FiguresOf(loss)) : checkpoints->AskUnlessLast();
  }
  // Looks for the end of the checkpoint at a fixed time, so that the next one does not begin.
  void WaitForEnd() {
    const size_t before = ended.size();
    const uint64_t number = history.last_save;
    const TimePoint now = Clock::now();
    PollUntil([&] {
      Tick(now);
      return ended.size() > before || history.last_save > number;
    });
  }
  void WaitForOrder() {
    PollUntil([&] {
      Tick(Clock::now());
      const wire::SnapshotOrder* order = LastOrder();
      return order != nullptr && order->write();
    });
  }

  // The last order to ps 1; null: none since the last call.
  const wire::SnapshotOrder* LastOrder() {
    told_ = Take(kPs1);
    const wire::Order* order = told_.empty() ? nullptr : told_.back().envelope().body_as_Order();
    return order == nullptr ? nullptr : order->snapshot();
  }
  // How many pieces ps 1 was asked for since the last call. ps 1 was sent nothing else.
  size_t PiecesAsked() {
    const std::vector<FakeChannel::Sent> told = Take(kPs1);
    for (const FakeChannel::Sent& sent : told) CHECK(sent.envelope().body_type() == wire::Body::ReadPiece);
    return told.size();
  }
  // Whether ps 0 has its snapshot for checkpoint `number`.
  bool Keeps(uint64_t number) {
    constexpr net::NodeId kAsks = 200;
    const net::Message question =
        Make([&](auto& builder) { return wire::CreateReadPiece(builder, number, 0); });
    std::vector<FakeChannel::Sent> before = std::exchange(channel.sent, {});
    keeper.OnReadPiece(kAsks, *net::Decode(question)->body_as_ReadPiece());
    return !std::exchange(channel.sent, std::move(before)).empty();
  }
  std::vector<FakeChannel::Sent> Take(net::NodeId to) {
    std::vector<FakeChannel::Sent> taken;
    for (FakeChannel::Sent& sent : channel.sent) {
      if (sent.to == to) taken.push_back(std::move(sent));
    }
    channel.sent.clear();
    return taken;
  }
  // The names that are new in checkpoint.dir.
  std::vector<std::string> NewNames() const {
    std::vector<std::string> names;
    for (const std::string& name : testing::NamesIn(config.checkpoint.dir)) {
      if (std::count(there_.begin(), there_.end(), name) == 0) names.push_back(name);
    }
    return names;
  }
  const CheckpointDirectory& directory() const { return checkpoints->directory(); }
  std::string PathOf(const std::string& name) const { return directory().PathOf(name); }

  const LeaderParts parts = Parts();
  Rounds rounds{config, members, outbox, rule};
  Leases leases{config, layout, members, history, outbox, log};
  Steps steps{config, members, outbox, leases};
  RunPositions positions{config, members};
  std::unique_ptr<PsFixture> ps1;
  std::vector<std::string> ended;
  std::optional<Checkpoints> checkpoints;

 private:
  std::vector<FakeChannel::Sent> told_;
  std::vector<std::string> there_;
};

}  // namespace dtrain
