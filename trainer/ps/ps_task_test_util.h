// PsTaskFixture: the parts of a ps, its PsTask, and the parts that its leader acts on.
#pragma once

#include <optional>
#include <string>

#include "base/testing/files.h"
#include "net/inproc_transport.h"
#include "trainer/ps/ps_server.h"
#include "trainer/ps/ps_test_util.h"

namespace dtrain {

inline RunHistory OfTestRun() {
  RunHistory history;
  history.run = kTestRun;
  return history;
}

struct PsTaskFixture : PsFixture {
  explicit PsTaskFixture(const Config& of, int ps = 0)
      : PsFixture(of, ps),
        log(TaskName({Role::kPs, ps}), LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}),
        task{config, {Role::kPs, ps}, layout, channel, transport, hooks, log, {}, {}, {}},
        keeper({config, shard, rule, outbox, leader, layout, ps, log}),
        filler({config, layout, ps, shard, log, [this] { return leader->SeesDirectory(); },
                [this](uint64_t number, int64_t piece) { leader->AskForPiece(number, piece); },
                [this](const FillOutcome& outcome) { leader->OnFilled(outcome); }}) {}
  ~PsTaskFixture() { leader.reset(); }  // it may have threads that use the rest
  // `of`: the rule that gets the leader's rounds.
  LeaderParts PartsWith(UpdateRule& of) {
    return {task,    history, activity,
            members, outbox,  of,
            keeper,  filler,  [this] {
              return std::optional<ShardReport>(shard.Report()); }};
  }
  LeaderParts Parts() { return PartsWith(rule); }
  std::string Logged() const { return testing::FileContent(log.path()); }
  // The last message sent.
  const FakeChannel::Sent& Last() const {
    DT_CHECK(!channel.sent.empty());
    return channel.sent.back();
  }

  net::InprocTransport transport;
  ExitHooks hooks;
  Activity activity;
  RunHistory history = OfTestRun();
  Logger log;
  PsTask task;
  SnapshotKeeper keeper;
  RangeFiller filler;
};

}  // namespace dtrain
