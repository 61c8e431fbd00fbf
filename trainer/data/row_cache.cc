#include "trainer/data/row_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "trainer/data/cache_file.h"
#include "trainer/data/class_weights.h"
#include "trainer/data/files/csv_files.h"

namespace dtrain {
namespace {

constexpr std::array<char, 8> kMagic = {'d', 't', 'r', 'o', 'w', 's', '0', '3'};
constexpr int64_t kFeaturesAt = 4096;  // where pages begin
constexpr int64_t kBlockRows = 1024;
constexpr size_t kBufferBytes = 1 << 20;

int64_t BlockCount(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// The file: this, zeros up to kFeaturesAt, features [rows, inputs] as float32, labels [rows] as int32 or
// float32, with data.weight weights [rows] as float32, the CRC-32C of the features of each kBlockRows rows as
// uint32, and the description as JSON up to the end. Numbers are those of this machine.
struct Header {
  std::array<char, 8> magic = kMagic;
  int64_t rows = 0;
  int64_t inputs = 0;
  int64_t has_weights = 0;  // or 1
  int64_t text_bytes = 0;
  uint32_t text_crc = 0;     // CRC-32C
  uint32_t weights_crc = 0;  // CRC-32

  int64_t labels_at() const { return kFeaturesAt + rows * inputs * static_cast<int64_t>(sizeof(float)); }
  int64_t weights_at() const { return labels_at() + rows * static_cast<int64_t>(sizeof(int32_t)); }
  int64_t crcs_at() const { return weights_at() + has_weights * rows * static_cast<int64_t>(sizeof(float)); }
  int64_t text_at() const { return crcs_at() + BlockCount(rows) * static_cast<int64_t>(sizeof(uint32_t)); }
};

uint32_t ColumnCrc(uint32_t crc, const void* values, size_t rows) {
  return static_cast<uint32_t>(crc32_z(crc, static_cast<const Bytef*>(values), rows * sizeof(int32_t)));
}

// CacheWriter: a cache that is being made. Until Publish() it has another name, and it is removed without it.
// Owner: CachedSet::Of(). Thread: one.
class CacheWriter {
 public:
  explicit CacheWriter(std::string path)
      : path_(std::move(path)),
        temporary_(fmt::format("{}.{}.tmp", path_, getpid())),
        file_(Create(temporary_)),
        labels_(Create(temporary_ + ".labels")),
        weights_(Create(temporary_ + ".weights")) {
    // Labels and weights come behind all features.
    for (const char* column : {".labels", ".weights"}) unlink((temporary_ + column).c_str());
    if (lseek(file_.get(), kFeaturesAt, SEEK_SET) < 0) ThrowUnwritable(temporary_, errno);
  }
  ~CacheWriter() {
    if (!published_) unlink(temporary_.c_str());
  }

  void AddFeatures(const std::vector<float>& values) { Write(file_, values); }
  template <typename Value>
  void AddLabels(const std::vector<Value>& values) {
    Write(labels_, values);
  }
  void AddWeights(const std::vector<float>& values) { Write(weights_, values); }
  // Gives the cache its name. `renumbered`: the new number of each class; empty: they stay. `text` makes the
  // description.
  void Publish(Header header, const std::vector<int32_t>& renumbered, const std::vector<uint32_t>& block_crcs,
               const std::function<std::string(uint32_t labels_crc)>& text);

 private:
  static int Create(const std::string& path) {
    const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) ThrowUnwritable(path, errno);
    return file;
  }
  void Write(const FileDescriptor& file, std::string_view bytes) {
    const int error = WriteAll(file.get(), bytes);
    if (error != 0) ThrowUnwritable(temporary_, error);
  }
  template <typename Value>
  void Write(const FileDescriptor& file, const std::vector<Value>& values) {
    static_assert(sizeof(Value) == 4);
    Write(file, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)});
  }
  uint32_t Append(const FileDescriptor& column, int64_t rows, const std::vector<int32_t>& renumbered);

  const std::string path_;
  const std::string temporary_;
  const FileDescriptor file_;
  const FileDescriptor labels_;
  const FileDescriptor weights_;
  bool published_ = false;
};

// Appends a column of rows, and returns its CRC-32.
uint32_t CacheWriter::Append(const FileDescriptor& column, int64_t rows,
                             const std::vector<int32_t>& renumbered) {
  std::vector<int32_t> part(kBufferBytes / sizeof(int32_t));
  uint32_t crc = 0;
  if (lseek(column.get(), 0, SEEK_SET) < 0) ThrowUnwritable(temporary_, errno);
  for (int64_t left = rows; left > 0; left -= static_cast<int64_t>(part.size())) {
    part.resize(static_cast<size_t>(std::min(left, static_cast<int64_t>(part.size()))));
    const size_t bytes = part.size() * sizeof(int32_t);
    const ssize_t got = read(column.get(), part.data(), bytes);
    if (got != static_cast<ssize_t>(bytes)) ThrowUnwritable(temporary_, got < 0 ? errno : EIO);
    if (!renumbered.empty()) {
      for (int32_t& label : part) label = renumbered[static_cast<size_t>(label)];
    }
    crc = ColumnCrc(crc, part.data(), part.size());
    Write(file_, part);
  }
  return crc;
}

void CacheWriter::Publish(Header header, const std::vector<int32_t>& renumbered,
                          const std::vector<uint32_t>& block_crcs,
                          const std::function<std::string(uint32_t)>& text) {
  const std::string described = text(Append(labels_, header.rows, renumbered));
  if (header.has_weights == 1) header.weights_crc = Append(weights_, header.rows, {});
  Write(file_, block_crcs);
  Write(file_, described);
  header.text_bytes = static_cast<int64_t>(described.size());
  header.text_crc = Crc32cExtend(0, described.data(), described.size());
  if (pwrite(file_.get(), &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header)) ||
      fsync(file_.get()) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    ThrowUnwritable(temporary_, errno);
  }
  published_ = true;
}

void MakeCache(const CacheFile& cache, const DataConfig& data, const LabelRules& rules,
               const std::vector<InputColumn>& how) {
  const CsvFiles files(data, how);
  CacheWriter writer(cache.path);
  CsvLabels labels(rules, files.path(0), ColumnTitle(files.columns(), files.columns().label));
  std::vector<float> features, weights;
  std::vector<uint32_t> block_crcs;
  PassFacts facts;
  Header header;
  header.inputs = files.inputs();
  header.has_weights = data.weight.empty() ? 0 : 1;
  const auto flush = [&] {
    writer.AddFeatures(features);
    rules.classes ? writer.AddLabels(labels.classes()) : writer.AddLabels(labels.targets());
    writer.AddWeights(weights);
    features.clear();
    weights.clear();
    labels.Truncate(0);
  };
  for (size_t file = 0; file < files.count(); ++file) {
    const std::unique_ptr<CsvReader> reader = files.Open(file);
    if (file > 0) labels.NextFile(files.path(file));
    const std::unique_ptr<TableRows> rows = files.Rows(reader.get(), true, &facts.skipped);
    while (rows->Next(&features, &labels)) {
      if (header.rows++ % kBlockRows == 0) block_crcs.push_back(0);
      const float* const row = features.data() + features.size() - static_cast<size_t>(header.inputs);
      block_crcs.back() = Crc32cExtend(
          block_crcs.back(), row,
          features.size() * sizeof(float) - static_cast<size_t>(row - features.data()) * sizeof(float));
      if (rules.classes) CountClass(labels.classes().back(), &facts.class_rows);
      if (header.has_weights == 1) weights.push_back(rows->weight());
      if (features.size() * sizeof(float) >= kBufferBytes || labels.size() >= kBufferBytes) flush();
    }
  }
  flush();
  if (header.rows == 0) {
    throw UserError("{}: no rows; data.train.path must name files with data. Fetch them anew.",
                    files.path(0));
  }
  const std::vector<int32_t> renumbered = SortedNumbers(labels.names());
  facts.class_rows = BySortedNumbers(labels.names(), std::move(facts.class_rows));
  labels.Finish();
  facts.rows = header.rows;
  facts.class_names = labels.names();
  writer.Publish(header, renumbered, block_crcs, [&](uint32_t labels_crc) {
    facts.fingerprint = {header.rows, labels_crc};
    return Describe(cache, facts);
  });
}

}  // namespace

std::shared_ptr<CachedSet> CachedSet::Of(const DataConfig& data, const LabelRules& rules,
                                         const std::vector<InputColumn>& how) {
  const CacheFile cache = CacheFileOf(data, rules, how, "rows");
  std::shared_ptr<CachedSet> set;
  const auto open_it = [&] { return (set = Open(cache, rules)) != nullptr; };
  OpenOrMake(cache, open_it, [&] { MakeCache(cache, data, rules, how); });
  return set;
}

std::shared_ptr<CachedSet> CachedSet::Open(const CacheFile& cache, const LabelRules& rules) {
  const FileDescriptor file(open(cache.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  Header header;
  if (file.get() < 0 || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      pread(file.get(), &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) {
    return nullptr;
  }
  int64_t values = 0, value_bytes = 0;
  const bool sound = header.magic == kMagic && header.rows >= 1 && header.inputs >= 1 &&
                     header.text_bytes >= 2 && (header.has_weights == 0 || header.has_weights == 1) &&
                     !__builtin_mul_overflow(header.rows, header.inputs + 1 + header.has_weights, &values) &&
                     !__builtin_mul_overflow(values, int64_t{4}, &value_bytes) &&
                     value_bytes <= about.st_size && header.text_bytes <= about.st_size &&
                     header.text_at() + header.text_bytes == about.st_size;
  if (!sound) return nullptr;
  std::shared_ptr<CachedSet> set(new CachedSet());
  set->map_bytes_ = static_cast<size_t>(about.st_size);
  void* const map = mmap(nullptr, set->map_bytes_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (map == MAP_FAILED) return nullptr;
  set->map_ = map;
  const char* const begin = static_cast<const char*>(map);
  const std::string_view text(begin + header.text_at(), static_cast<size_t>(header.text_bytes));
  if (Crc32cExtend(0, text.data(), text.size()) != header.text_crc) return nullptr;
  std::optional<PassFacts> facts = FactsIn(cache, text);
  if (!facts || facts->rows != header.rows) return nullptr;
  set->facts_ = std::move(*facts);
  set->features_ = reinterpret_cast<const float*>(begin + kFeaturesAt);
  set->labels_ = reinterpret_cast<const int32_t*>(begin + header.labels_at());
  set->inputs_ = header.inputs;
  set->classes_ = rules.classes;
  set->blocks_ = EqualBlocks(header.rows, kBlockRows);
  set->path_ = cache.path;
  set->block_crcs_ = reinterpret_cast<const uint32_t*>(begin + header.crcs_at());
  set->is_checked_ = std::vector<std::atomic<bool>>(static_cast<size_t>(BlockCount(header.rows)));
  // Labels are used as indexes.
  const auto rows = static_cast<size_t>(header.rows);
  if (ColumnCrc(0, set->labels_, rows) != set->facts_.fingerprint.labels) return nullptr;
  if (header.has_weights == 1) {
    set->weights_ = reinterpret_cast<const float*>(begin + header.weights_at());
    if (ColumnCrc(0, set->weights_, rows) != header.weights_crc) return nullptr;
  }
  const auto in_range = [&](int32_t label) { return label >= 0 && label < *rules.classes; };
  if (rules.classes && !std::all_of(set->labels_, set->labels_ + header.rows, in_range)) return nullptr;
  return set;
}

CachedSet::~CachedSet() {
  if (map_ != nullptr) munmap(map_, map_bytes_);
}

gpu::MatrixView<const float> CachedSet::floats() const {
  if (!scale_.shift.empty()) return {};
  return {features_, facts_.rows, inputs_};
}

// Features are checked when they are first asked for: a cache may be larger than memory.
void CachedSet::CheckBlock(int64_t block) const {
  std::atomic<bool>& is_checked = is_checked_[static_cast<size_t>(block)];
  if (is_checked.load(std::memory_order_relaxed)) return;
  const int64_t first = block * kBlockRows, end = std::min(first + kBlockRows, facts_.rows);
  const uint32_t crc = Crc32cExtend(0, features_ + first * inputs_,
                                    static_cast<size_t>((end - first) * inputs_) * sizeof(float));
  if (crc != block_crcs_[block]) {
    throw UserError("{}: the rows {} to {} are damaged. Delete the file; it is made anew.", path_, first,
                    end - 1);
  }
  is_checked.store(true, std::memory_order_relaxed);
}

void CachedSet::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
                       float* targets) const {
  for (int64_t i = 0; i < count; ++i) {
    CheckBlock(rows[i] / kBlockRows);
    if (inputs != nullptr) std::copy_n(features_ + rows[i] * inputs_, inputs_, inputs + i * inputs_);
    if (classes_.has_value()) {
      labels[i] = labels_[rows[i]];
    } else {
      std::memcpy(&targets[i], &labels_[rows[i]], sizeof(float));
    }
  }
  if (inputs != nullptr && !scale_.shift.empty()) {
    ApplyScale(scale_, gpu::MatrixView<float>(inputs, count, inputs_));
  }
}

void CachedSet::Weights(const int64_t* rows, int64_t count, float* weights) const {
  for (int64_t i = 0; i < count; ++i) weights[i] = weights_[rows[i]];
}

void CachedSet::WillNeed(const std::vector<RowRun>& runs) const {
  const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  const int64_t row_bytes = inputs_ * static_cast<int64_t>(sizeof(float));
  for (const RowRun& run : runs) {
    const int64_t begin = (kFeaturesAt + run.begin * row_bytes) / page * page;
    const int64_t end = kFeaturesAt + run.end * row_bytes;
    madvise(static_cast<char*>(map_) + begin, static_cast<size_t>(end - begin), MADV_WILLNEED);
  }
}

}  // namespace dtrain
