#include "base/console.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/names.h"

namespace dtrain {
namespace {

constexpr milliseconds kWriteTimeout{3000};
// How long poll() is not asked again after a terminal has reported room and taken nothing.
constexpr milliseconds kPause{10};

// Opens the file of `fd` again with O_NONBLOCK. A terminal reports room and then blocks in the middle of a
// line unless it is opened this way. The flags of `fd` itself stay as they are, because other processes share
// them.
int OpenNonBlocking(int fd) {
  if (isatty(fd) == 0) return fd;
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  const int opened = open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  return opened >= 0 ? opened : fd;  // a terminal of another user, as after su, cannot be opened
}

}  // namespace

TimedOutput::TimedOutput(int fd, milliseconds timeout)
    : given_(fd), fd_(OpenNonBlocking(fd)), timeout_(timeout) {}

TimedOutput::~TimedOutput() {
  if (fd_ != given_) close(fd_);
}

void TimedOutput::Write(std::string_view text) {
  std::lock_guard<std::mutex> hold(mutex_);
  const milliseconds timeout = std::exchange(stalled_, false) ? milliseconds(0) : timeout_;
  if (cut_ && WritePart("\n", timeout) == 1) cut_ = false;
  const size_t wrote = stalled_ ? 0 : WritePart(text, timeout);
  if (!stalled_) return;
  cut_ = cut_ || wrote > 0;
  missing_ += std::count(text.begin() + static_cast<std::ptrdiff_t>(wrote), text.end(), '\n');
}

int64_t TimedOutput::TakeMissing() {
  std::lock_guard<std::mutex> hold(mutex_);
  if (missing_ == 0 || !HasRoom(milliseconds(0))) return 0;
  return std::exchange(missing_, 0);
}

// When poll() reports room, a pipe takes PIPE_BUF bytes without blocking.
size_t TimedOutput::WritePart(std::string_view text, milliseconds timeout) {
  const TimePoint deadline = Clock::now() + timeout;
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

bool TimedOutput::HasRoom(milliseconds timeout) const {
  const TimePoint deadline = Clock::now() + timeout;
  pollfd room{fd_, POLLOUT, 0};
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    const int ready = poll(&room, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) return true;  // on an error too: the write reports it
    if (ready == 0 || errno != EINTR) return false;
  }
}

TimedOutput& StandardError() {
  static TimedOutput& output = *new TimedOutput(STDERR_FILENO, kWriteTimeout);  // outlives every thread
  return output;
}

TerminalSize SizeOfTerminal(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

std::string MissingText(int64_t lines) {
  return fmt::format("{} missing here: the reader of standard error took nothing for {} s",
                     Plural(lines, "line is", "lines are"), kWriteTimeout.count() / 1000);
}

namespace {

constexpr size_t kUsualColumns = 80;
// Moves to the first column and erases the line.
constexpr char kErase[] = "\r\x1b[K";

// Read at each drawing, because the window may have been resized.
size_t Columns() {
  const int columns = SizeOfTerminal(STDERR_FILENO).columns;
  return columns > 0 ? static_cast<size_t>(columns) : kUsualColumns;
}

// Failed output must neither end a run nor delay it.
void Show(std::string_view text) { StandardError().Write(text); }

}  // namespace

bool ShowsColours(int fd) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return isatty(fd) == 1 && (no_color == nullptr || *no_color == 0) &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

std::string Coloured(Colour colour, std::string_view text) {
  const bool ends = !text.empty() && text.back() == '\n';
  if (ends) text.remove_suffix(1);
  const int code = colour == Colour::kBold ? 1 : colour == Colour::kRed ? 31 : 33;
  return fmt::format("\x1b[{}m{}\x1b[0m{}", code, text, ends ? "\n" : "");
}

namespace {

std::string ShownLine(std::string_view line) {
  static const bool colours = ShowsColours(STDERR_FILENO);
  const bool error = line.find(" | error: ") != std::string_view::npos;
  const bool warning = line.find(" | warning: ") != std::string_view::npos;
  if (!colours || (!error && !warning)) return std::string(line);
  return Coloured(error ? Colour::kRed : Colour::kYellow, line);
}

}  // namespace

bool Console::IsTerminal() { return isatty(STDERR_FILENO) == 1; }

// The last column stays free: a terminal would go to the next line there.
// Parts of the line, two blanks apart, that have no room are left out: half a figure would be another one.
std::string Console::Drawing() const {
  const size_t room = Columns() - 1;
  if (text_.size() <= room) return kErase + text_;
  const size_t end = text_.rfind("  ", room);
  return kErase + text_.substr(0, end == std::string::npos ? room : end);
}

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
  const std::string shown = ShownLine(line);
  if (live_ != LiveLine::kDrawn || text_.empty()) return Show(shown);
  Show(kErase + shown + Drawing());
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
