#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "base/fault_point.h"

namespace dtrain {

namespace {

bool IsOfDisk(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO; }

}  // namespace

void ThrowUnwritable(const std::string& text, int error_number) {
  if (IsOfDisk(error_number)) throw FileError(text, error_number);
  throw UserError("{}", text);
}

std::string UnwritableText(const std::string& path, int error_number) {
  return fmt::format("{}: cannot be written: {}. {}ame another path.", path, ErrnoText(error_number),
                     IsOfDisk(error_number) ? "Free some space or n" : "N");
}

int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    if (wrote == 0) return EIO;  // a device that takes nothing would be tried for ever
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return 0;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

namespace {

// These functions return 0 or the errno of the first step that failed.
int Sync(int fd, const std::string& path) {
  const FaultScope fault("fsync", path.c_str());
  return fsync(fd) == 0 ? 0 : errno;
}

int Rename(const std::string& from, const std::string& to) {
  const FaultScope fault("rename", to.c_str());
  return rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

int WriteAndSync(const std::string& path, std::string_view content) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) return errno;
  if (const int failed = WriteAll(file.get(), content)) return failed;
  return Sync(file.get(), path);
}

}  // namespace

void WriteFileAtomically(const std::string& path, std::string_view content) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  std::error_code ignored;  // if the directory could not be made, opening the file fails below
  std::filesystem::create_directories(directory, ignored);
  const std::string temporary = fmt::format("{}.tmp.{}", path, getpid());
  unlink(temporary.c_str());
  int failed = WriteAndSync(temporary, content);
  if (failed == 0) failed = Rename(temporary, path);
  if (failed != 0) {
    unlink(temporary.c_str());
    throw FileError(UnwritableText(path, failed), failed);
  }
  const FileDescriptor held(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (held.get() >= 0) Sync(held.get(), directory);
}

}  // namespace dtrain
