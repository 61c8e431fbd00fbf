// The cache of parsed rows (data.cache: file): one file under data.cache_dir that holds the rows of
// data.train, their labels, weights and offsets, mapped into memory: all features of a row as float32, or of
// a sparse row those that are not 0.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "trainer/config/model_config.h"
#include "trainer/input/sources.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/rows/pass.h"
#include "trainer/rows/record_scan.h"
#include "trainer/rows/row_file.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/class_weights.h"
#include "trainer/sets/file_sets.h"

namespace dtrain {
namespace {

constexpr std::array<char, 8> kMagic = {'d', 't', 'r', 'o', 'w', 's', '0', '5'};
constexpr int64_t kFeaturesAt = 4096;  // where pages begin
constexpr int64_t kBlockRows = 1024;
constexpr size_t kBufferBytes = 1 << 20;

int64_t BlockCount(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// The file: this, zeros up to kFeaturesAt, the features of all rows, of sparse rows where each of them begins
// behind kFeaturesAt as int64 [rows + 1] and the first row of each block as int64, labels [rows] as int32 or
// float32, with weights these [rows] as float32, with offsets too, the CRC-32C of the features of each
// kBlockRows rows as uint32, and the description as JSON up to the end. The features of a row are float32
// [inputs]; of a sparse row numbers of id_bytes each: how many features times 2, and 1 more if it has values,
// and their ids; then the values as float32, and zeros up to a multiple of id_bytes. Numbers are those of
// this machine.
struct Header {
  std::array<char, 8> magic = kMagic;
  int64_t rows = 0;
  int64_t inputs = 0;
  int64_t id_bytes = 0;       // 4 or 8; 0: rows are not sparse
  int64_t feature_bytes = 0;  // of all rows, up to a multiple of 8
  int64_t blocks = 0;         // of sparse rows
  int64_t has_weights = 0;    // or 1
  int64_t has_offsets = 0;    // or 1
  int64_t text_bytes = 0;
  uint32_t text_crc = 0;     // CRC-32C
  uint32_t weights_crc = 0;  // CRC-32
  uint32_t begins_crc = 0;   // CRC-32, of where rows begin and the blocks
  uint32_t offsets_crc = 0;  // CRC-32, of what is added to outputs

  int64_t column_bytes() const { return rows * static_cast<int64_t>(sizeof(int32_t)); }
  int64_t offsets_at() const { return kFeaturesAt + feature_bytes; }
  int64_t offset_count() const { return id_bytes > 0 ? rows + 1 : 0; }
  int64_t blocks_at() const { return offsets_at() + offset_count() * static_cast<int64_t>(sizeof(int64_t)); }
  int64_t labels_at() const { return blocks_at() + blocks * static_cast<int64_t>(sizeof(int64_t)); }
  int64_t weights_at() const { return labels_at() + column_bytes(); }
  int64_t row_offsets_at() const { return weights_at() + has_weights * column_bytes(); }
  int64_t crcs_at() const { return row_offsets_at() + has_offsets * column_bytes(); }
  int64_t text_at() const { return crcs_at() + BlockCount(rows) * static_cast<int64_t>(sizeof(uint32_t)); }
};

// CacheWriter: a cache that is being made. Until Publish() it has another name, and it is removed without it.
// Owner: CachedSet(). Thread: one.
class CacheWriter {
 public:
  explicit CacheWriter(std::string path)
      : path_(std::move(path)),
        temporary_(fmt::format("{}.{}{}", path_, getpid(), kTemporary)),
        file_(Create(temporary_)),
        offsets_(Create(temporary_ + ".offsets")),
        labels_(Create(temporary_ + ".labels")),
        weights_(Create(temporary_ + ".weights")),
        row_offsets_(Create(temporary_ + ".row_offsets")) {
    // These come behind all features.
    for (const char* column : {".offsets", ".labels", ".weights", ".row_offsets"})
      unlink((temporary_ + column).c_str());
    if (lseek(file_.get(), kFeaturesAt, SEEK_SET) < 0) ThrowNoCache(temporary_, errno);
    flock(file_.get(), LOCK_EX);  // for RemoveLeftOver()
  }
  ~CacheWriter() {
    if (!published_) unlink(temporary_.c_str());
  }

  void AddFeatures(std::string_view bytes) { Write(file_, bytes); }
  void AddOffsets(const std::vector<int64_t>& offsets) { Write(offsets_, BytesOf(offsets)); }
  template <typename Value>
  void AddLabels(const std::vector<Value>& values) {
    Write(labels_, BytesOf(values));
  }
  void AddNumbers(const ParsedRows& rows) {
    Write(weights_, BytesOf(rows.weights));
    Write(row_offsets_, BytesOf(rows.row_offsets));
  }
  // Gives the cache its name. `blocks`: the first rows of blocks of sparse rows. `renumbered`: the new number
  // of each class; empty: they stay. `text` makes the description.
  void Publish(Header header, const std::vector<int64_t>& blocks, const std::vector<int32_t>& renumbered,
               const std::vector<uint32_t>& block_crcs,
               const std::function<std::string(uint32_t labels_crc)>& text);

 private:
  static int Create(const std::string& path) {
    const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) ThrowNoCache(path, errno);
    return file;
  }
  void Write(const FileDescriptor& file, std::string_view bytes) {
    const int error = WriteAll(file.get(), bytes);
    if (error != 0) ThrowNoCache(temporary_, error);
  }
  uint32_t Append(const FileDescriptor& column, int64_t bytes, const std::vector<int32_t>& renumbered = {});

  const std::string path_;
  const std::string temporary_;
  const FileDescriptor file_;
  const FileDescriptor offsets_;
  const FileDescriptor labels_;
  const FileDescriptor weights_, row_offsets_;
  bool published_ = false;
};

// Appends a column of rows, and returns its CRC-32.
uint32_t CacheWriter::Append(const FileDescriptor& column, int64_t bytes,
                             const std::vector<int32_t>& renumbered) {
  std::vector<int32_t> part(kBufferBytes / sizeof(int32_t));
  uint32_t crc = 0;
  if (lseek(column.get(), 0, SEEK_SET) < 0) ThrowNoCache(temporary_, errno);
  for (int64_t left = bytes / static_cast<int64_t>(sizeof(int32_t)); left > 0;
       left -= static_cast<int64_t>(part.size())) {
    part.resize(static_cast<size_t>(std::min(left, static_cast<int64_t>(part.size()))));
    const auto expected = static_cast<ssize_t>(part.size() * sizeof(int32_t));
    const ssize_t got = read(column.get(), part.data(), static_cast<size_t>(expected));
    if (got != expected) ThrowNoCache(temporary_, got < 0 ? errno : EIO);
    if (!renumbered.empty()) {
      for (int32_t& label : part) label = renumbered[static_cast<size_t>(label)];
    }
    crc = ColumnCrc(crc, part);
    Write(file_, BytesOf(part));
  }
  return crc;
}

void CacheWriter::Publish(Header header, const std::vector<int64_t>& blocks,
                          const std::vector<int32_t>& renumbered, const std::vector<uint32_t>& block_crcs,
                          const std::function<std::string(uint32_t)>& text) {
  header.blocks = static_cast<int64_t>(blocks.size());
  if (header.id_bytes > 0) {
    header.begins_crc = Append(offsets_, header.blocks_at() - header.offsets_at());
    header.begins_crc = ColumnCrc(header.begins_crc, blocks.data(), 2 * blocks.size());
    Write(file_, BytesOf(blocks));
  }
  const std::string described = text(Append(labels_, header.column_bytes(), renumbered));
  if (header.has_weights == 1) header.weights_crc = Append(weights_, header.column_bytes());
  if (header.has_offsets == 1) header.offsets_crc = Append(row_offsets_, header.column_bytes());
  Write(file_, BytesOf(block_crcs));
  Write(file_, described);
  header.text_bytes = static_cast<int64_t>(described.size());
  header.text_crc = Crc32cExtend(0, described.data(), described.size());
  if (pwrite(file_.get(), &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header)) ||
      fsync(file_.get()) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    ThrowNoCache(temporary_, errno);
  }
  published_ = true;
}

// Appends the last of `rows` as Header says.
template <typename Id>
void AppendSparse(const SparseBuffer& rows, std::string* bytes) {
  const auto begin = static_cast<size_t>(rows.offsets[rows.offsets.size() - 2]);
  const size_t size = rows.ids.size() - begin;
  const float* const values = rows.values.data() + begin;
  const bool has_values =
      !rows.values.empty() && std::any_of(values, values + size, [](float value) { return value != 1; });
  const auto append = [&](const void* from, size_t count) {
    bytes->append(static_cast<const char*>(from), count);
  };
  const Id head = static_cast<Id>(2 * size + (has_values ? 1 : 0));
  append(&head, sizeof head);
  for (size_t i = begin; i < rows.ids.size(); ++i) {
    const Id id = static_cast<Id>(rows.ids[i]);
    append(&id, sizeof id);
  }
  if (has_values) append(values, size * sizeof(float));
  bytes->resize((bytes->size() + sizeof(Id) - 1) / sizeof(Id) * sizeof(Id));
}

// CacheMaker: reads all rows and writes them as a cache. Owner: CachedSet(). Thread: one.
class CacheMaker {
 public:
  CacheMaker(const DataConfig& data, const LabelRules& rules, const std::string& path, Pass* pass)
      : sparse_(HasSparseRows(data)),
        rules_(rules),
        pass_(*pass),
        writer_(path),
        labels_(pass->NewLabels(rules)) {
    header_.inputs = pass->inputs();
    header_.has_weights = HasRowWeights(data) ? 1 : 0;
    header_.has_offsets = data.offset.empty() ? 0 : 1;
    if (sparse_) header_.id_bytes = HasWideNumbers(pass->inputs()) ? 8 : 4;
  }

  void ReadAll() {
    while (pass_.Next(&part_, &labels_)) AddRow();
    if (sparse_) offsets_.push_back(header_.feature_bytes);
    const int64_t end = (header_.feature_bytes + kAlignment - 1) / kAlignment * kAlignment;
    bytes_.append(static_cast<size_t>(end - header_.feature_bytes), '\0');
    header_.feature_bytes = end;
    Flush();
  }

  void Publish(const CacheFile& cache) {
    const std::vector<int32_t> renumbered = labels_.FinalNumbers();
    FinishFacts(pass_, &labels_, &facts_);
    writer_.Publish(header_, blocks_, renumbered, block_crcs_, [&](uint32_t labels_crc) {
      facts_.fingerprint = {header_.rows, labels_crc};
      return Describe(cache, facts_);
    });
  }

 private:
  static constexpr int64_t kAlignment = sizeof(int64_t);  // of what is behind the features

  // Takes the row that was read last.
  void AddRow() {
    const size_t begin = bytes_.size();
    if (pass_.begins_file()) cuts_.NextFile();
    if (sparse_) {
      if (cuts_.Begins(part_.feature_bytes())) blocks_.push_back(header_.rows);
      offsets_.push_back(header_.feature_bytes);
      header_.id_bytes == 4 ? AppendSparse<uint32_t>(part_.sparse, &bytes_)
                            : AppendSparse<uint64_t>(part_.sparse, &bytes_);
    } else {
      bytes_.append(reinterpret_cast<const char*>(part_.features.data()),
                    part_.features.size() * sizeof(float));
    }
    part_.features.clear();
    part_.sparse.Clear();
    if (header_.rows++ % kBlockRows == 0) block_crcs_.push_back(0);
    const size_t size = bytes_.size() - begin;
    block_crcs_.back() = Crc32cExtend(block_crcs_.back(), bytes_.data() + begin, size);
    header_.feature_bytes += static_cast<int64_t>(size);
    if (rules_.classes) CountClass(labels_.classes().back(), &facts_.class_rows);
    if (bytes_.size() >= kBufferBytes || labels_.size() >= kBufferBytes) Flush();
  }

  void Flush() {
    writer_.AddFeatures(bytes_);
    writer_.AddOffsets(offsets_);
    rules_.classes ? writer_.AddLabels(labels_.classes()) : writer_.AddLabels(labels_.targets());
    writer_.AddNumbers(part_);
    bytes_.clear();
    offsets_.clear();
    for (const auto numbers : kNumbersOf<ParsedRows>) (part_.*numbers).clear();
    labels_.Truncate(0);
  }

  const bool sparse_;
  const LabelRules& rules_;
  Pass& pass_;
  CacheWriter writer_;
  RowLabels labels_;
  Header header_;
  PassFacts facts_;
  BlockCuts cuts_;
  ParsedRows part_;  // the row that was read, and the weights and offsets that are not written
  std::string bytes_;
  std::vector<int64_t> offsets_;
  std::vector<int64_t> blocks_;
  std::vector<uint32_t> block_crcs_;
};

// Whether the header is that of a file of so many bytes.
bool IsSound(const Header& header, int64_t file_bytes) {
  const bool has_inputs = header.inputs >= 1 || (header.inputs == kKeyInputs && header.id_bytes == 8);
  if (header.magic != kMagic || header.rows < 1 || !has_inputs || header.text_bytes < 2) return false;
  for (const int64_t has : {header.has_weights, header.has_offsets}) {
    if (has != 0 && has != 1) return false;
  }
  // None of these numbers can be larger than the file, so that sums of them are no overflow.
  const auto fits = [&](int64_t number) { return number >= 0 && number <= file_bytes; };
  if (!fits(header.rows) || !fits(header.feature_bytes) || !fits(header.blocks) || !fits(header.text_bytes)) {
    return false;
  }
  const bool sparse = header.id_bytes == 4 || header.id_bytes == 8;
  if (sparse ? header.blocks < 1 : header.id_bytes != 0 || header.blocks != 0) return false;
  int64_t values = 0, value_bytes = 0;
  const bool overflows = __builtin_mul_overflow(header.rows, header.inputs, &values) ||
                         __builtin_mul_overflow(values, int64_t{4}, &value_bytes);
  if (!sparse && (overflows || !fits(value_bytes) || (value_bytes + 7) / 8 * 8 != header.feature_bytes))
    return false;
  return header.text_at() + header.text_bytes == file_bytes;
}

// Whether sparse rows and their blocks begin where they can.
bool AreSound(const Header& header, const int64_t* offsets, const std::vector<int64_t>& blocks) {
  if (offsets[0] != 0 || offsets[header.rows] > header.feature_bytes || blocks[0] != 0) return false;
  for (int64_t row = 0; row < header.rows; ++row) {
    if (offsets[row + 1] - offsets[row] < header.id_bytes) return false;
  }
  for (size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i] <= blocks[i - 1] || blocks[i] >= header.rows) return false;
  }
  return true;
}

// CachedRows: the rows of a cache that is mapped. Its features are checked when they are first asked for: a
// cache may be larger than memory. Owner: the set. Thread: any; immutable but for what is checked.
class CachedRows : public Fetch {
 public:
  ~CachedRows() override {
    if (map_ != nullptr) munmap(map_, map_bytes_);
  }

  // Returns null if there is no such cache of these data.
  static std::shared_ptr<CachedRows> Open(const CacheFile& cache, const LabelRules& rules);
  static DataSet ToSet(std::shared_ptr<CachedRows> rows, const LabelRules& rules);

  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override;
  void WillNeed(const std::vector<RowRun>& runs) const override;
  gpu::MatrixView<const float> floats() const override {
    if (sparse()) return {};
    return {reinterpret_cast<const float*>(features_), facts_->rows, header_.inputs};
  }

 private:
  CachedRows() = default;

  bool sparse() const { return header_.id_bytes > 0; }
  // Where the features of a row begin, in bytes behind features_; also of the row behind the last.
  int64_t ByteOf(int64_t row) const {
    return sparse() ? offsets_[row] : row * header_.inputs * static_cast<int64_t>(sizeof(float));
  }
  void CheckBlock(int64_t block) const;
  void ReadSparse(gpu::Span<const int64_t> rows, SparseBuffer* out) const;

  std::string path_;
  void* map_ = nullptr;
  size_t map_bytes_ = 0;
  Header header_;
  const char* features_ = nullptr;    // [rows, inputs] float32, or sparse rows
  const int64_t* offsets_ = nullptr;  // of sparse rows, [rows + 1]
  RowColumns columns_;
  const uint32_t* block_crcs_ = nullptr;
  mutable std::vector<std::atomic<bool>> is_checked_;  // of each block
  RowBlocks blocks_;
  std::shared_ptr<PassFacts> facts_;
};

std::shared_ptr<CachedRows> CachedRows::Open(const CacheFile& cache, const LabelRules& rules) {
  const FileDescriptor file(open(cache.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  Header header;
  if (file.get() < 0 || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      pread(file.get(), &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) {
    return nullptr;
  }
  if (!IsSound(header, about.st_size)) return nullptr;
  std::shared_ptr<CachedRows> set(new CachedRows());
  set->header_ = header;
  set->map_bytes_ = static_cast<size_t>(about.st_size);
  void* const map = mmap(nullptr, set->map_bytes_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (map == MAP_FAILED) return nullptr;
  set->map_ = map;
  const char* const begin = static_cast<const char*>(map);
  const std::string_view text(begin + header.text_at(), static_cast<size_t>(header.text_bytes));
  if (Crc32cExtend(0, text.data(), text.size()) != header.text_crc) return nullptr;
  std::optional<PassFacts> facts = FactsIn(cache, text);
  if (!facts || facts->rows != header.rows) return nullptr;
  set->facts_ = std::make_shared<PassFacts>(std::move(*facts));
  set->features_ = begin + kFeaturesAt;
  if (set->sparse()) {
    set->offsets_ = reinterpret_cast<const int64_t*>(begin + header.offsets_at());
    const auto numbers = static_cast<size_t>(header.labels_at() - header.offsets_at()) / sizeof(int32_t);
    if (ColumnCrc(0, set->offsets_, numbers) != header.begins_crc) return nullptr;
    const int64_t* const firsts = set->offsets_ + header.offset_count();
    auto blocks = std::make_shared<std::vector<int64_t>>(firsts, firsts + header.blocks);
    if (!AreSound(header, set->offsets_, *blocks)) return nullptr;
    set->blocks_ = std::move(blocks);
  } else {
    set->blocks_ = EqualBlocks(header.rows, kBlockRows);
  }
  set->path_ = cache.path;
  set->block_crcs_ = reinterpret_cast<const uint32_t*>(begin + header.crcs_at());
  set->facts_->fingerprint.features =
      FeatureChecksum(FeatureForm::kCache,
                      {{begin + header.crcs_at(), static_cast<size_t>(header.text_at() - header.crcs_at())},
                       BytesOf(&header.weights_crc, 1),
                       BytesOf(&header.offsets_crc, static_cast<size_t>(header.has_offsets))});
  set->is_checked_ = std::vector<std::atomic<bool>>(static_cast<size_t>(BlockCount(header.rows)));
  // Labels are used as indexes.
  const auto rows = static_cast<size_t>(header.rows);
  const char* const labels = begin + header.labels_at();
  if (ColumnCrc(0, labels, rows) != set->facts_->fingerprint.labels) return nullptr;
  if (rules.classes) {
    set->columns_.labels = {reinterpret_cast<const int32_t*>(labels), header.rows};
  } else {
    set->columns_.targets = {reinterpret_cast<const float*>(labels), header.rows};
  }
  const auto map_numbers = [&](int64_t at, uint32_t column_crc, gpu::Span<const float>* column) {
    *column = {reinterpret_cast<const float*>(begin + at), header.rows};
    return ColumnCrc(0, column->data, rows) == column_crc;
  };
  RowColumns& columns = set->columns_;
  if (header.has_weights == 1 && !map_numbers(header.weights_at(), header.weights_crc, &columns.weights))
    return nullptr;
  if (header.has_offsets == 1 &&
      !map_numbers(header.row_offsets_at(), header.offsets_crc, &columns.row_offsets))
    return nullptr;
  const gpu::Span<const int32_t> all = set->columns_.labels;
  const auto in_range = [&](int32_t label) { return label >= 0 && label < *rules.classes; };
  if (!std::all_of(all.begin(), all.end(), in_range)) return nullptr;
  return set;
}

DataSet CachedRows::ToSet(std::shared_ptr<CachedRows> rows, const LabelRules& rules) {
  SetForm form{rows->header_.inputs, rules.classes, rows->header_.rows};
  form.sparse = rows->sparse();
  form.blocks = rows->blocks_;
  form.facts = rows->facts_;
  const RowColumns columns = rows->columns_;
  return {std::move(form), std::move(rows), columns};
}

void CachedRows::CheckBlock(int64_t block) const {
  std::atomic<bool>& is_checked = is_checked_[static_cast<size_t>(block)];
  if (is_checked.load(std::memory_order_relaxed)) return;
  const int64_t first = block * kBlockRows, end = std::min(first + kBlockRows, header_.rows);
  const uint32_t crc =
      Crc32cExtend(0, features_ + ByteOf(first), static_cast<size_t>(ByteOf(end) - ByteOf(first)));
  if (crc != block_crcs_[block]) {
    throw UserError("{}: the rows {} to {} are damaged. Delete the file; it is made anew.", path_, first,
                    end - 1);
  }
  is_checked.store(true, std::memory_order_relaxed);
}

void CachedRows::Read(gpu::Span<const int64_t> rows, const RowsOut& out) const {
  if (out.sparse != nullptr) return ReadSparse(rows, out.sparse);
  const gpu::MatrixView<const float> all = floats();
  for (int64_t i = 0; i < rows.size; ++i) {
    CheckBlock(rows[i] / kBlockRows);
    std::copy_n(all.row(rows[i]), all.cols, out.inputs + i * all.cols);
  }
}

template <typename Id>
void AddSparse(const char* bytes, SparseBuffer* rows) {
  const auto* const head = reinterpret_cast<const Id*>(bytes);
  const auto size = static_cast<size_t>(*head / 2);
  const Id* const ids = head + 1;
  rows->Add(ids, *head % 2 == 1 ? reinterpret_cast<const float*>(ids + size) : nullptr, size);
}

void CachedRows::ReadSparse(gpu::Span<const int64_t> rows, SparseBuffer* out) const {
  constexpr int64_t kLine = 64, kMaxBytes = 256;
  out->Clear();
  ForEachAhead(
      rows, [&](int64_t row) __attribute__((always_inline)) { __builtin_prefetch(offsets_ + row); },
      [&](int64_t row) __attribute__((always_inline)) {
        const char* const ahead = features_ + ByteOf(row);
        for (int64_t byte = 0; byte < kMaxBytes; byte += kLine) __builtin_prefetch(ahead + byte);
      },
      [&](int64_t row) {
        CheckBlock(row / kBlockRows);
        const char* const bytes = features_ + ByteOf(row);
        header_.id_bytes == 4 ? AddSparse<uint32_t>(bytes, out) : AddSparse<uint64_t>(bytes, out);
      });
}

void CachedRows::WillNeed(const std::vector<RowRun>& runs) const {
  const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  for (const RowRun& run : runs) {
    const int64_t begin = (kFeaturesAt + ByteOf(run.begin)) / page * page;
    const int64_t end = kFeaturesAt + ByteOf(run.end);
    madvise(static_cast<char*>(map_) + begin, static_cast<size_t>(end - begin), MADV_WILLNEED);
  }
}

}  // namespace

DataSet CachedSet(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                  int64_t inputs) {
  const CacheFile cache = CacheFileOf(data, rules, how, inputs, "rows");
  std::shared_ptr<CachedRows> rows;
  const auto open_it = [&] { return (rows = CachedRows::Open(cache, rules)) != nullptr; };
  OpenOrMake(data, cache, open_it, [&] {
    RowContext context;
    context.how = how;
    context.inputs = inputs;
    SourceInputs files(data.train.path, "data.train.path");
    Pass pass(data, context, &files);
    RemoveLeftOver(cache.path);
    CacheMaker maker(data, rules, cache.path, &pass);
    maker.ReadAll();
    maker.Publish(cache);
  });
  return CachedRows::ToSet(std::move(rows), rules);
}

}  // namespace dtrain
