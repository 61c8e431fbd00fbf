#include "trainer/config/config_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr size_t kMostBytes = 1 << 20;

std::string ReadAll(int file, const std::string& path) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t got = read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw UserError("{}: cannot be read: {}. Give a YAML file.", path, ErrnoText(errno));
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMostBytes) {
      throw UserError("{}: more than {} bytes; that is no config. Give a YAML file.", path, kMostBytes);
    }
  }
}

}  // namespace

std::string ReadConfigText(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw UserError("{}: cannot be opened: {}. Check the path.", path, ErrnoText(errno));
  std::string text;
  try {
    text = ReadAll(file, path);
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
  const size_t bad = FirstNonText(text);
  if (bad != std::string::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(bad), '\n');
    throw UserError("{}:{}: byte 0x{:02x} at offset {} is no text. Give a YAML file saved as UTF-8.", path,
                    line, static_cast<unsigned char>(text[bad]), bad);
  }
  return text;
}

}  // namespace dtrain
