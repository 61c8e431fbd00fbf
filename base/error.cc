#include "base/error.h"

#include <system_error>

namespace dtrain {

std::string ErrnoText(int error_number) {
  return fmt::format("{} ({})", std::generic_category().message(error_number), error_number);
}

}  // namespace dtrain
