#include "trainer/export/zip.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr uint64_t kMaxComment = 65535;
constexpr char kDamaged[] = "It is cut off or damaged: fetch it anew.";

struct Directory {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

template <typename T>
T Record(const SourceFile& file, uint64_t offset) {
  T record;
  file.ReadAt(offset, sizeof record, &record);
  return record;
}

// Returns the offset of the last record, behind which only a comment may stand.
uint64_t FindEnd(const SourceFile& file) {
  const uint64_t tail = std::min<uint64_t>(file.size(), sizeof(zip::End) + kMaxComment);
  std::string bytes(tail, '\0');
  file.ReadAt(file.size() - tail, tail, bytes.data());
  for (uint64_t at = tail < sizeof(zip::End) ? 0 : tail - sizeof(zip::End) + 1; at-- > 0;) {
    if (std::memcmp(bytes.data() + at, &zip::kEnd, sizeof zip::kEnd) == 0) return file.size() - tail + at;
  }
  file.Refuse(fmt::format("its directory is missing at the end. {}", kDamaged));
}

Directory FindDirectory(const SourceFile& file) {
  const uint64_t end_at = FindEnd(file);
  const auto end = Record<zip::End>(file, end_at);
  Directory directory{end.directory, end.directory_bytes};
  if (end_at >= sizeof(zip::End64Locator)) {
    const auto locator = Record<zip::End64Locator>(file, end_at - sizeof(zip::End64Locator));
    if (locator.signature == zip::kEnd64Locator && file.Holds(locator.end64, sizeof(zip::End64))) {
      const auto end64 = Record<zip::End64>(file, locator.end64);
      if (end64.signature == zip::kEnd64) directory = {end64.directory, end64.directory_bytes};
    }
  }
  if (!file.Holds(directory.begin, directory.bytes)) {
    file.Refuse(fmt::format("its directory of {} bytes at byte {} is not in it. {}", directory.bytes,
                            directory.begin, kDamaged));
  }
  if (directory.bytes > kMaxDescription) {
    file.Refuse(fmt::format("a directory of {} bytes; must be at most {}. Save fewer arrays in one file.",
                            directory.bytes, kMaxDescription));
  }
  return directory;
}

// Sizes and offset that do not fit into 4 bytes follow in this order; those that fit are left out.
void TakeExtra(const char* extra, size_t bytes, ZipMember* member) {
  while (bytes >= 4) {
    uint16_t id = 0, size = 0;
    std::memcpy(&id, extra, 2);
    std::memcpy(&size, extra + 2, 2);
    extra += 4;
    bytes -= 4;
    if (size > bytes) return;
    if (id == zip::kZip64) {
      size_t at = 0;
      for (uint64_t* value : {&member->size, &member->compressed, &member->header}) {
        if (*value != zip::kInZip64 || at + 8 > size) continue;
        std::memcpy(value, extra + at, 8);
        at += 8;
      }
    }
    extra += size;
    bytes -= size;
  }
}

void CheckMember(const SourceFile& file, const zip::Central& central, const ZipMember& member) {
  const std::string title = Quoted(Shown(member.name));
  if ((central.flags & zip::kEncrypted) != 0)
    file.Refuse(fmt::format("{} is encrypted; it must not be.", title));
  if (central.method != zip::kStored && central.method != zip::kDeflated) {
    file.Refuse(fmt::format("{} is compressed by method {}; must be stored or deflated, as by numpy.", title,
                            central.method));
  }
  // Deflate compresses at most 1032-fold (zlib's "Technical Details").
  const bool fits =
      member.deflated ? member.size / 1032 <= member.compressed : member.size == member.compressed;
  if (fits && file.Holds(member.header, sizeof(zip::Local)) &&
      file.Holds(member.header + sizeof(zip::Local), member.compressed)) {
    return;
  }
  file.Refuse(fmt::format("{} of {} bytes at byte {} is not in it. {}", title, member.compressed,
                          member.header, kDamaged));
}

void CheckOverlaps(const SourceFile& file, const std::vector<ZipMember>& members) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const ZipMember& member : members) {
    ranges.emplace_back(member.header, member.header + sizeof(zip::Local) + member.compressed);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) file.Refuse("two of its members overlap. It is damaged.");
  }
}

}  // namespace

std::vector<ZipMember> ReadZipDirectory(const SourceFile& file) {
  const Directory directory = FindDirectory(file);
  std::string bytes(directory.bytes, '\0');
  file.ReadAt(directory.begin, directory.bytes, bytes.data());
  std::vector<ZipMember> members;
  for (size_t at = 0; at + sizeof(zip::Central) <= bytes.size();) {
    zip::Central central;
    std::memcpy(&central, bytes.data() + at, sizeof central);
    const size_t name_at = at + sizeof central, extra_at = name_at + central.name;
    at = extra_at + central.extra + central.comment;
    if (central.signature != zip::kCentral || at > bytes.size()) {
      file.Refuse(fmt::format("its directory cannot be read. {}", kDamaged));
    }
    ZipMember member{bytes.substr(name_at, central.name),
                     central.method == zip::kDeflated,
                     central.crc,
                     central.compressed,
                     central.size,
                     central.offset};
    TakeExtra(bytes.data() + extra_at, central.extra, &member);
    CheckMember(file, central, member);
    members.push_back(std::move(member));
  }
  CheckOverlaps(file, members);
  return members;
}

ZipStream::ZipStream(const SourceFile& file, const ZipMember& member)
    : file_(file), member_(member), compressed_left_(member.compressed) {
  const auto local = Record<zip::Local>(file, member.header);
  at_ = member.header + sizeof local + local.name + local.extra;
  if (local.signature != zip::kLocal || !file.Holds(at_, member.compressed)) Refuse(kDamaged);
  if (member.deflated && inflateInit2(&inflate_, -MAX_WBITS) != Z_OK) Refuse("zlib has no memory for it.");
}

ZipStream::~ZipStream() {
  if (member_.deflated) inflateEnd(&inflate_);
}

void ZipStream::Read(void* out, uint64_t bytes) {
  if (bytes > left()) Refuse(fmt::format("it ends after {} bytes. {}", member_.size, kDamaged));
  if (member_.deflated) {
    Inflate(static_cast<char*>(out), bytes);
  } else {
    file_.ReadAt(at_, bytes, out);
    at_ += bytes;
  }
  crc_ = crc32_z(crc_, static_cast<const Bytef*>(out), bytes);
  read_ += bytes;
}

void ZipStream::Inflate(char* out, uint64_t bytes) {
  constexpr uint64_t kPiece = 1 << 16;
  compressed_.resize(kPiece);
  while (bytes > 0) {
    if (inflate_.avail_in == 0) {
      const uint64_t piece = std::min(kPiece, compressed_left_);
      file_.ReadAt(at_, piece, compressed_.data());
      at_ += piece;
      compressed_left_ -= piece;
      inflate_.next_in = compressed_.data();
      inflate_.avail_in = static_cast<uInt>(piece);
    }
    const auto room = static_cast<uInt>(std::min<uint64_t>(bytes, 1 << 30));
    inflate_.next_out = reinterpret_cast<Bytef*>(out);
    inflate_.avail_out = room;
    const int code = inflate(&inflate_, Z_NO_FLUSH);
    const uint64_t got = room - inflate_.avail_out;
    out += got;
    bytes -= got;
    if (bytes > 0 && (code != Z_OK || (got == 0 && compressed_left_ == 0 && inflate_.avail_in == 0))) {
      Refuse(fmt::format("it cannot be unpacked after {} bytes. {}", read_, kDamaged));
    }
  }
}

void ZipStream::Finish() {
  if (left() > 0) Refuse(fmt::format("{} bytes follow its last value. {}", left(), kDamaged));
  if (crc_ != member_.crc)
    Refuse(fmt::format("crc {:08x}, expected {:08x}. {}", crc_, member_.crc, kDamaged));
}

void ZipStream::Refuse(const std::string& text) const {
  file_.Refuse(fmt::format("{}: {}", Quoted(Shown(member_.name)), text));
}

}  // namespace dtrain
