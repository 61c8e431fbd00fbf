#include "base/error.h"

#include <errno.h>
#include <new>
#include <system_error>

namespace dtrain {

std::string FailureText(const std::exception& error) {
  if (dynamic_cast<const Failure*>(&error) != nullptr) return error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return "out of memory: the system gave no more. Use a smaller model, a smaller batch or less data, or a "
           "machine with more memory.";
  }
  return fmt::format("internal error: {}", error.what());
}

std::string ErrnoText(int error_number) {
  return fmt::format("{} ({})", std::generic_category().message(error_number), error_number);
}

Failure NoDescriptor(const std::string& what, int error_number) {
  const bool too_many = error_number == EMFILE || error_number == ENFILE;
  return IoError("{}: {}.{}", what, ErrnoText(error_number),
                 too_many ? " Raise the limit of open files (ulimit -n)." : "");
}

}  // namespace dtrain
