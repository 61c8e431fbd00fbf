// Traffic: the bytes that a run will move between its tasks: messages with gradients and weights, headers and
// payloads, as `--result` counts them. Other messages are few, with a few hundred bytes each; they and the
// transport's own bytes (ZMTP, TCP, IP) are not counted.
#pragma once

#include <cstdint>

#include "trainer/config/choices.h"
#include "trainer/model/layout.h"

namespace dtrain {

// The bytes to a ps and from it.
struct Traffic {
  double in = 0;  // double: a long run moves more than 2^63 bytes
  double out = 0;
  Traffic& operator+=(const Traffic& other);
};
Traffic operator*(double count, const Traffic& traffic);

// One gradient of one worker, and the weights that answer it; with failure.replicas also what goes from ps to
// ps for it: the gradient again, in sync its share of the sum of a round. `keys`: of a table, how many of its
// rows a batch touches on all ps, over which they are spread evenly.
Traffic StepTraffic(const Config& config, const Layout& layout, int ps, double keys = 0);
// `steps` steps, and the weights that workers pull at the start, at the end and for their evaluation; of a
// table the rows for evaluations are not counted. With failure.replicas also the first copy of a ps that has
// one. `config`: as RunTask() completes it.
Traffic RunTraffic(const Config& config, const Layout& layout, int ps, int workers, int64_t steps,
                   double keys = 0);

// The processor time, in microseconds, that a ps takes for its part of one gradient and the weights that
// answer it, as measured on one machine (docs/performance.md, Many workers). `local`: by the sockets of
// `dtrain local`; else by TCP.
double PushMicroseconds(const Layout& layout, int ps, bool local, double keys = 0);

// A batch of `rows` rows from worker 0 to another worker (data.split: feed), and the request for it. Counted
// at worker 0. `config`: as RunTask() completes it. `as_bytes`, `row_features`: as in DataSize.
Traffic FeedTraffic(const Config& config, int64_t rows, bool as_bytes, double row_features = 0);

}  // namespace dtrain
