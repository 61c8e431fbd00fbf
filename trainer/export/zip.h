// Zip archives (PKWARE's APPNOTE.TXT): the records as they are stored, and a reader for members by name,
// stored or deflated, also above 4 GiB (zip64). Implemented here because libzip needs libcrypto and libbz2,
// which each process would load, and cannot write 8-byte sizes only. Owner: the reader of the archive.
// Thread: one.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/export/tensor_file.h"

// Little-endian, without gaps.
namespace dtrain::zip {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint16_t kZip64 = 1;  // the extra field with 8-byte sizes
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kEncrypted = 1;  // flag
constexpr uint32_t kInZip64 = 0xffffffff;

#pragma pack(push, 1)
struct Local {
  uint32_t signature = kLocal;
  uint16_t version = 45, flags = 0, method = kStored, time = 0, date = 0x21;  // 1980-01-01
  uint32_t crc = 0, compressed = kInZip64, size = kInZip64;
  uint16_t name = 0, extra = 0;
};
struct Extra64 {
  uint16_t id = kZip64, bytes = 16;
  uint64_t size = 0, compressed = 0;
};
struct Central {
  uint32_t signature = kCentral;
  uint16_t made_by = 45, version = 45, flags = 0, method = kStored, time = 0, date = 0x21;
  uint32_t crc = 0, compressed = kInZip64, size = kInZip64;
  uint16_t name = 0, extra = 0, comment = 0, disk = 0, internal = 0;
  uint32_t external = 0, offset = kInZip64;
};
struct CentralExtra64 {
  uint16_t id = kZip64, bytes = 24;
  uint64_t size = 0, compressed = 0, offset = 0;
};
struct End64 {
  uint32_t signature = kEnd64;
  uint64_t bytes = 44;
  uint16_t made_by = 45, version = 45;
  uint32_t disk = 0, directory_disk = 0;
  uint64_t entries_here = 0, entries = 0, directory_bytes = 0, directory = 0;
};
struct End64Locator {
  uint32_t signature = kEnd64Locator, disk = 0;
  uint64_t end64 = 0;
  uint32_t disks = 1;
};
struct End {
  uint32_t signature = kEnd;
  uint16_t disk = 0, directory_disk = 0, entries_here = 0xffff, entries = 0xffff;
  uint32_t directory_bytes = kInZip64, directory = kInZip64;
  uint16_t comment = 0;
};
#pragma pack(pop)

}  // namespace dtrain::zip

namespace dtrain {

struct ZipMember {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t compressed = 0;  // bytes in the file
  uint64_t size = 0;        // bytes of content
  uint64_t header = 0;      // where its local header is
};

// Returns the members in the archive's directory. Throws UserError if they are not in the file, or overlap.
std::vector<ZipMember> ReadZipDirectory(const SourceFile& file);

// ZipStream: reads the content of one member from front to back.
class ZipStream {
 public:
  ZipStream(const SourceFile& file, const ZipMember& member);
  ~ZipStream();
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;

  // Reads the next bytes. Throws UserError if there are too few, or if they cannot be unpacked.
  void Read(void* out, uint64_t bytes);
  // Call it after the last byte. Throws UserError if more bytes follow or the checksum differs.
  void Finish();
  uint64_t left() const { return member_.size - read_; }

 private:
  void Inflate(char* out, uint64_t bytes);
  [[noreturn]] void Refuse(const std::string& text) const;

  const SourceFile& file_;
  const ZipMember member_;
  uint64_t at_ = 0;  // in the file
  uint64_t compressed_left_;
  uint64_t read_ = 0;
  uLong crc_ = 0;
  z_stream inflate_{};
  std::vector<unsigned char> compressed_;
};

}  // namespace dtrain
