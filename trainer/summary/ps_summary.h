// PsSummary: what ps 0 leaves for TensorBoard in summary.dir/ps-0: the pace of the whole run and how many
// workers take part. docs/summaries.md explains the tags.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/summary/event_writer.h"
#include "trainer/summary/schedule.h"

namespace dtrain {

class PsSummary {
 public:
  // Null without summary.dir. Throws UserError or IoError where the directory cannot be written.
  static std::unique_ptr<PsSummary> Open(const Config& config, ExitHooks& hooks, Logger& log);

  // The update that made `global_step` was applied: whether OnUpdate() is to be told.
  bool Due(int64_t global_step) {
    if (point_step_ == 0) Begin(global_step);
    return schedule_.Due(global_step);
  }
  void OnUpdate(int64_t global_step, int workers);

 private:
  PsSummary(const Config& config, ExitHooks& hooks, Logger& log);
  void Begin(int64_t global_step);  // the pace counts from here

  EventWriter writer_;
  Schedule schedule_;
  // Of the point before.
  TimePoint point_at_;
  int64_t point_step_ = 0;  // 0: none
};

}  // namespace dtrain
