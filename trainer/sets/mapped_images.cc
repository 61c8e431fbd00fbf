#include "trainer/sets/mapped_images.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "gpu/ops.h"
#include "trainer/input/input_bytes.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/class_weights.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKey = "data.train.images";
constexpr int64_t kHeaderBytes = 16;
constexpr int64_t kBlockRows = 1024;

class MappedImages : public Fetch {
 public:
  explicit MappedImages(int64_t inputs) : inputs_(inputs) {}
  // Maps a file behind the others.
  void Map(const std::string& path);

  int64_t rows() const { return files_.empty() ? 0 : files_.back().first_row + files_.back().rows.rows; }
  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override;
  // Only the rows of one file lie together.
  gpu::MatrixView<const uint8_t> bytes() const override {
    return files_.size() == 1 ? files_[0].rows : gpu::MatrixView<const uint8_t>();
  }
  // In the order of the files. Above 256 MiB it is of 1,024 rows spread over the files: reading all would
  // hold up the start.
  uint64_t Checksum(const HeldOutView*) const override;

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(void* map) const { munmap(map, bytes); }
  };
  struct File {
    int64_t first_row = 0;  // of the set
    gpu::MatrixView<const uint8_t> rows;
    std::unique_ptr<void, Unmap> map;
  };

  const File& FileOf(int64_t row) const;

  const int64_t inputs_;
  std::vector<File> files_;
};

void MappedImages::Map(const std::string& path) {
  const IdxShape shape = PeekIdxImages(path, kKey);
  CheckIsPlain(path);
  const InputBytes file(path, kKey);
  const auto map_bytes = static_cast<size_t>(kHeaderBytes + shape.count * shape.row_bytes);
  if (file.file_size() != map_bytes) {
    throw UserError("{}: has {} bytes; its header says {}. The file is damaged: fetch it anew.", path,
                    file.file_size(), map_bytes);
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const map = fd < 0 ? MAP_FAILED : mmap(nullptr, map_bytes, PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  if (fd >= 0) close(fd);
  if (map == MAP_FAILED) throw UserError("{}: cannot be mapped: {}.", path, ErrnoText(error));
  files_.push_back({rows(),
                    {static_cast<const uint8_t*>(map) + kHeaderBytes, shape.count, inputs_},
                    std::unique_ptr<void, Unmap>(map, Unmap{map_bytes})});
}

uint64_t MappedImages::Checksum(const HeldOutView*) const {
  constexpr int64_t kAllBytes = 256 << 20, kSpread = 1024;
  const int64_t step = rows() * inputs_ <= kAllBytes ? 1 : std::max<int64_t>(rows() / kSpread, 1);
  uint64_t sum = 0;
  for (int64_t row = 0; row < rows(); row += step) {
    const File& file = FileOf(row);
    sum = FeatureChecksum(
        FeatureForm::kMapped,
        {BytesOf(&sum, 1), BytesOf(file.rows.row(row - file.first_row), static_cast<size_t>(inputs_))});
  }
  return sum;
}

const MappedImages::File& MappedImages::FileOf(int64_t row) const {
  const auto next = std::upper_bound(files_.begin(), files_.end(), row, [](int64_t wanted, const File& file) {
    return wanted < file.first_row;
  });
  return *std::prev(next);
}

void MappedImages::Read(gpu::Span<const int64_t> rows, const RowsOut& out) const {
  gpu::Stream stream;
  for (int64_t i = 0; i < rows.size; ++i) {
    const File& file = FileOf(rows[i]);
    const int64_t row = rows[i] - file.first_row;
    gpu::GatherBytes(stream, {file.rows, {&row, 1}}, {out.inputs + i * inputs_, 1, inputs_});
  }
}

// Copy: where the copy of one file is. Its name tells the state of the file that it was made of.
struct Copy {
  CacheFile file;
  std::string names;                                           // all copies of that path begin so
  std::string checksum() const { return file.path + ".crc"; }  // where its checksum is
};

Copy CopyOf(const std::string& directory, const std::string& path) {
  const std::string absolute = fs::absolute(path).string();
  const std::string names = fmt::format("{}-{:08x}-", fs::path(path).filename().string(),
                                        Crc32cExtend(0, absolute.data(), absolute.size()));
  const std::string state = FileState(path);
  const uint64_t hash = FeatureChecksum(FeatureForm::kText, {state});
  return {{fmt::format("{}/{}{:016x}.idx", directory, names, hash), state}, names};
}

std::string ChecksumText(uint32_t crc) { return fmt::format("{:08x}", crc); }

// Whether there is a whole copy with its checksum; else it is made anew. Reads all of it.
bool IsThere(const Copy& copy) {
  std::ifstream kept(copy.checksum());
  std::string checksum;
  if (!std::getline(kept, checksum)) return false;
  uint32_t crc = 0;
  try {
    UnpackIdxImages(copy.file.path, kKey,
                    [&](std::string_view bytes) { crc = Crc32cExtend(crc, bytes.data(), bytes.size()); });
  } catch (const UserError&) {
    return false;
  }
  return checksum == ChecksumText(crc);
}

// Removes copies of other states of the file, and what a task has left that was killed while it made one.
// Tasks that have an old copy mapped keep its bytes.
void RemoveOldCopies(const std::string& directory, const Copy& copy) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (name.compare(0, copy.names.size(), copy.names) != 0) continue;
    if (extension != ".idx" && extension != ".crc" && extension != ".tmp") continue;
    if (entry.path() != fs::path(copy.file.path)) unlink(entry.path().c_str());
  }
}

void Unpack(const std::string& path, const Copy& copy) {
  const std::string temporary = fmt::format("{}.{}.tmp", copy.file.path, getpid());
  try {
    const FileDescriptor file(
        open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) ThrowNoCache(temporary, errno);
    uint32_t crc = 0;
    UnpackIdxImages(path, kKey, [&](std::string_view bytes) {
      crc = Crc32cExtend(crc, bytes.data(), bytes.size());
      const int error = WriteAll(file.get(), bytes);
      if (error != 0) ThrowNoCache(temporary, error);
    });
    if (FileState(path) != copy.file.made_of) {
      throw UserError("{}: has changed while it was read. Start again when nobody writes to it.", path);
    }
    WriteFileAtomically(copy.checksum(), ChecksumText(crc));
    if (fsync(file.get()) != 0 || rename(temporary.c_str(), copy.file.path.c_str()) != 0) {
      ThrowNoCache(temporary, errno);
    }
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
}

// Puts the copy of a packed file in the place of `path`.
void UnpackOnce(const DataConfig& data, std::string* path) {
  if (!InputBytes(*path, kKey).compressed()) return;
  const std::string directory = MakeCacheDirectory(data);
  const Copy copy = CopyOf(directory, *path);
  const auto make = [&] {
    RemoveOldCopies(directory, copy);
    Unpack(*path, copy);
  };
  OpenOrMake(
      data, copy.file, [&] { return IsThere(copy); }, make);
  *path = copy.file.path;
}

}  // namespace

void CheckIsPlain(const std::string& path) {
  if (!InputBytes(path, kKey).compressed()) return;
  throw UserError(
      "{}: is packed; with data.cache: none it is mapped as it is. Set data.cache: file, which unpacks it "
      "once into data.cache_dir, or memory.",
      path);
}

DataSet MapImages(const DataConfig& data, IdxFiles files, const LabelRules& rules) {
  if (data.cache == DataCache::kFile) {
    for (std::string& path : files.images) UnpackOnce(data, &path);
  }
  const IdxShape shape = CheckIdxFiles(files, "data.train");
  auto images = std::make_shared<MappedImages>(shape.row_bytes);
  auto facts = std::make_shared<PassFacts>();
  std::vector<uint8_t> all;
  for (size_t i = 0; i < files.images.size(); ++i) {
    images->Map(files.images[i]);
    const std::vector<uint8_t> labels = ReadIdxLabelsOf(files.labels[i], "data.train.labels", rules);
    all.insert(all.end(), labels.begin(), labels.end());
    if (static_cast<int64_t>(all.size()) != images->rows()) {
      throw UserError("{}: has changed while it was read. Start again when nobody writes to it.",
                      files.labels[i]);
    }
    for (const uint8_t label : labels) CountClass(label, &facts->class_rows);
  }
  SetForm form{shape.row_bytes, rules.classes, images->rows()};
  form.blocks = EqualBlocks(images->rows(), kBlockRows);
  form.facts = std::move(facts);
  return {form, std::move(images), Keep({std::move(all)})};
}

}  // namespace dtrain
