#include "trainer/data/files/gzip_file.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"

namespace dtrain {
namespace {

constexpr size_t kInputBytes = 1 << 17;
constexpr int kGzipOnly = 16;  // added to the bits of the window

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
  DT_CHECK(size <= UINT32_MAX, size);  // zlib's lengths
  stream_.next_out = reinterpret_cast<Bytef*>(out);
  stream_.avail_out = static_cast<uInt>(size);
  while (stream_.avail_out > 0 && (in_member_ || BeginMember())) Inflate();
  const int64_t done = size - stream_.avail_out;
  content_ += done;
  return done;
}

// False at the file's end, padding included.
bool GzipFile::BeginMember() {
  if (!HasInput(1)) return false;
  HasInput(2);
  const std::string_view input = Input();
  if (input[0] == '\0') {
    SkipPadding();
    return false;
  }
  // A first byte alone is a member that is cut off, as Inflate says.
  if (!IsGzip(input) && input != "\x1f") ThrowRest(offset());
  DT_CHECK(inflateReset(&stream_) == Z_OK, path_);
  in_member_ = true;
  return true;
}

// At least one byte of content can be taken.
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
    if (Input().find_first_not_of('\0') != std::string_view::npos) ThrowRest(begin);
    stream_.avail_in = 0;
  }
}

void GzipFile::ThrowRest(int64_t member_end) const {
  throw UserError(
      "{}: byte {}: a gzip member ends here, and what follows is neither another one nor zeros up to the "
      "file's end. Fetch the file anew, or cut off what follows if it is no data: head -c {}.",
      path_, member_end, member_end);
}

// Takes more of the file where there are fewer, at most 2; what there is moves to the front. False at the
// file's end.
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

}  // namespace dtrain
