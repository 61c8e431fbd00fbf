// ZipArchive: the members of a zip file, stored or deflated, by name; those of more than 4 GiB too (zip64).
// Owner: NpzFile. Thread: one.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/export/source_file.h"

namespace dtrain {

struct ZipMember {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t packed = 0;  // bytes in the file
  uint64_t size = 0;    // bytes of content
  uint64_t header = 0;  // where its local header is
};

// The members that the archive's directory names. UserError where they are not in the file, or overlap.
std::vector<ZipMember> ReadZipDirectory(const SourceFile& file);

// The content of one member, from front to back.
class ZipStream {
 public:
  ZipStream(const SourceFile& file, const ZipMember& member);
  ~ZipStream();
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;

  // The next bytes. UserError where there are not so many, or they cannot be unpacked.
  void Read(void* out, uint64_t bytes);
  // After the last: UserError where more follow, or the checksum is another one.
  void Finish();
  uint64_t left() const { return member_.size - read_; }

 private:
  void Inflate(char* out, uint64_t bytes);
  [[noreturn]] void Refuse(const std::string& text) const;

  const SourceFile& file_;
  const ZipMember member_;
  uint64_t at_ = 0;  // of the file
  uint64_t packed_left_;
  uint64_t read_ = 0;
  uLong crc_ = 0;
  z_stream inflate_{};
  std::vector<unsigned char> packed_;
};

}  // namespace dtrain
