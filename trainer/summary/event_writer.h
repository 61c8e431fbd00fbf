// RecordFile: a file of framed records that grows at its end (base/tfrecord.h), so that a reader finds where a
// truncated file ends. Records are buffered in memory; only Flush() writes.
// Owner: EventWriter. Thread: the owner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"

namespace dtrain {

class RecordFile {
 public:
  RecordFile() = default;
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // Makes a new file; fails with EEXIST if there is one already. Returns 0 or errno.
  int Create(const std::string& path);

  void Append(std::string_view record);
  size_t waiting_bytes() const { return waiting_.size(); }
  // Writes the buffered records. Returns 0 or errno; after a failure nothing more is written.
  int Flush();

 private:
  int fd_ = -1;
  std::string waiting_;
};

// EventWriter: one TensorBoard event file, new at each start. Events are buffered and written about once a
// second and at the end; written events stay readable when the task is killed. If the disk fails during the
// run, the run continues: the summary stops after one warning. Owner: a summary (summary.h). Thread: the
// owner's; an exit hook writes the buffer from another thread, hence the lock.
namespace event {
class Event;
}

class EventWriter {
 public:
  // Where TensorBoard reads the file, since it reads those of a directory by their names: after the older
  // ones, or before them. What it takes once, such as hyperparameters, it takes from the first.
  enum class Order { kLast, kFirst };

  // Makes `directory` if it is missing, and a file in it. Throws UserError if that fails, IoError if the disk
  // takes nothing.
  EventWriter(const std::string& directory, ExitHooks& hooks, Logger& log, Order order = Order::kLast);
  ~EventWriter();  // writes the buffer
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // The steps after `step` are taken anew: older points there, of other files too, are of a past that the run
  // has thrown away.
  void WriteStart(int64_t step);
  // `graph`: a serialised GraphDef.
  void WriteGraph(const std::string& graph);
  // Writes values that are no points of curves. `summary`: a serialised Summary.
  void WriteSummary(const std::string& summary);
  // Adds one point of the curve `tag` to the next WriteScalars(). `description`: a sentence on the curve,
  // which goes with its first point; a literal.
  void Add(std::string_view tag, double value, const char* description);
  // Writes one event at `now` with the added points; `step` is the x axis.
  void WriteScalars(int64_t step, TimePoint now);
  void Flush();

  const std::string& path() const { return path_; }

 private:
  void CreateFile(const std::string& directory, Order order);
  void Append(int64_t step, TimePoint now);
  void FlushForGood();
  void FlushLocked();

  Logger& log_;
  const TimePoint began_;
  const double began_wall_s_;
  std::string path_;
  std::unique_ptr<event::Event> event_;  // kept to reuse its memory
  std::string bytes_;
  std::vector<const char*> described_;  // the descriptions that were written
  std::mutex mutex_;                    // guards the next two
  RecordFile file_;
  TimePoint next_flush_;
  const ExitHooks::Hook hook_;  // the last member, so destroyed first
};

}  // namespace dtrain
