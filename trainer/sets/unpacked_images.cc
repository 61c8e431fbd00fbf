#include "trainer/sets/unpacked_images.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "trainer/input/input_bytes.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/sets/cache_file.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "data.train.images";
constexpr int64_t kHeaderBytes = 16;

// Copy: where the copy of one file is. Its name tells the state of the file that it was made of.
struct Copy {
  CacheFile file;
  std::string names;  // all copies of that path begin so
  IdxShape shape;     // of a whole one
};

Copy CopyOf(const std::string& directory, const std::string& path) {
  const IdxShape shape = PeekIdxImages(path, kKey);
  const std::string absolute = fs::absolute(path).string();
  const std::string names = fmt::format("{}-{:08x}-", fs::path(path).filename().string(),
                                        Crc32cExtend(0, absolute.data(), absolute.size()));
  const std::string state = FileState(path);
  const uint64_t hash = FeatureChecksum(FeatureForm::kText, {state});
  return {{fmt::format("{}/{}{:016x}.idx", directory, names, hash), state}, names, shape};
}

// Whether there is a file with the header and the length of a whole copy; else it is made anew.
bool IsThere(const Copy& copy) {
  struct stat about {};
  const int64_t bytes = kHeaderBytes + copy.shape.count * copy.shape.row_bytes;
  if (stat(copy.file.path.c_str(), &about) != 0 || about.st_size != bytes) return false;
  try {
    const IdxShape shape = PeekIdxImages(copy.file.path, kKey);
    return shape.count == copy.shape.count && shape.row_bytes == copy.shape.row_bytes;
  } catch (const UserError&) {
    return false;
  }
}

// Removes copies of other states of the file, and what a task has left that was killed while it made one.
// Tasks that have an old copy mapped keep its bytes.
void RemoveOldCopies(const std::string& directory, const Copy& copy) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (name.compare(0, copy.names.size(), copy.names) != 0) continue;
    if (extension != ".idx" && extension != ".tmp") continue;
    if (entry.path() != fs::path(copy.file.path)) unlink(entry.path().c_str());
  }
}

void Unpack(const std::string& path, const Copy& copy) {
  const std::string temporary = fmt::format("{}.{}.tmp", copy.file.path, getpid());
  try {
    const FileDescriptor file(
        open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) ThrowNoCache(temporary, errno);
    UnpackIdxImages(path, kKey, [&](std::string_view bytes) {
      const int error = WriteAll(file.get(), bytes);
      if (error != 0) ThrowNoCache(temporary, error);
    });
    if (FileState(path) != copy.file.made_of) {
      throw UserError("{}: has changed while it was read. Start again when nobody writes to it.", path);
    }
    if (fsync(file.get()) != 0 || rename(temporary.c_str(), copy.file.path.c_str()) != 0) {
      ThrowNoCache(temporary, errno);
    }
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
}

}  // namespace

IdxFiles UnpackImages(const DataConfig& data, IdxFiles files) {
  for (std::string& path : files.images) {
    if (!InputBytes(path, kKey).compressed()) continue;
    const std::string directory = MakeCacheDirectory(data);
    const Copy copy = CopyOf(directory, path);
    OpenOrMake(
        copy.file, [&] { return IsThere(copy); },
        [&] {
          RemoveOldCopies(directory, copy);
          Unpack(path, copy);
        });
    path = copy.file.path;
  }
  return files;
}

}  // namespace dtrain
