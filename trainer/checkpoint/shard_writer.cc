#include "trainer/checkpoint/shard_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/fault_point.h"
#include "base/file.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/shard_format.h"

namespace dtrain {
namespace {

constexpr size_t kChunk = 4 << 20;
// The alignment that O_DIRECT needs in memory, in the file and in size. No disk has larger sectors.
constexpr std::align_val_t kSector{4096};
constexpr int64_t kWindow = 8 << 20;
constexpr int64_t kInFlight = 4 * kWindow;

}  // namespace

void ShardWriter::FreeChunk::operator()(char* chunk) const { ::operator delete(chunk, kSector); }

ShardWriter::ShardWriter(std::string path)
    : path_(std::move(path)), chunk_(static_cast<char*>(::operator new(kChunk, kSector))) {
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0) Fail(errno);
  if (fcntl(fd_, F_SETFL, O_DIRECT) != 0) direct_ = false;
  Append(kShardHeader.data(), kShardHeader.size());
}

ShardWriter::~ShardWriter() {
  if (fd_ >= 0) close(fd_);
}

uint64_t ShardWriter::Add(const void* data, size_t bytes) {
  static constexpr char kZeros[kShardAlignment] = {};
  DT_CHECK(fd_ >= 0);
  Append(static_cast<const char*>(data), bytes);
  Append(kZeros, static_cast<size_t>(Padded(bytes_) - bytes_));
  return PieceChecksum(data, bytes);
}

void ShardWriter::Finish() {
  DT_CHECK(fd_ >= 0);
  if (in_chunk_ % static_cast<size_t>(kSector) != 0) GoThroughCache();  // the file's end need not be aligned
  Flush();
  Sync();
  const int fd = fd_;
  fd_ = -1;
  if (close(fd) != 0) Fail(errno);
}

void ShardWriter::Sync() const {
  const FaultScope fault("fsync", path_.c_str());
  if (fsync(fd_) != 0) Fail(errno);
}

void ShardWriter::Append(const char* data, size_t bytes) {
  bytes_ += static_cast<int64_t>(bytes);
  while (bytes > 0) {
    const size_t part = std::min(bytes, kChunk - in_chunk_);
    std::memcpy(chunk_.get() + in_chunk_, data, part);
    in_chunk_ += part;
    data += part;
    bytes -= part;
    if (in_chunk_ == kChunk) Flush();
  }
}

// A file system that accepts the flag but not the write fails with EINVAL.
void ShardWriter::Flush() {
  const std::string_view chunk{chunk_.get(), in_chunk_};
  int failed = WriteAll(fd_, chunk);
  if (failed == EINVAL && direct_) {
    GoThroughCache();
    if (lseek(fd_, flushed_, SEEK_SET) < 0) Fail(errno);  // part of the chunk may be written
    failed = WriteAll(fd_, chunk);
  }
  if (failed != 0) Fail(failed);
  flushed_ += static_cast<int64_t>(in_chunk_);
  in_chunk_ = 0;
  if (!direct_) PushOut();
}

void ShardWriter::GoThroughCache() {
  direct_ = false;
  if (fcntl(fd_, F_SETFL, 0) != 0) Fail(errno);
}

// A file system without this call writes when it likes. Other errors are those of writing, and must be taken
// here: fsync() does not report them again.
void ShardWriter::PushOut() {
  if (flushed_ - pushed_ < kWindow) return;
  sync_file_range(fd_, pushed_, flushed_ - pushed_, SYNC_FILE_RANGE_WRITE);
  // 0 bytes would mean all of it.
  if (pushed_ > kInFlight) {
    const bool done = sync_file_range(fd_, 0, pushed_ - kInFlight,
                                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                          SYNC_FILE_RANGE_WAIT_AFTER) == 0;
    const bool unknown = errno == EINVAL || errno == ESPIPE || errno == ENOSYS || errno == EOPNOTSUPP;
    if (!done && !unknown) Fail(errno);
  }
  pushed_ = flushed_;
}

void ShardWriter::Fail(int error) const { throw SaveError(path_, "written", error); }

}  // namespace dtrain
