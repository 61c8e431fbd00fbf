// RecordFile: a file of framed records that grows at its end (TFRecord). Each record is
//   length u64le, masked CRC-32C of those 8 bytes u32le, the record, masked CRC-32C of the record u32le
// so that a reader finds where a file that was cut off ends.
// Records are gathered in memory; only Flush() writes. Owner: EventWriter. Thread: the owner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

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

  // Makes a new file; one that is there already is left alone (EEXIST). Returns 0 or errno.
  int Create(const std::string& path);

  void Append(std::string_view record);
  size_t waiting_bytes() const { return waiting_.size(); }
  // Writes what waits. Returns 0 or errno; after a failure nothing more is written.
  int Flush();

 private:
  int fd_ = -1;
  std::string waiting_;
};

// EventWriter: one TensorBoard event file, new at each start. Events are gathered and written about once a
// second and at the end: what was written stays readable when the task is killed.
// A disk that fails during the run costs the summaries, not the run: one warning, and no more is written.
// Owner: a summary (summary.h). Thread: the owner's; an exit hook writes what waits from
// another, hence the lock.
namespace event {
class Event;
}

class EventWriter {
 public:
  // Makes `directory` where it is missing, and a file in it. Throws UserError where that cannot be, IoError
  // where the disk takes nothing.
  EventWriter(const std::string& directory, ExitHooks& hooks, Logger& log);
  ~EventWriter();  // writes what waits
  EventWriter(const EventWriter&) = delete;
  EventWriter& operator=(const EventWriter&) = delete;

  // `graph`: a serialised GraphDef.
  void WriteGraph(const std::string& graph);
  // One point of the curve `tag`, for the next WriteScalars().
  void Add(std::string_view tag, double value);
  // One event at `now` with the points that were added; `step` is the x axis.
  void WriteScalars(int64_t step, TimePoint now);
  void Flush();

  const std::string& path() const { return path_; }

 private:
  void CreateFile(const std::string& directory);
  void Append(int64_t step, TimePoint now);
  void FlushForGood();
  void FlushLocked();

  Logger& log_;
  const TimePoint began_;
  const double began_wall_s_;
  std::string path_;
  std::unique_ptr<event::Event> event_;  // kept: its memory is used again
  std::string bytes_;
  std::mutex mutex_;  // of the two below
  RecordFile file_;
  TimePoint next_flush_;
  const ExitHooks::Hook hook_;  // the last member: the first to go
};

}  // namespace dtrain
