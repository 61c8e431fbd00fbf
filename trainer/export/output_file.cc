#include "trainer/export/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/fault_point.h"
#include "base/file.h"

namespace dtrain {

namespace fs = std::filesystem;

namespace {

// Returns the final target of a link, which may not exist yet.
std::string Resolved(fs::path path) {
  std::error_code failed;
  for (int links = 0; links < 40 && fs::is_symlink(path, failed); ++links) {
    path = path.parent_path() / fs::read_symlink(path, failed);
  }
  return path.string();
}

std::string DirectoryOf(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// A process id is not enough: in two containers with a shared disk, each may have a process 1.
std::string Token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::string ByDescriptor(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// Returns -1 if the file system has no such files, or if there is no /proc for naming it later.
int OpenNameless(const std::string& directory) {
  const int fd = open(directory.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644);
  if (fd < 0 || access(ByDescriptor(fd).c_str(), F_OK) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

OutputFile::OutputFile(const std::string& path)
    : path_(path), target_(Resolved(path)), temporary_(fmt::format("{}.tmp.{}", target_, Token())) {
  std::error_code ignored;  // if the directory could not be made, opening the file fails below
  if (fs::is_directory(path, ignored)) throw UserError("{}: is a directory. Name a file.", path);
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    throw UserError("{}: is a device or a pipe, and a file would take its place. Name a file.", path);
  }
  fs::create_directories(DirectoryOf(target_), ignored);
  Open();
  struct stat old {};
  if (stat(target_.c_str(), &old) == 0) fchmod(fd_, old.st_mode & 0777);
}

void OutputFile::Open() {
  fd_ = OpenNameless(DirectoryOf(target_));
  if (fd_ >= 0) return;
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  has_name_ = fd_ >= 0;
  if (has_name_) return;
  ThrowUnwritable(UnwritableText(path_, errno), errno);
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  close(fd_);
  if (has_name_) unlink(temporary_.c_str());
}

void OutputFile::Write(const void* data, size_t bytes) {
  if (const int failed = WriteAll(fd_, {static_cast<const char*>(data), bytes})) Fail(failed);
  size_ += static_cast<int64_t>(bytes);
}

void OutputFile::WriteAt(int64_t offset, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = pwrite(fd_, from, bytes, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) Fail(errno);
    from += put;
    offset += put;
    bytes -= static_cast<size_t>(put);
  }
}

void OutputFile::Finish() {
  Sync();
  // A link cannot replace a file, but a rename can.
  if (!has_name_ &&
      linkat(AT_FDCWD, ByDescriptor(fd_).c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    Fail(errno);
  }
  has_name_ = true;
  Rename();
  close(fd_);
  fd_ = -1;
  const int directory = open(DirectoryOf(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;  // syncs the new name, if possible
  fsync(directory);
  close(directory);
}

void OutputFile::Sync() const {
  const FaultScope fault("fsync", target_.c_str());
  if (fsync(fd_) != 0) Fail(errno);
}

void OutputFile::Rename() const {
  const FaultScope fault("rename", target_.c_str());
  if (rename(temporary_.c_str(), target_.c_str()) != 0) Fail(errno);
}

void OutputFile::Fail(int error) const { throw FileError(UnwritableText(path_, error), error); }

}  // namespace dtrain
