#include "base/console.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/names.h"

namespace dtrain {
namespace {

constexpr milliseconds kPatience{3000};
// How long poll() is not believed where a terminal has taken nothing in spite of it.
constexpr milliseconds kPause{10};

// A terminal says that it has room and then waits in the middle of a line, unless it is opened anew so that
// it does not wait. The flags of `fd` itself are not changed: others share what is behind it.
int WithoutWaiting(int fd) {
  if (isatty(fd) == 0) return fd;
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  const int opened = open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  return opened >= 0 ? opened : fd;  // one that is another user's, as after su
}

}  // namespace

PatientOutput::PatientOutput(int fd, milliseconds patience)
    : given_(fd), fd_(WithoutWaiting(fd)), patience_(patience) {}

PatientOutput::~PatientOutput() {
  if (fd_ != given_) close(fd_);
}

void PatientOutput::Write(std::string_view text) {
  std::lock_guard<std::mutex> hold(mutex_);
  const milliseconds patience = std::exchange(stalled_, false) ? milliseconds(0) : patience_;
  if (cut_ && WritePart("\n", patience) == 1) cut_ = false;
  const size_t wrote = stalled_ ? 0 : WritePart(text, patience);
  if (!stalled_) return;
  cut_ = cut_ || wrote > 0;
  missing_ += std::count(text.begin() + static_cast<std::ptrdiff_t>(wrote), text.end(), '\n');
}

int64_t PatientOutput::TakeMissing() {
  std::lock_guard<std::mutex> hold(mutex_);
  if (missing_ == 0 || !HasRoom(milliseconds(0))) return 0;
  return std::exchange(missing_, 0);
}

// Where poll() tells of room, a pipe takes PIPE_BUF without waiting.
size_t PatientOutput::WritePart(std::string_view text, milliseconds patience) {
  const TimePoint deadline = Clock::now() + patience;
  size_t wrote = 0;
  while (wrote < text.size()) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    stalled_ = !HasRoom(std::max(left, milliseconds(0)));
    if (stalled_) break;
    const ssize_t part = write(fd_, text.data() + wrote, std::min<size_t>(text.size() - wrote, PIPE_BUF));
    if (part > 0) wrote += static_cast<size_t>(part);
    if (part >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return text.size();
    stalled_ = Clock::now() >= deadline;
    if (stalled_) break;
    poll(nullptr, 0, static_cast<int>(kPause.count()));
  }
  return wrote;
}

bool PatientOutput::HasRoom(milliseconds patience) const {
  const TimePoint deadline = Clock::now() + patience;
  pollfd room{fd_, POLLOUT, 0};
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    const int ready = poll(&room, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) return true;  // an error too: the write finds it
    if (ready == 0 || errno != EINTR) return false;
  }
}

PatientOutput& StandardError() {
  static PatientOutput& output = *new PatientOutput(STDERR_FILENO, kPatience);  // outlives every thread
  return output;
}

std::string MissingText(int64_t lines) {
  return fmt::format("{} missing here: the reader of standard error took nothing for {} s",
                     Plural(lines, "line is", "lines are"), kPatience.count() / 1000);
}

namespace {

constexpr size_t kUsualColumns = 80;
// Back to the first column, and what stands there is erased.
constexpr char kErase[] = "\r\x1b[K";

// Read at each drawing: the window may have been resized.
size_t Columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsualColumns;
  return size.ws_col;
}

// Output that nobody takes must neither end a run nor hold it up.
void Show(std::string_view text) { StandardError().Write(text); }

}  // namespace

bool Console::IsTerminal() { return isatty(STDERR_FILENO) == 1; }

// In the last column a terminal would go to the next line.
std::string Console::Drawing() const { return kErase + text_.substr(0, Columns() - 1); }

void Console::SetLive(std::string_view text) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (!live() || ended_ || text == text_) return;
  text_ = text;
  if (live_ == LiveLine::kRelayed) {
    Show("\r" + text_ + "\n");
  } else {
    Show(Drawing());
  }
}

void Console::WriteLine(std::string_view line) {
  std::lock_guard<std::mutex> hold(mutex_);
  if (live_ != LiveLine::kDrawn || text_.empty()) return Show(line);
  Show(std::string(kErase).append(line) + Drawing());
}

void Console::PassOn(std::string_view line) {
  if (!IsRelayed(line)) return WriteLine(line);
  line.remove_prefix(1);
  SetLive(line.substr(0, line.find('\n')));
}

void Console::End() {
  SetLive("");
  std::lock_guard<std::mutex> hold(mutex_);
  ended_ = true;
}

}  // namespace dtrain
