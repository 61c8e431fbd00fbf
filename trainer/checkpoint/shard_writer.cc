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
#include "trainer/model/layout.h"
#include "trainer/table/hash_pieces.h"

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

RangeWriter::RangeWriter(const Layout& layout, int ps, int64_t slots, const std::string& directory)
    : range_(layout.ps.at(static_cast<size_t>(ps))),
      slots_(slots),
      is_hashed_(layout.has_hash_table()),
      of_range_(RangePiecesOf(layout, ps, slots)),
      count_(PartPieces(layout, ps, slots)),
      pieces_(PiecesOf(layout, ps, static_cast<int>(slots))),
      file_(directory + "/" + ShardName(ps, static_cast<int64_t>(layout.ps.size()))) {
  if (!is_hashed_) written_.checksums.reserve(pieces_.size() + static_cast<size_t>(count_ - of_range_));
}

void RangeWriter::Add(net::TensorView values) {
  DT_CHECK(added_ < count_, added_, count_);
  if (added_ < of_range_) return AddRange(values);
  ++added_;
  if (is_hashed_) {
    const std::optional<uint64_t> begin = BeginOf(values);
    if (!begin) return;
    written_.firsts.push_back(*begin);
  }
  written_.sizes.push_back(values.size);
  written_.checksums.push_back(values.size == 0 ? 0 : file_.Add(values.data, values.size));
}

// What lies between variables is not written.
void RangeWriter::AddRange(net::TensorView values) {
  const auto [slot, elements] = RangePieceAt(range_, slots_, added_++);
  for (size_t i = written_.checksums.size(); i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    if (piece.slot != slot || piece.begin >= elements.end) return;
    const size_t offset = static_cast<size_t>(piece.begin - elements.begin) * sizeof(float);
    const size_t bytes = static_cast<size_t>(piece.count) * sizeof(float);
    written_.checksums.push_back(file_.Add(values.data + offset, bytes));
  }
}

WrittenPart RangeWriter::Finish() {
  DT_CHECK(added_ == count_ || is_hashed_, added_, count_);
  file_.Finish();
  return std::move(written_);
}

}  // namespace dtrain
