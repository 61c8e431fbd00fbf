// Lines of log files, text and JSON, of which dtrain report makes a time line.
#include <cmath>

#include "cmd/report/run_events.h"
#include "fuzz/input.h"
#include "fuzz/target.h"

namespace dtrain::fuzz {
namespace {

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  RunEvent event;
  if (!EventOfLine(input.Rest(), &event)) return 0;
  Require(std::isfinite(event.wall_s), "an event has a time");
  Require(LaneName(event.kind) != nullptr, "an event has a lane");
  return 0;
}

const AddTarget added("events", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
