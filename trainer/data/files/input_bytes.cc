#include "trainer/data/files/input_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"

namespace dtrain {
namespace {

constexpr uint64_t kLargestGzipRatio = 1032;  // zlib's "Technical Details": the limit of deflate
constexpr int64_t kPieceBytes = 1 << 20;      // damage is told to lie in one of these
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

// read(2), again where a signal came between.
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

bool InputBytes::GoesOnWith(std::string_view text, size_t behind) {
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
