// RecordFile: a file of framed records that grows at its end (TFRecord). Each record is
//   length u64le, masked CRC-32C of those 8 bytes u32le, the record, masked CRC-32C of the record u32le
// so that a reader finds where a file that was cut off ends.
// Records are gathered in memory; only Flush() writes. Owner: EventWriter. Thread: the owner's.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrain {

class RecordFile {
 public:
  RecordFile() = default;
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // Makes a new file; one that is there already is left alone (EEXIST). Returns 0 or errno.
  int Create(const std::string& path);

  void Append(std::string_view record);
  size_t waiting_bytes() const { return waiting_.size(); }
  // Writes what waits. Returns 0 or errno; after a failure nothing more is written.
  int Flush();

 private:
  int fd_ = -1;
  std::string waiting_;
};

}  // namespace dtrain
