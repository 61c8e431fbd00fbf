#include "trainer/summary/event_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/names.h"
#include "base/tfrecord.h"
#include "trainer/summary/event.pb.h"

namespace dtrain {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";
constexpr int64_t kLastSecond = 9999999999;  // that a name has room for
constexpr char kPrefix[] = "events.out.tfevents.";
constexpr size_t kDigits = 10;  // of the number of a file that comes last; one more of one that comes first
constexpr milliseconds kFlushEvery{1000};
// Flushes early at this size, to bound the memory.
constexpr size_t kMaxWaitingBytes = 1 << 20;

// TensorBoard reads the files of a directory in the order of their names. A new one comes behind those that
// are there, or in front of them, also within their second or where the clock was set back.
int64_t NumberIn(const std::string& directory, EventWriter::Order order, int64_t second) {
  using Order = EventWriter::Order;
  int64_t number = order == Order::kLast ? second : kLastSecond - second;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.rfind(kPrefix, 0) != 0) continue;
    const size_t begin = sizeof kPrefix - 1, size = std::min(name.find('.', begin), name.size()) - begin;
    int64_t there = 0;
    const char* const last = name.data() + begin + size;
    if (std::from_chars(name.data() + begin, last, there).ptr != last || there >= kLastSecond) continue;
    if (order == Order::kLast && size == kDigits) number = std::max(number, there + 1);
    if (order == Order::kFirst && size == kDigits + 1) number = std::min(number, there - 1);
  }
  return number;
}

}  // namespace

EventWriter::EventWriter(const std::string& directory, ExitHooks& hooks, Logger& log, Order order)
    : log_(log),
      began_(Clock::now()),
      began_wall_s_(static_cast<double>(WallNanos()) * 1e-9),
      event_(std::make_unique<event::Event>()),
      next_flush_(began_ + kFlushEvery),
      hook_(hooks, [this] { FlushForGood(); }) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  CreateFile(directory, order);
  event_->set_file_version(kFileVersion);
  Append(0, began_);
  std::lock_guard<std::mutex> hold(mutex_);
  if (const int error = file_.Flush()) throw IoError("{}: cannot be written: {}.", path_, ErrnoText(error));
}

EventWriter::~EventWriter() { Flush(); }

void EventWriter::CreateFile(const std::string& directory, Order order) {
  // A zero before the time left: the later the file, the further in front.
  const std::string common = fmt::format(
      "{}/{}{}{:0{}}.{}.{}", directory, kPrefix, order == Order::kLast ? "" : "0",
      NumberIn(directory, order, static_cast<int64_t>(began_wall_s_)), kDigits, HostName(), getpid());
  int error = EEXIST;
  // A task that is restarted in a container may have the same process id within the same second.
  for (int copy = 0; error == EEXIST; ++copy) {
    path_ = fmt::format("{}.{}", common, copy);
    error = file_.Create(path_);
  }
  if (error == 0) return;
  ThrowUnwritable(fmt::format("{}: cannot be made: {}. Free some space, set summary.dir to a writable "
                              "directory, or leave it out for no summaries.",
                              path_, ErrnoText(error)),
                  error);
}

void EventWriter::WriteStart(int64_t step) {
  event_->mutable_session_log()->set_status(event::SessionLog::START);
  Append(step + 1, Clock::now());
  Flush();
}

void EventWriter::WriteGraph(const std::string& graph) {
  event_->set_graph_def(graph);
  Append(0, Clock::now());
  Flush();
}

void EventWriter::WriteSummary(const std::string& summary) {
  event_->mutable_summary()->ParseFromString(summary);
  Append(0, Clock::now());
  event_->mutable_summary()->clear_value();
  Flush();
}

void EventWriter::Add(std::string_view tag, double value, const char* description) {
  event::Summary::Value& point = *event_->mutable_summary()->add_value();
  point.set_tag(tag.data(), tag.size());
  point.set_simple_value(static_cast<float>(value));
  // Its address stands for a literal: a point must cost no search among texts.
  if (std::find(described_.begin(), described_.end(), description) != described_.end()) return;
  described_.push_back(description);
  point.mutable_metadata()->mutable_plugin_data()->set_plugin_name("scalars");
  point.mutable_metadata()->set_summary_description(description);
  point.mutable_metadata()->set_data_class(event::SummaryMetadata::SCALAR);
}

void EventWriter::WriteScalars(int64_t step, TimePoint now) {
  Append(step, now);
  event_->mutable_summary()->clear_value();
  std::lock_guard<std::mutex> hold(mutex_);
  if (now >= next_flush_ || file_.waiting_bytes() > kMaxWaitingBytes) FlushLocked();
}

void EventWriter::Append(int64_t step, TimePoint now) {
  event_->set_step(step);
  event_->set_wall_time(began_wall_s_ + SecondsBetween(began_, now));
  event_->SerializeToString(&bytes_);
  std::lock_guard<std::mutex> hold(mutex_);
  file_.Append(bytes_);
}

void EventWriter::Flush() {
  std::lock_guard<std::mutex> hold(mutex_);
  FlushLocked();
}

// Keeps the lock for good: a thread with another point waits for the end of the process, so that no step is
// reported whose point is missing.
void EventWriter::FlushForGood() {
  mutex_.lock();
  FlushLocked();
}

void EventWriter::FlushLocked() {
  next_flush_ = Clock::now() + kFlushEvery;
  if (const int error = file_.Flush()) {
    log_.Warning("{}: cannot be written: {}; the run goes on without summaries", path_, ErrnoText(error));
  }
}

RecordFile::~RecordFile() {
  Flush();
  if (fd_ >= 0) close(fd_);
}

int RecordFile::Create(const std::string& path) {
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  return fd_ >= 0 ? 0 : errno;
}

void RecordFile::Append(std::string_view record) {
  if (fd_ >= 0) AppendTfrecord(record, &waiting_);
}

int RecordFile::Flush() {
  const int failed = fd_ >= 0 ? WriteAll(fd_, waiting_) : 0;
  waiting_.clear();
  if (failed != 0) {
    close(fd_);
    fd_ = -1;
  }
  return failed;
}

}  // namespace dtrain
