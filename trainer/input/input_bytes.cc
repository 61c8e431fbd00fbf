#include "trainer/input/input_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/tfrecord.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;  // damage is reported to within one of these
constexpr size_t kMaxBlanks = 1 << 12;

class StandardInput : public PipeSource {
 public:
  int64_t Read(char* out, int64_t size) override {
    const ssize_t got = ReadAgain(STDIN_FILENO, out, size);
    if (got < 0) throw IoError("{}: cannot be read: {}.", kName, ErrnoText(errno));
    return got;
  }
  static constexpr char kName[] = "standard input";
};

uint64_t SizeOf(const std::string& path, const std::string& key) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) throw UserError(NotOpenedText(path, key, errno));
  if (!S_ISREG(about.st_mode)) {
    throw UserError("{}: is not a file; {} must name one.", path, key);
  }
  if (about.st_size == 0) {
    throw UserError("{}: is empty (0 bytes); {} must name a file with data. Fetch it anew.", path, key);
  }
  return static_cast<uint64_t>(about.st_size);
}

}  // namespace

ssize_t ReadAgain(int fd, char* out, int64_t size) {
  ssize_t got = -1;
  do {
    got = read(fd, out, static_cast<size_t>(size));
  } while (got < 0 && errno == EINTR);
  return got;
}

std::string NotOpenedText(const std::string& path, const std::string& key, int error_number) {
  std::string text =
      fmt::format("{}: cannot be opened: {}. Is {} right?", path, ErrnoText(error_number), key);
  const size_t name = path.rfind('/') + 1;
  for (const char* const of_mnist : {"-images-idx3-ubyte", "-labels-idx1-ubyte"}) {
    if (error_number != ENOENT || path.find(of_mnist, name) == path.npos) continue;
    text +=
        " scripts/fetch_mnist.sh fetches MNIST; if it is elsewhere, set DTRAIN_DATA to the directory above "
        "mnist/.";
  }
  if (error_number == ENOENT) text += SimilarPathHint(path);
  return text;
}

InputBytes::InputBytes(const std::string& path, const std::string& key)
    : path_(path == "-" ? StandardInput::kName : path),
      pipe_(path == "-" ? std::make_unique<StandardInput>() : nullptr) {
  if (pipe_ != nullptr) return;
  file_size_ = SizeOf(path, key);
  fd_ = FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd_.get() < 0) {
    throw UserError("{}: cannot be opened: {}. May this user read it?", path_, ErrnoText(errno));
  }
  FindPacking();
}

InputBytes::InputBytes(std::unique_ptr<PipeSource> pipe, std::string name)
    : path_(std::move(name)), pipe_(std::move(pipe)) {}

// Waits for no byte that decides nothing: the input may be typed.
void InputBytes::FindPacking() {
  std::string first;
  char byte = 0;
  while (first.size() < kPackingBytes && MayBePacked(first) && ReadRaw(&byte, 1) == 1) first += byte;
  first_ = std::move(first);
  SetPacking(PackingOf(first_));
}

void InputBytes::SetPacking(Packing packing) {
  knows_packing_ = true;
  packing_ = packing;
  decoder_ = MakeDecoder(packing_, path_, [this](char* out, int64_t size) { return ReadRaw(out, size); });
}

bool InputBytes::BeginsRecords(bool is_expected) {
  if (offset_ == 0 && peeked_.empty()) {
    std::string first;
    char byte = 0;
    while (first.size() < kTfrecordHead && ReadRaw(&byte, 1) == 1) first += byte;
    first_ = std::move(first);
    const Packing packing = PackingOf(first_);
    // No text is likely to begin with a byte beyond ASCII behind an x.
    const bool may_be = is_expected || (first_.size() > 1 && static_cast<signed char>(first_[1]) < 0);
    const bool is_zlib = may_be && packing == Packing::kNone && BeginsZlib(first_);
    SetPacking(BeginsTfrecord(first_) ? Packing::kNone : is_zlib ? Packing::kZlib : packing);
  }
  return HasPeeked(kTfrecordHead) && BeginsTfrecord(std::string_view(peeked_).substr(peeked_at_));
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
  if (peeked_at_ == peeked_.size()) return ReadUnpeeked(begin, size);
  const size_t count = peeked_.copy(begin, static_cast<size_t>(size), peeked_at_);
  peeked_at_ += count;
  if (peeked_at_ == peeked_.size()) {
    peeked_ = std::string();  // a head is large
    peeked_at_ = 0;
  }
  return static_cast<int64_t>(count);
}

int64_t InputBytes::ReadUnpeeked(char* out, int64_t size) {
  if (!knows_packing_) FindPacking();
  const int64_t got = ReadContent(out, size);
  offset_ += got;
  if (keeps_) head_.append(out, static_cast<size_t>(got));
  return got;
}

int64_t InputBytes::ReadContent(char* out, int64_t size) {
  int64_t done = 0, got = 0;
  do {
    const int64_t piece = std::min(size - done, kPieceBytes);
    got = decoder_ ? decoder_->Read(out + done, piece) : ReadRaw(out + done, piece);
    done += got;
  } while (got > 0 && done < size && pipe_ == nullptr);
  return done;
}

int64_t InputBytes::ReadRaw(char* out, int64_t size) {
  if (!first_.empty()) {
    const size_t count = first_.copy(out, static_cast<size_t>(size));
    first_.erase(0, count);
    return static_cast<int64_t>(count);
  }
  if (pipe_ != nullptr) return pipe_->Read(out, size);
  const ssize_t got = ReadAgain(fd_.get(), out, size);
  if (got < 0) throw UnreadableError(path_, offset_, ErrnoText(errno));
  return got;
}

void InputBytes::SkipTo(int64_t byte) {
  if (CanSeek()) {
    if (lseek(fd_.get(), byte, SEEK_SET) != byte) throw UnreadableError(path_, byte, ErrnoText(errno));
    offset_ = byte;
    first_.clear();
    peeked_.clear();
    peeked_at_ = 0;
    return;
  }
  std::vector<char> skipped(static_cast<size_t>(kPieceBytes));
  int64_t at = offset_ - static_cast<int64_t>(peeked_.size() - peeked_at_);
  DT_CHECK(byte >= at, byte, at);
  while (at < byte) {
    const int64_t got = ReadSome(skipped.data(), std::min(kPieceBytes, byte - at));
    if (got == 0) throw UnreadableError(path_, at, "it is shorter than it was");
    at += got;
  }
}

// Takes what is there of a pipe: what reads on finds as much as without the look.
bool InputBytes::HasPeeked(size_t count) {
  char bytes[4096];
  int64_t got = 1;
  while (peeked_.size() - peeked_at_ < count && got > 0) {
    got = ReadUnpeeked(bytes, sizeof bytes);
    peeked_.append(bytes, static_cast<size_t>(got));
  }
  return peeked_.size() - peeked_at_ >= count;
}

size_t InputBytes::CountBlanks(std::string_view blanks) {
  size_t count = 0;
  while (count < kMaxBlanks && HasPeeked(count + 1) &&
         blanks.find(peeked_[peeked_at_ + count]) != std::string_view::npos) {
    ++count;
  }
  return count;
}

bool InputBytes::ContinuesWith(std::string_view text, size_t behind) {
  for (size_t i = behind; i < behind + text.size(); ++i) {
    if (!HasPeeked(i + 1) || peeked_[peeked_at_ + i] != text[i - behind]) return false;
  }
  return true;
}

void InputBytes::KeepHead() {
  keeps_ = true;
  head_ = peeked_.substr(peeked_at_);
}

void InputBytes::Rewind() {
  keeps_ = false;
  peeked_ = std::exchange(head_, std::string());
  peeked_at_ = 0;
}

bool InputBytes::CanHold(uint64_t size) const {
  return pipe_ != nullptr || size / MaxRatio(packing_) <= file_size_;
}

int64_t InputBytes::ExpectedContent() const {
  if (pipe_ != nullptr) return offset_;
  if (!compressed()) return static_cast<int64_t>(file_size_);
  const int64_t read = decoder_->offset();
  if (read <= 0) return offset_;
  const double pace = static_cast<double>(offset_) / static_cast<double>(read);
  return static_cast<int64_t>(static_cast<double>(file_size_) * pace);
}

}  // namespace dtrain
