// PsTaskFixture: what a ps consists of, and the task that it is.
#pragma once

#include <string>

#include "base/testing/files.h"
#include "net/inproc_transport.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/ps_test_util.h"
#include "trainer/ps/run_history.h"

namespace dtrain {

struct PsTaskFixture : PsFixture {
  explicit PsTaskFixture(const Config& of, int ps = 0)
      : PsFixture(of, ps),
        log(TaskName({Role::kPs, ps}), LogOptions{LogLevel::kInfo, false, testing::NewDirectory(), false}),
        task{config, {Role::kPs, ps}, layout, channel, transport, hooks, log, {}, {}, {}} {}
  std::string Logged() const { return testing::FileContent(log.path()); }
  // What was sent last.
  const FakeChannel::Sent& Last() const {
    DT_CHECK(!channel.sent.empty());
    return channel.sent.back();
  }

  net::InprocTransport transport;
  ExitHooks hooks;
  RunHistory history;
  Logger log;
  PsTask task;
};

}  // namespace dtrain
