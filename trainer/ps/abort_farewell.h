// How a ps 0 whose run has failed, or was stopped, tells everybody before it goes.
// Thread: the ps loop, after its end.
#pragma once

#include <string>

#include "base/clock.h"
#include "net/channel.h"
#include "trainer/config/config.h"
#include "trainer/ps/membership.h"
#include "trainer/ps/outbox.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

struct AbortNews {
  TaskId from;
  int exit_code = 0;
  const std::string& text;
  const RunSummary* summary = nullptr;  // of a run that was stopped; null: of one that failed
};

// Repeats it to each `every` until it has said Bye or is gone, for a second at most: a connection that closes
// takes along what its peer has not read yet. Those who are on their way to a run that has failed in its
// start are waited for as well, two seconds at most: they would wait for ps 0 until their deadline.
void SayFarewell(const AbortNews& news, milliseconds every, Membership& members, net::Channel& channel,
                 Outbox& outbox);

}  // namespace dtrain
