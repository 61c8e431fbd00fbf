#include "trainer/summary/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include "base/crc32c.h"
#include "base/file.h"

namespace dtrain {
namespace {

void AppendLittleEndian(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// Masked as the format asks: a checksum over data that holds checksums would be weak.
void AppendMaskedCrc(std::string_view data, std::string* out) {
  const uint32_t crc = Crc32cExtend(0, data.data(), data.size());
  AppendLittleEndian(((crc >> 15) | (crc << 17)) + 0xa282ead8u, 4, out);
}

}  // namespace

RecordFile::~RecordFile() {
  Flush();
  if (fd_ >= 0) close(fd_);
}

int RecordFile::Create(const std::string& path) {
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  return fd_ >= 0 ? 0 : errno;
}

void RecordFile::Append(std::string_view record) {
  if (fd_ < 0) return;
  const size_t begin = waiting_.size();
  AppendLittleEndian(record.size(), 8, &waiting_);
  AppendMaskedCrc(std::string_view(waiting_).substr(begin, 8), &waiting_);
  waiting_.append(record);
  AppendMaskedCrc(record, &waiting_);
}

int RecordFile::Flush() {
  const int failed = fd_ >= 0 ? WriteAll(fd_, waiting_) : 0;
  waiting_.clear();
  if (failed != 0) {
    close(fd_);
    fd_ = -1;
  }
  return failed;
}

}  // namespace dtrain
