#include "trainer/checkpoint/shard_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/error.h"
#include "base/write_all.h"
#include "trainer/checkpoint/shard_format.h"

namespace dtrain {
namespace {

constexpr int64_t kWindow = 8 << 20;
constexpr int64_t kInFlight = 4 * kWindow;

}  // namespace

ShardWriter::ShardWriter(std::string path) : path_(std::move(path)) {
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0) Fail(errno);
  try {
    Write(kShardHeader.data(), kShardHeader.size());
  } catch (...) {
    close(fd_);  // there will be no destructor
    throw;
  }
}

ShardWriter::~ShardWriter() {
  if (fd_ >= 0) close(fd_);
}

uint64_t ShardWriter::Add(const void* data, size_t bytes) {
  static constexpr char kZeros[kShardAlignment] = {};
  DT_CHECK(fd_ >= 0);
  Write(data, bytes);
  Write(kZeros, static_cast<size_t>(Padded(bytes_) - bytes_));
  PushOut();
  return PieceChecksum(data, bytes);
}

void ShardWriter::Finish() {
  DT_CHECK(fd_ >= 0);
  if (fsync(fd_) != 0) Fail(errno);
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0) Fail(errno);
}

void ShardWriter::Write(const void* data, size_t bytes) {
  if (const int failed = WriteAll(fd_, {static_cast<const char*>(data), bytes})) Fail(failed);
  bytes_ += static_cast<int64_t>(bytes);
}

// Where the file system does not know this call it writes when it likes. Other errors are of the writing
// itself: they are told here once, and fsync() would not tell them again.
void ShardWriter::PushOut() {
  if (bytes_ - pushed_ < kWindow) return;
  sync_file_range(fd_, pushed_, bytes_ - pushed_, SYNC_FILE_RANGE_WRITE);
  // 0 bytes would mean all of it.
  if (pushed_ > kInFlight) {
    const bool done = sync_file_range(fd_, 0, pushed_ - kInFlight,
                                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                          SYNC_FILE_RANGE_WAIT_AFTER) == 0;
    const bool unknown = errno == EINVAL || errno == ESPIPE || errno == ENOSYS || errno == EOPNOTSUPP;
    if (!done && !unknown) Fail(errno);
  }
  pushed_ = bytes_;
}

void ShardWriter::Fail(int error) const {
  throw IoError("{}: cannot be written: {}. Free some space, or name another directory: checkpoint.dir.",
                path_, ErrnoText(error));
}

}  // namespace dtrain
