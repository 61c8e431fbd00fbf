#include "trainer/data/files/input_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dtrain {
namespace {

constexpr size_t kInputBytes = 1 << 17;
constexpr int kGzipOnly = 16;  // added to the window bits

}  // namespace

UserError UnreadableError(const std::string& path, int64_t content_byte, const std::string& why) {
  return UserError("{}: cannot be read after byte {} of its content: {}. Fetch the file anew.", path,
                   content_byte, why);
}

bool GzipFile::IsGzip(std::string_view bytes) { return bytes.substr(0, 2) == "\x1f\x8b"; }

GzipFile::GzipFile(std::string path, Source source)
    : path_(std::move(path)), source_(std::move(source)), input_(kInputBytes) {
  if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
}

GzipFile::~GzipFile() { inflateEnd(&stream_); }

int64_t GzipFile::Read(char* out, int64_t size) {
  DT_CHECK(size <= UINT32_MAX, size);  // limit of zlib
  stream_.next_out = reinterpret_cast<Bytef*>(out);
  stream_.avail_out = static_cast<uInt>(size);
  while (stream_.avail_out > 0 && (in_member_ || BeginMember())) Inflate();
  const int64_t done = size - stream_.avail_out;
  content_ += done;
  return done;
}

// Returns false at the file's end, padding included.
bool GzipFile::BeginMember() {
  if (!HasInput(1)) return false;
  HasInput(2);
  const std::string_view input = Input();
  if (input[0] == '\0') {
    SkipPadding();
    return false;
  }
  // A single first byte is a truncated member, which Inflate() reports.
  if (!IsGzip(input) && input != "\x1f") ThrowTrailing(offset());
  DT_CHECK(inflateReset(&stream_) == Z_OK, path_);
  in_member_ = true;
  return true;
}

// Makes at least one byte of content available.
void GzipFile::Inflate() {
  if (!HasInput(1)) throw UnreadableError(path_, content_, "unexpected end of file");
  const int code = inflate(&stream_, Z_NO_FLUSH);
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  if (code != Z_OK && code != Z_STREAM_END) {
    throw UnreadableError(path_, content_, stream_.msg != nullptr ? stream_.msg : zError(code));
  }
  in_member_ = code == Z_OK;
}

void GzipFile::SkipPadding() {
  const int64_t begin = offset();
  while (HasInput(1)) {
    if (Input().find_first_not_of('\0') != std::string_view::npos) ThrowTrailing(begin);
    stream_.avail_in = 0;
  }
}

void GzipFile::ThrowTrailing(int64_t member_end) const {
  throw UserError(
      "{}: byte {}: a gzip member ends here, and what follows is neither another one nor zeros up to the "
      "file's end. Fetch the file anew, or cut off what follows if it is no data: head -c {}.",
      path_, member_end, member_end);
}

// Reads more if fewer than `count` bytes (at most 2) are left, after moving these to the front. Returns false
// at the file's end.
bool GzipFile::HasInput(size_t count) {
  while (stream_.avail_in < count) {
    const size_t left = stream_.avail_in;
    if (left > 0) std::memmove(input_.data(), stream_.next_in, left);
    const int64_t got = source_(input_.data() + left, static_cast<int64_t>(input_.size() - left));
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in += static_cast<uInt>(got);
    taken_ += got;
    if (got == 0) return false;
  }
  return true;
}

std::string_view GzipFile::Input() const {
  return {reinterpret_cast<const char*>(stream_.next_in), stream_.avail_in};
}

namespace {

constexpr uint64_t kLargestGzipRatio = 1032;  // zlib's "Technical Details": the limit of deflate
constexpr int64_t kPieceBytes = 1 << 20;      // damage is reported to within one of these
constexpr size_t kMaxBlanks = 1 << 12;

uint64_t SizeOf(const std::string& path, const std::string& key) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) {
    throw UserError("{}: cannot be opened: {}. Is {} right?", path, ErrnoText(errno), key);
  }
  if (!S_ISREG(about.st_mode)) {
    throw UserError("{}: is not a file; {} must name one.", path, key);
  }
  if (about.st_size == 0) {
    throw UserError("{}: is empty (0 bytes); {} must name a file with data. Fetch it anew.", path, key);
  }
  return static_cast<uint64_t>(about.st_size);
}

bool BeginsAsGzip(int fd) {
  std::array<char, 2> bytes{};
  return pread(fd, bytes.data(), bytes.size(), 0) == 2 && GzipFile::IsGzip({bytes.data(), bytes.size()});
}

// Calls read(2), again after a signal.
ssize_t ReadAgain(int fd, char* out, int64_t size) {
  ssize_t got = -1;
  do {
    got = read(fd, out, static_cast<size_t>(size));
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

InputBytes::InputBytes(const std::string& path, const std::string& key)
    : standard_input_(path == "-"), path_(standard_input_ ? "standard input" : path) {
  if (standard_input_) return;
  file_size_ = SizeOf(path, key);
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    throw UserError("{}: cannot be opened: {}. May this user read it?", path_, ErrnoText(errno));
  }
  if (BeginsAsGzip(fd_)) {
    gzip_ = std::make_unique<GzipFile>(path_,
                                       [this](char* out, int64_t size) { return ReadDescriptor(out, size); });
  }
}

InputBytes::~InputBytes() {
  if (fd_ >= 0) close(fd_);
}

int64_t InputBytes::Read(void* out, int64_t size) {
  int64_t done = 0;
  while (done < size) {
    const int64_t got = ReadSome(static_cast<char*>(out) + done, size - done);
    if (got == 0) break;
    done += got;
  }
  return done;
}

int64_t InputBytes::ReadSome(void* out, int64_t size) {
  char* const begin = static_cast<char*>(out);
  if (peeked_.empty()) return ReadUnpeeked(begin, size);
  const size_t count = peeked_.copy(begin, static_cast<size_t>(size));
  peeked_.erase(0, count);
  return static_cast<int64_t>(count);
}

int64_t InputBytes::ReadUnpeeked(char* out, int64_t size) {
  return standard_input_ ? ReadStandardInput(out, size) : ReadFile(out, size);
}

void InputBytes::SkipTo(int64_t byte) {
  if (CanSeek()) {
    if (lseek(fd_, byte, SEEK_SET) != byte) throw UnreadableError(path_, byte, ErrnoText(errno));
    offset_ = byte;
    peeked_.clear();
    return;
  }
  std::vector<char> skipped(static_cast<size_t>(kPieceBytes));
  int64_t at = offset_ - static_cast<int64_t>(peeked_.size());
  DT_CHECK(byte >= at, byte, at);
  while (at < byte) {
    const int64_t got = ReadSome(skipped.data(), std::min(kPieceBytes, byte - at));
    if (got == 0) throw UnreadableError(path_, at, "it is shorter than it was");
    at += got;
  }
}

bool InputBytes::HasPeeked(size_t count) {
  char byte = 0;
  while (peeked_.size() < count && ReadUnpeeked(&byte, 1) == 1) peeked_ += byte;
  return peeked_.size() >= count;
}

size_t InputBytes::CountBlanks(std::string_view blanks) {
  size_t count = 0;
  while (count < kMaxBlanks && HasPeeked(count + 1) &&
         blanks.find(peeked_[count]) != std::string_view::npos) {
    ++count;
  }
  return count;
}

bool InputBytes::ContinuesWith(std::string_view text, size_t behind) {
  for (size_t i = behind; i < behind + text.size(); ++i) {
    if (!HasPeeked(i + 1) || peeked_[i] != text[i - behind]) return false;
  }
  return true;
}

int64_t InputBytes::ReadStandardInput(char* out, int64_t size) {
  const ssize_t got = ReadAgain(STDIN_FILENO, out, size);
  if (got < 0) throw IoError("{}: cannot be read: {}.", path_, ErrnoText(errno));
  if (offset_ == 0 && got >= 1 && out[0] == '\x1f') {
    throw UserError("{}: is gzip; it must be plain. Unpack it on the way: zcat FILE | dtrain ...", path_);
  }
  offset_ += got;
  return got;
}

int64_t InputBytes::ReadFile(char* begin, int64_t size) {
  int64_t done = 0;
  while (done < size) {
    const int64_t piece = std::min(size - done, kPieceBytes);
    const int64_t got = gzip_ ? gzip_->Read(begin + done, piece) : ReadDescriptor(begin + done, piece);
    if (got == 0) break;
    done += got;
    offset_ += got;
  }
  return done;
}

int64_t InputBytes::ReadDescriptor(char* out, int64_t size) {
  const ssize_t got = ReadAgain(fd_, out, size);
  if (got < 0) throw UnreadableError(path_, offset_, ErrnoText(errno));
  return got;
}

bool InputBytes::CanHold(uint64_t size) const {
  if (standard_input_) return true;
  return compressed() ? size / kLargestGzipRatio <= file_size_ : size <= file_size_;
}

int64_t InputBytes::ExpectedContent() const {
  if (standard_input_) return offset_;
  if (!compressed()) return static_cast<int64_t>(file_size_);
  const int64_t read = gzip_->offset();
  if (read <= 0) return offset_;
  const double pace = static_cast<double>(offset_) / static_cast<double>(read);
  return static_cast<int64_t>(static_cast<double>(file_size_) * pace);
}

}  // namespace dtrain
