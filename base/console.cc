#include "base/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/patient_output.h"

namespace dtrain {
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
