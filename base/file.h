// Writing files: all bytes to a descriptor, and a file that is either whole or absent. Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

// Writes all of `bytes` and goes on after a signal and after a short write. Returns 0, or the errno of the
// write that failed; the bytes before it are written then. Waits as long as the descriptor does; a descriptor
// that does not wait (O_NONBLOCK) fails with EAGAIN.
int WriteAll(int fd, std::string_view bytes);

// Replaces `path` by `content`: written beside it, synced, then renamed over it, and the directory synced.
// Missing parent directories are created. Throws IoError naming the path; an older file at `path` is then
// untouched.
void WriteFileAtomically(const std::string& path, std::string_view content);

}  // namespace dtrain
