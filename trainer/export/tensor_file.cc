#include "trainer/export/tensor_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "trainer/config/user_text.h"

namespace dtrain {

int64_t FileTensor::size() const {
  int64_t size = 1;
  for (const int64_t side : shape) size *= side;
  return size;
}

std::string FileTensor::ShapeText() const {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, " x "));
}

std::string FileTensor::ElementText(int64_t element) const {
  std::vector<int64_t> place(shape.size());
  for (size_t side = shape.size(); side-- > 0; element /= shape[side]) place[side] = element % shape[side];
  return fmt::format("{}[{}]", Shown(name), fmt::join(place, ", "));
}

std::unique_ptr<TensorFile> OpenTensorFile(const std::string& path) {
  auto file = std::make_unique<SourceFile>(path);
  char magic[9] = {};
  if (file->size() < 9) file->Refuse("too short for a .safetensors or .npz file.");
  file->ReadAt(0, sizeof magic, magic);
  // The length of a header may begin with the letters of an archive, whose ninth byte is no brace.
  if (magic[8] == '{') return OpenSafetensors(std::move(file));
  if (std::memcmp(magic, "PK\3\4", 4) == 0) return OpenNpz(std::move(file));
  file->Refuse("neither a .safetensors nor a .npz file. Convert it: numpy.savez(\"model.npz\", **weights).");
}

// A pipe in the place of a file would make open() wait.
SourceFile::SourceFile(const std::string& path)
    : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) Refuse(fmt::format("cannot be opened: {}. Is the path right?", ErrnoText(errno)));
  struct stat about {};
  if (fstat(fd_, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(fd_);
    Refuse("is no file. Name a .safetensors or .npz file.");
  }
  size_ = static_cast<uint64_t>(about.st_size);
}

SourceFile::~SourceFile() { close(fd_); }

void SourceFile::ReadAt(uint64_t offset, uint64_t bytes, void* out) const {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Refuse(fmt::format("cannot be read at byte {}: {}.", offset, ErrnoText(errno)));
    if (got == 0) Refuse(fmt::format("ends at byte {}. The file is cut off: fetch it anew.", offset));
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
}

}  // namespace dtrain
