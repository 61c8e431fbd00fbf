// What a run will move between its tasks: the messages with gradients and weights, headers and payloads, as
// `--result` counts them. All other messages are a few hundred bytes each, and few; the transport's own
// bytes (ZMTP, TCP, IP) are not counted.
#pragma once

#include <cstdint>

#include "trainer/config/config.h"
#include "trainer/model/layout.h"

namespace dtrain {

// Bytes to a ps and from it.
struct Traffic {
  double in = 0;  // a long run moves more than 2^63 bytes
  double out = 0;
  Traffic& operator+=(const Traffic& other);
};
Traffic operator*(double count, const Traffic& traffic);

// One gradient of one worker, and the new weights that answer it.
Traffic StepTraffic(const Config& config, const Layout& layout, int ps);
// `steps` such, and the weights that workers pull at the start, at the end and for their evaluation.
// `config` as RunTask() completes it.
Traffic RunTraffic(const Config& config, const Layout& layout, int ps, int workers, int64_t steps);

// A batch of `rows` rows that worker 0 deals out to another worker (data.split: feed): the request for it,
// and the batch. To worker 0 and from it. `config` as RunTask() completes it.
Traffic FeedTraffic(const Config& config, int64_t rows, bool as_bytes);

}  // namespace dtrain
