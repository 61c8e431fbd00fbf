// The one way to write bytes to a descriptor in full: goes on after a signal and after a short write.
#pragma once

#include <string_view>

namespace dtrain {

// Returns 0, or the errno of the write that failed; what was before it is written then. Waits as long as the
// descriptor does; one that does not wait (O_NONBLOCK) fails with EAGAIN.
int WriteAll(int fd, std::string_view bytes);

}  // namespace dtrain
