// The progress of training for people: the table in the log, and the live line at a terminal.
// Owner: the worker's hooks. Thread: the worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/config/choices.h"
#include "trainer/hooks/hook.h"

namespace dtrain {

// Progress (hooks.log_every_secs, hooks.log_every_steps, hooks.log_every_epochs): logs the table of training,
// one row every so many seconds, local steps or epochs, in stable columns, which are separate members with
// log.format: json:
//   epoch, batch i/n, global step, local step, loss, examples/s, ms/step
// Loss (by the weights of the rows), examples/s and ms/step are means since the row before. There is no row
// as long as there is no loss. Where the user has asked for no rows and a terminal shows the live line, they
// go to the log file only.
class Progress : public Hook {
 public:
  // `leased`: the worker's batches of an epoch are those that it is given (data.split: dynamic), so the row
  // of an epoch is written when it comes to a later one, or is done.
  Progress(const HooksConfig& hooks, Logger& log, bool leased = false);

  // The time before this was start-up, and steps before it are of a run that has gone back.
  void Begin(const StepView&) override {
    row_began_ = Clock::now();
    steps_ = examples_ = 0;
    loss_ = {};
    last_.reset();
  }
  // Reads the clock only when a row may be due.
  void AfterStep(const StepView& view, HookRequests* requests) override;
  void End(const StepView&) override;

 private:
  // Where the worker was at a step.
  struct Place {
    int64_t epoch = 0, batch = 0, batches = 0;  // from 0; 0 batches: an endless epoch
    int64_t global_step = 0, local_step = 0;
  };
  static Place PlaceOf(const StepView& view);
  void WriteRow(const Place& place);
  bool Due(const StepView& view);
  bool EndsByNumber(int64_t epoch) const;

  const HooksConfig& hooks_;
  Logger& log_;
  const bool file_only_;
  const bool leased_;
  std::optional<Place> last_;        // with leases, and rows by epochs
  std::optional<PacedTimer> timer_;  // unset: no rows by time
  TimePoint row_began_;
  int64_t steps_ = 0;  // since the last row, like the two below
  int64_t examples_ = 0;
  LossMean loss_;
};

// LiveProgress: the live line of worker 0 at a terminal: how far the run is, its pace, and the time left. It
// is drawn about five times a second; in between a step costs a few additions and no clock call. Owner:
// LiveHook. Thread: the worker.

struct LiveFigures {
  int64_t global_step = 0;
  std::optional<int64_t> total;  // global steps of the run
  double loss = 0;
  double examples_per_s = 0;  // all workers
  std::optional<double> left_s;
  int workers_here = 0;  // 0: unknown
  int workers = 0;
};
// "0:07", "12:30", "3:05:00".
std::string DurationText(double seconds);
// "step 300/1200 25%  loss 0.4213  ETA 1:05  61000 examples/s  3/3 workers"; the parts that count come first,
// since a narrow terminal has no room for the last ones.
std::string LiveText(const LiveFigures& figures);

class LiveProgress {
 public:
  LiveProgress(int workers, std::optional<int64_t> total, int64_t global_step, TimePoint now);

  // Counts one local step. True: draw the line now, from Figures().
  bool OnStep(float loss, int64_t rows, std::optional<double> weight = {}) {
    ++steps_;
    loss_.Add(loss, rows, weight);
    examples_ += rows;
    return timer_.Due();
  }
  // The means since the last call.
  LiveFigures Figures(int64_t global_step, int workers_here, TimePoint now);

 private:
  LiveFigures figures_;
  PacedTimer timer_;
  const TimePoint began_;
  TimePoint drawn_at_;
  int64_t steps_ = 0;  // local steps since then, like the two below
  int64_t examples_ = 0;
  LossMean loss_;
  double steps_per_s_ = 0;  // global, smoothed
};

}  // namespace dtrain
