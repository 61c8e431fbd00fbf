// The bytes of a data file, plain or gzip, or of standard input, in order. Owner: the reader of the file.
// Thread: one.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace dtrain {

// GzipFile: the content of a gzip file, member after member (RFC 1952). zlib's gzread is not used because it
// ends silently if anything but another member follows a member, and rows would be missing. Owner:
// InputBytes. Thread: one.

// Returns the error "path: cannot be read after byte 7 of its content: why. Fetch the file anew."
UserError UnreadableError(const std::string& path, int64_t content_byte, const std::string& why);

class GzipFile {
 public:
  // Source: writes up to `size` following bytes of the file to `out` and returns their number; 0 at the end.
  using Source = std::function<int64_t(char* out, int64_t size)>;

  // Whether a file that begins with `bytes` (at least two) is treated as gzip.
  static bool IsGzip(std::string_view bytes);

  // `path` is for messages. `source` is first called by Read().
  GzipFile(std::string path, Source source);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Reads up to `size` bytes of content, at most 4 GiB; fewer only at the end. Throws UserError if the data
  // is damaged or truncated, or if anything follows a member other than another member or zeros up to the
  // file's end (the padding of tapes and block devices).
  int64_t Read(char* out, int64_t size);

  // The bytes of the file that the content so far came from.
  int64_t offset() const { return taken_ - stream_.avail_in; }

 private:
  bool BeginMember();
  void Inflate();
  void SkipPadding();
  [[noreturn]] void ThrowTrailing(int64_t member_end) const;
  bool HasInput(size_t count);
  std::string_view Input() const;

  const std::string path_;
  const Source source_;
  std::vector<char> input_;
  z_stream stream_{};
  bool in_member_ = false;
  int64_t taken_ = 0;    // bytes of the file
  int64_t content_ = 0;  // bytes returned by earlier calls of Read()
};

// InputBytes: one data file, plain or gzip by its first bytes, read from front to back; or standard input,
// plain, as it arrives. Errors are UserErrors that begin with the path and name the config key. Owner: the
// reader of the file. Thread: one.
class InputBytes {
 public:
  // `path` "-" is standard input. `key` is "data.train.images" or the like, for messages. Throws UserError if
  // the file is missing, not a regular file, unreadable or empty.
  InputBytes(const std::string& path, const std::string& key);
  ~InputBytes();
  InputBytes(const InputBytes&) = delete;
  InputBytes& operator=(const InputBytes&) = delete;

  // Reads up to `size` bytes of content; fewer only at the end. Throws UserError for damaged gzip data and
  // for other data behind it.
  int64_t Read(void* out, int64_t size);
  // The same, but from standard input no more than has arrived: waits only for the first byte. Returns 0 at
  // the end.
  int64_t ReadSome(void* out, int64_t size);
  // Whether SkipTo() can go back, and costs nothing.
  bool CanSeek() const { return fd_ >= 0 && gzip_ == nullptr; }
  // Goes to a byte of the content, from 0: in a compressed file one that is not behind.
  void SkipTo(int64_t byte);
  // Returns how many of the next bytes are in `blanks`, up to some thousand. Consumes none.
  size_t CountBlanks(std::string_view blanks);
  // Whether the content continues with `text`, `behind` bytes further on. Consumes nothing and waits for no
  // byte behind the first that differs.
  bool ContinuesWith(std::string_view text, size_t behind = 0);

  // Whether the file can contain `size` bytes of content: exact for a plain file; a gzip file holds at most
  // 1032 times its own size. Callers check this before they allocate memory for the sizes in a header.
  bool CanHold(uint64_t size) const;

  // Returns the total bytes of content: exact for a plain file; for gzip an estimate from the ratio so far.
  int64_t ExpectedContent() const;

  const std::string& path() const { return path_; }
  bool compressed() const { return gzip_ != nullptr; }
  uint64_t file_size() const { return file_size_; }

 private:
  bool HasPeeked(size_t count);  // reads what is missing
  int64_t ReadUnpeeked(char* out, int64_t size);
  int64_t ReadFile(char* out, int64_t size);
  int64_t ReadStandardInput(char* out, int64_t size);
  int64_t ReadDescriptor(char* out, int64_t size);  // from the file itself

  const bool standard_input_;
  const std::string path_;  // for messages
  std::string peeked_;
  uint64_t file_size_ = 0;
  int64_t offset_ = 0;              // in the content
  int fd_ = -1;                     // of a file
  std::unique_ptr<GzipFile> gzip_;  // null: plain
};

}  // namespace dtrain
