#include "trainer/input/decoders.h"

#include <fmt/core.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/names.h"
#include "trainer/config/data_config.h"

namespace dtrain {
namespace {

constexpr size_t kInputBytes = 1 << 17;
constexpr int kGzipOnly = 16;  // added to the window bits
constexpr int kMaxWindowLog = 27;

constexpr std::string_view kGzipMark = "\x1f\x8b";
constexpr std::string_view kZstdMark = "\x28\xb5\x2f\xfd";
// Of a skippable frame; its first byte is 0x50 to 0x5f.
constexpr std::string_view kSkippableMark = "\x2a\x4d\x18";

// Whether `bytes` begin with `mark`, or are the begin of it.
bool Agree(std::string_view bytes, std::string_view mark) {
  const size_t size = std::min(bytes.size(), mark.size());
  return bytes.substr(0, size) == mark.substr(0, size);
}

bool AgreesWithZstd(std::string_view bytes) {
  if (Agree(bytes, kZstdMark)) return true;
  return (bytes[0] & 0xf0) == 0x50 && Agree(bytes.substr(1), kSkippableMark);
}

}  // namespace

Packing PackingOf(std::string_view bytes) {
  if (bytes.size() >= kGzipMark.size() && Agree(bytes, kGzipMark)) return Packing::kGzip;
  return bytes.size() >= kZstdMark.size() && AgreesWithZstd(bytes) ? Packing::kZstd : Packing::kNone;
}

bool BeginsZlib(std::string_view bytes) {
  if (bytes.size() < 2) return false;
  const unsigned method = static_cast<unsigned char>(bytes[0]), flags = static_cast<unsigned char>(bytes[1]);
  constexpr unsigned kDictionary = 0x20;
  return (method & 0xf) == Z_DEFLATED && method >> 4 <= 7 && (method * 256 + flags) % 31 == 0 &&
         (flags & kDictionary) == 0;
}

bool MayBePacked(std::string_view bytes) {
  if (bytes.empty()) return true;
  if (bytes.size() < kGzipMark.size() && Agree(bytes, kGzipMark)) return true;
  return bytes.size() < kZstdMark.size() && AgreesWithZstd(bytes);
}

uint64_t MaxRatio(Packing packing) {
  if (packing == Packing::kGzip || packing == Packing::kZlib)
    return 1032;  // zlib's "Technical Details": the limit of deflate
  // RFC 8878, 3.1.1.2: a block of 128 KiB of one byte takes four bytes.
  return packing == Packing::kZstd ? 1 << 15 : 1;
}

UserError UnreadableError(const std::string& path, int64_t content_byte, const std::string& why) {
  return UserError("{}: cannot be read after byte {} of its content: {}. Fetch the file anew.", path,
                   content_byte, why);
}

std::string NoTextBecause(std::string_view bytes, Packing packing, const std::string& path) {
  using namespace std::string_view_literals;
  constexpr size_t kTarMark = 257;
  struct Kind {
    size_t at;
    std::string_view mark;
    const char* what;
    const char* command;  // that unpacks it, without the path; empty: there is none
  };
  static constexpr Kind kKinds[] = {
      {4, "1AY&SY"sv, "packed with bzip2", "bzcat"},
      {0,
       "\xfd"sv
       "7zXZ\0"sv,
       "packed with xz", "xzcat"},
      {0, "PK\3\4"sv, "a zip archive, as Excel's .xlsx is too", "unzip -p"},
      {kTarMark, "ustar"sv, "a tar archive", "tar -xOf"},
      {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive", "7z x -so"},
      {0, "Rar!\x1a\7"sv, "a RAR archive", "unrar p -inul"},
      {0, "\4\x22\x4d\x18"sv, "packed with lz4", "lz4cat"},
      {0, "\x1f\x9d"sv, "packed with compress", "zcat"},
      {0, "\xff\6\0\0sNaPpY"sv, "packed with snappy", "snzip -dc"},
      {0, "\x89LZO\0"sv, "packed with lzop", "lzop -dc"},
      {0, "\x1f\x8b"sv, "packed with gzip", "gzip -dc"},
      {0, "\x28\xb5\x2f\xfd"sv, "packed with zstd", "zstd -dc"},
      {0, "PAR1\x15"sv, "Parquet", ""},
      {0, "ARROW1\0"sv, "Arrow (Feather)", ""},
      {0, "Obj\1"sv, "Avro", ""},
      {0, "\x93NUMPY"sv, "an array of numpy", ""},
      {0, "\x89HDF\r\n"sv, "HDF5", ""},
      {0, "SQLite format 3\0"sv, "a database of SQLite", ""},
      {0, "\xd0\xcf\x11\xe0"sv, "a workbook of Excel", ""},
      {0, "%PDF-"sv, "PDF", ""},
  };
  for (const Kind& kind : kKinds) {
    if (bytes.size() < kind.at || bytes.substr(kind.at, kind.mark.size()) != kind.mark) continue;
    const char* const outer = packing == Packing::kGzip ? "gzip" : "zstd";
    const std::string is = fmt::format("is {}{}; rows must be text.", kind.what,
                                       packing == Packing::kNone ? "" : fmt::format(", inside {}", outer));
    if (*kind.command == '\0') return is + " Save it as CSV.";
    const std::string file = IsPipe(path) ? "FILE" : ShellQuoted(path);
    return fmt::format("{} Give what unpacks it as the path: \"exec:{}\".", is,
                       packing == Packing::kNone
                           ? fmt::format("{} {}", kind.command, file)
                           : fmt::format("{} -dc {} | {} -", outer, file, kind.command));
  }
  return "";
}

Decoder::Decoder(std::string path, Source source)
    : path_(std::move(path)), source_(std::move(source)), buffer_(kInputBytes) {}

int64_t Decoder::Read(char* out, int64_t size) {
  int64_t got = 0;
  while (got == 0 && size > 0 && (in_member_ || (in_member_ = BeginMember()))) {
    bool ended = false;
    got = Decode(out, size, &ended);
    in_member_ = !ended;
  }
  content_ += got;
  return got;
}

bool Decoder::HasInput(size_t count) {
  while (input_.size() < count) {
    const size_t left = input_.size();
    if (left > 0) std::memmove(buffer_.data(), input_.data(), left);
    const int64_t got = source_(buffer_.data() + left, static_cast<int64_t>(buffer_.size() - left));
    input_ = {buffer_.data(), left + static_cast<size_t>(got)};
    taken_ += got;
    if (got == 0) return false;
  }
  return true;
}

void Decoder::ThrowUnreadable(const std::string& why) const { throw UnreadableError(path_, content_, why); }

namespace {

// DeflatedFile: gzip or zlib. zlib's gzread is not used because it ends silently if anything but another
// member follows a member, and rows would be missing.
class DeflatedFile : public Decoder {
 public:
  DeflatedFile(const std::string& path, Source source, bool is_gzip)
      : Decoder(path, std::move(source)), is_gzip_(is_gzip) {
    if (inflateInit2(&stream_, MAX_WBITS + (is_gzip_ ? kGzipOnly : 0)) != Z_OK) throw std::bad_alloc();
  }
  ~DeflatedFile() override { inflateEnd(&stream_); }

 private:
  bool BeginMember() override {
    if (!HasInput(1)) return false;
    if (!is_gzip_) {
      if (offset() == 0) return true;
      throw UserError(
          "{}: byte {}: a zlib stream ends here, and it must be the only one. Fetch the file anew, or cut "
          "off "
          "what follows if it is no data: head -c {}.",
          path(), offset(), offset());
    }
    HasInput(2);
    if (input()[0] == '\0') {
      SkipPadding();
      return false;
    }
    // A single first byte is a truncated member, which Decode() reports.
    if (!Agree(input(), kGzipMark)) ThrowTrailing(offset());
    DT_CHECK(inflateReset(&stream_) == Z_OK, path());
    return true;
  }

  int64_t Decode(char* out, int64_t size, bool* ended) override {
    if (!HasInput(1)) ThrowUnreadable("unexpected end of file");
    const size_t given = input().size();
    const auto space = static_cast<uInt>(std::min<int64_t>(size, INT32_MAX));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input().data()));  // zlib only reads them
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = space;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    Take(given - stream_.avail_in);
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code != Z_OK && code != Z_STREAM_END) {
      ThrowUnreadable(stream_.msg != nullptr ? stream_.msg : zError(code));
    }
    *ended = code == Z_STREAM_END;
    return space - stream_.avail_out;
  }

  void SkipPadding() {
    const int64_t begin = offset();
    while (HasInput(1)) {
      if (input().find_first_not_of('\0') != std::string_view::npos) ThrowTrailing(begin);
      Take(input().size());
    }
  }

  [[noreturn]] void ThrowTrailing(int64_t member_end) const {
    throw UserError(
        "{}: byte {}: a gzip member ends here, and what follows is neither another one nor zeros up to the "
        "file's end. Fetch the file anew, or cut off what follows if it is no data: head -c {}.",
        path(), member_end, member_end);
  }

  const bool is_gzip_;
  z_stream stream_{};
};

// ZstdFile: frames, and skippable frames between them, which have no content.
class ZstdFile : public Decoder {
 public:
  ZstdFile(const std::string& path, Source source) : Decoder(path, std::move(source)) {
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  ~ZstdFile() override { ZSTD_freeDCtx(context_); }

 private:
  bool BeginMember() override {
    if (!HasInput(1)) return false;
    HasInput(kZstdMark.size());
    // Fewer bytes are a truncated frame, which Decode() reports.
    if (AgreesWithZstd(input())) return true;
    throw UserError(
        "{}: byte {}: a zstd frame ends here, and what follows is no other one. Fetch the file anew, or cut "
        "off what follows if it is no data: head -c {}.",
        path(), offset(), offset());
  }

  int64_t Decode(char* out, int64_t size, bool* ended) override {
    if (!may_hold_ && !HasInput(1)) ThrowUnreadable("unexpected end of file");
    ZSTD_inBuffer from{input().data(), input().size(), 0};
    ZSTD_outBuffer to{out, static_cast<size_t>(size), 0};
    const size_t code = ZSTD_decompressStream(context_, &to, &from);
    Take(from.pos);
    if (ZSTD_isError(code) != 0) Throw(code);
    *ended = code == 0;
    may_hold_ = !*ended && to.pos == to.size;
    return static_cast<int64_t>(to.pos);
  }

  [[noreturn]] void Throw(size_t code) const {
    switch (ZSTD_getErrorCode(code)) {
      case ZSTD_error_memory_allocation:
        throw std::bad_alloc();
      case ZSTD_error_frameParameter_windowTooLarge:
        throw UserError(
            "{}: byte {}: a zstd frame needs a window above {} MiB, which is the limit. Pack it anew: zstd "
            "-d --long=31 -c FILE | zstd --long={} -o NEW.zst.",
            path(), offset(), (1 << kMaxWindowLog) >> 20, kMaxWindowLog);
      default:
        ThrowUnreadable(ZSTD_getErrorName(code));
    }
  }

  ZSTD_DCtx* const context_ = ZSTD_createDCtx();
  bool may_hold_ = false;  // the last call filled its output, so that the context may hold more
};

}  // namespace

std::unique_ptr<Decoder> MakeDecoder(Packing packing, const std::string& path, Decoder::Source source) {
  if (packing == Packing::kNone) return nullptr;
  if (packing == Packing::kZstd) return std::make_unique<ZstdFile>(path, std::move(source));
  return std::make_unique<DeflatedFile>(path, std::move(source), packing == Packing::kGzip);
}

}  // namespace dtrain
