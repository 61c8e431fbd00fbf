// GzipFile: the content of a gzip file, member after member (RFC 1952), from front to back. zlib's gzread
// ends without a word where a member is followed by anything but another, and rows would be missing.
// Owner: InputBytes. Thread: one.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace dtrain {

// "path: cannot be read after byte 7 of its content: why. Fetch the file anew."
UserError UnreadableError(const std::string& path, int64_t content_byte, const std::string& why);

class GzipFile {
 public:
  // Writes up to `size` bytes of the file, those that follow, to `out`; returns how many. 0 at the end.
  using Source = std::function<int64_t(char* out, int64_t size)>;

  // Whether a file that begins with `bytes`, at least two, is taken for gzip.
  static bool IsGzip(std::string_view bytes);

  // `path`: for messages. `source` is asked from the first Read on.
  GzipFile(std::string path, Source source);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Reads up to `size` bytes of content, at most 4 GiB; fewer only at its end. UserError where the data are
  // damaged or cut off, or where what follows a member is neither another one nor zeros up to the file's end,
  // the padding of tapes and of block devices.
  int64_t Read(char* out, int64_t size);

  // Bytes of the file that came to the content up to now.
  int64_t offset() const { return taken_ - stream_.avail_in; }

 private:
  bool BeginMember();
  void Inflate();
  void SkipPadding();
  [[noreturn]] void ThrowRest(int64_t member_end) const;
  bool HasInput(size_t count);
  std::string_view Input() const;

  const std::string path_;
  const Source source_;
  std::vector<char> input_;
  z_stream stream_{};
  bool in_member_ = false;
  int64_t taken_ = 0;    // of the file
  int64_t content_ = 0;  // given by the calls of Read before this one
};

}  // namespace dtrain
