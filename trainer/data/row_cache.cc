#include "trainer/data/row_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/names.h"
#include "trainer/config/fields.h"
#include "trainer/data/files/csv_files.h"
#include "trainer/data/files/sources.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr std::array<char, 8> kMagic = {'d', 't', 'r', 'o', 'w', 's', '0', '1'};
constexpr int64_t kFeaturesAt = 4096;  // where pages begin
constexpr int64_t kBlockRows = 1024;
constexpr size_t kBufferBytes = 1 << 20;

// The file: this, zeros up to kFeaturesAt, features [rows, inputs] as float32, labels [rows] as int32 or
// float32, and the description as JSON up to the end. Numbers are those of this machine.
struct Header {
  std::array<char, 8> magic = kMagic;
  int64_t rows = 0;
  int64_t inputs = 0;
  int64_t text_bytes = 0;
  int64_t text_crc = 0;

  int64_t labels_at() const { return kFeaturesAt + rows * inputs * static_cast<int64_t>(sizeof(float)); }
  int64_t text_at() const { return labels_at() + rows * static_cast<int64_t>(sizeof(int32_t)); }
};

// Keys that do not change how rows are parsed.
bool ChangesParsing(const std::string& key) {
  for (const char* other :
       {"data.cache", "data.cache_dir", "data.shuffle_rows", "data.fit_rows", "data.scale", "data.seed",
        "data.shuffle", "data.split", "data.last_batch", "data.validation", "data.validation_by",
        "data.class_weights", "data.bad_rows_limit"}) {
    if (key == other) return false;
  }
  return key.compare(0, 10, "data.test.") != 0;
}

// Returns what determines the cached rows, besides the content of the files.
Json ParsingOf(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
               const std::vector<std::string>& files) {
  Config config;
  config.data = data;
  Json parsing = Json::object();
  for (const Field* field : FieldsIn("data")) {
    if (ChangesParsing(field->key)) parsing[field->key] = ValueText(*field, field->get(config));
  }
  parsing["files"] = Json(files);
  parsing["classes"] = rules.classes.value_or(0);
  Json columns = Json::array();
  for (const InputColumn& column : how) {
    Json one = {{"column", column.column}, {"category", column.is_category}, {"date", column.is_date}};
    one["categories"] = Json(column.categories);
    one["other"] = column.has_other;
    one["indicator"] = column.has_indicator;
    if (column.fill) one["fill"] = *column.fill;
    columns.push_back(std::move(one));
  }
  parsing["columns"] = std::move(columns);
  return parsing;
}

// Returns size, times and identity of each file: whoever writes to a file changes the time of its last
// change, which cannot be set.
Json StatesOf(const std::vector<std::string>& files) {
  Json states = Json::array();
  for (const std::string& file : files) {
    struct stat about {};
    if (stat(file.c_str(), &about) != 0) throw UserError("{}: cannot be opened: {}.", file, ErrnoText(errno));
    states.push_back(Json(fmt::format("{} {} {}.{} {}.{}", about.st_size, about.st_ino, about.st_mtim.tv_sec,
                                      about.st_mtim.tv_nsec, about.st_ctim.tv_sec, about.st_ctim.tv_nsec)));
  }
  return states;
}

// Descriptor: closes what it holds.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

[[noreturn]] void ThrowUnwritable(const std::string& path, int error) {
  throw UserError(
      "{}: cannot be written: {}. Set data.cache_dir to a directory with room for the rows, or data.cache to "
      "none.",
      path, ErrnoText(error));
}

// CacheWriter: a cache that is being made. Until Publish() it has another name, and it is removed without it.
// Owner: CachedSet::Of(). Thread: one.
class CacheWriter {
 public:
  explicit CacheWriter(std::string path)
      : path_(std::move(path)),
        temporary_(fmt::format("{}.{}.tmp", path_, getpid())),
        file_(open(temporary_.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600)),
        // Labels come behind all features.
        labels_(open((temporary_ + ".labels").c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW,
                     0600)) {
    if (file_.get() < 0 || labels_.get() < 0) ThrowUnwritable(temporary_, errno);
    unlink((temporary_ + ".labels").c_str());
    if (lseek(file_.get(), kFeaturesAt, SEEK_SET) < 0) ThrowUnwritable(temporary_, errno);
  }
  ~CacheWriter() {
    if (!published_) unlink(temporary_.c_str());
  }

  void AddFeatures(const std::vector<float>& values) { Write(file_.get(), values.data(), values.size() * 4); }
  template <typename Value>
  void AddLabels(const std::vector<Value>& values) {
    static_assert(sizeof(Value) == 4);
    Write(labels_.get(), values.data(), values.size() * 4);
  }
  // Gives the cache its name. `renumbered`: the new number of each class; empty: they stay.
  uint32_t Publish(Header header, const std::vector<int32_t>& renumbered,
                   const std::function<std::string(uint32_t crc)>& text);

 private:
  void Write(int fd, const void* bytes, size_t count) {
    const int error = WriteAll(fd, {static_cast<const char*>(bytes), count});
    if (error != 0) ThrowUnwritable(temporary_, error);
  }

  const std::string path_;
  const std::string temporary_;
  const Descriptor file_;
  const Descriptor labels_;
  bool published_ = false;
};

uint32_t CacheWriter::Publish(Header header, const std::vector<int32_t>& renumbered,
                              const std::function<std::string(uint32_t crc)>& text) {
  std::vector<int32_t> part(kBufferBytes / sizeof(int32_t));
  uint32_t crc = 0;
  if (lseek(labels_.get(), 0, SEEK_SET) < 0) ThrowUnwritable(temporary_, errno);
  for (int64_t left = header.rows; left > 0;) {
    const auto count = static_cast<size_t>(std::min<int64_t>(left, static_cast<int64_t>(part.size())));
    const ssize_t got = read(labels_.get(), part.data(), count * sizeof(int32_t));
    if (got != static_cast<ssize_t>(count * sizeof(int32_t)))
      ThrowUnwritable(temporary_, got < 0 ? errno : EIO);
    for (size_t i = 0; i < count && !renumbered.empty(); ++i)
      part[i] = renumbered[static_cast<size_t>(part[i])];
    crc = static_cast<uint32_t>(
        crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), count * sizeof(int32_t)));
    Write(file_.get(), part.data(), count * sizeof(int32_t));
    left -= static_cast<int64_t>(count);
  }
  const std::string described = text(crc);
  Write(file_.get(), described.data(), described.size());
  header.text_bytes = static_cast<int64_t>(described.size());
  header.text_crc = Crc32cExtend(0, described.data(), described.size());
  if (pwrite(file_.get(), &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header)) ||
      fsync(file_.get()) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    ThrowUnwritable(temporary_, errno);
  }
  published_ = true;
  return crc;
}

// CacheLock: one task of this machine at a time makes a cache. A task that dies leaves the lock. Owner:
// CachedSet::Of(). Thread: one.
class CacheLock {
 public:
  explicit CacheLock(const std::string& path)
      : file_(open((path + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (file_.get() < 0) ThrowUnwritable(path + ".lock", errno);
  }
  bool Try() const { return flock(file_.get(), LOCK_EX | LOCK_NB) == 0; }

 private:
  const Descriptor file_;
};

std::vector<int32_t> SortedNumbers(const std::vector<std::string>& names) {
  std::map<std::string, int32_t> number;
  for (const std::string& name : names) number.emplace(name, 0);
  int32_t next = 0;
  for (auto& entry : number) entry.second = next++;
  std::vector<int32_t> sorted;
  for (const std::string& name : names) sorted.push_back(number[name]);
  return sorted;
}

void MakeCache(const std::string& path, const DataConfig& data, const LabelRules& rules,
               const std::vector<InputColumn>& how, const Json& parsing, const Json& states) {
  const CsvFiles files(data, how);
  CacheWriter writer(path);
  CsvLabels labels(rules, files.path(0), ColumnTitle(files.columns(), files.columns().label));
  std::vector<float> features;
  SkippedRows skipped;
  Header header;
  header.inputs = files.inputs();
  const auto flush = [&] {
    writer.AddFeatures(features);
    rules.classes ? writer.AddLabels(labels.classes()) : writer.AddLabels(labels.targets());
    features.clear();
    labels.Truncate(0);
  };
  for (size_t file = 0; file < files.count(); ++file) {
    const std::unique_ptr<CsvReader> reader = files.Open(file);
    if (file > 0) labels.NextFile(files.path(file));
    const std::unique_ptr<TableRows> rows = files.Rows(reader.get(), true, &skipped);
    while (rows->Next(&features, &labels)) {
      ++header.rows;
      if (features.size() * sizeof(float) >= kBufferBytes || labels.size() >= kBufferBytes) flush();
    }
  }
  flush();
  if (header.rows == 0) {
    throw UserError("{}: no rows; data.train.path must name files with data. Fetch them anew.",
                    files.path(0));
  }
  const std::vector<int32_t> renumbered = SortedNumbers(labels.names());
  labels.Finish();
  writer.Publish(header, renumbered, [&](uint32_t crc) {
    Json text = {{"parsing", parsing}, {"states", states}, {"labels_crc", int64_t{crc}}};
    text["class_names"] = Json(labels.names());
    text["bad"] = skipped.bad;
    text["with_gaps"] = skipped.with_gaps;
    text["unseen"] = skipped.unseen;
    text["faults"] = Json(skipped.faults);
    return text.dump();
  });
}

std::vector<std::string> TextsOf(const Json* list) {
  std::vector<std::string> texts;
  if (list == nullptr || !list->is_array()) return texts;
  for (const Json& one : *list) {
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

int64_t NumberOf(const Json& object, const char* key) {
  const Json* const found = object.Find(key);
  return found != nullptr && found->is_number_integer() ? found->get<int64_t>() : 0;
}

}  // namespace

std::shared_ptr<CachedSet> CachedSet::Of(const DataConfig& data, const LabelRules& rules,
                                         const std::vector<InputColumn>& how) {
  constexpr std::chrono::minutes kMaxWait{60};
  const std::vector<std::string> files = SourceFiles(data.train.path, "data.train.path");
  const std::string directory = data.cache_dir.empty() ? "dtrain-cache" : data.cache_dir;
  const Json parsing = ParsingOf(data, rules, how, files), states = StatesOf(files);
  const std::string key = parsing.dump();
  const std::string path =
      fmt::format("{}/{}-{:08x}.rows", directory, fs::path(files.front()).filename().string(),
                  Crc32cExtend(0, key.data(), key.size()));
  const std::string made_of = key + states.dump();
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) ThrowUnwritable(directory, error.value());
  if (std::shared_ptr<CachedSet> found = Open(path, made_of, rules)) return found;
  const CacheLock lock(path);
  // Who holds the lock for longer is not waited for: this task makes a cache of its own.
  for (const TimePoint until = Clock::now() + kMaxWait; !lock.Try() && Clock::now() < until;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (std::shared_ptr<CachedSet> found = Open(path, made_of, rules)) return found;
  MakeCache(path, data, rules, how, parsing, states);
  std::shared_ptr<CachedSet> made = Open(path, made_of, rules);
  if (made == nullptr) throw UserError("{}: was replaced by another task. Start again.", path);
  return made;
}

std::shared_ptr<CachedSet> CachedSet::Open(const std::string& path, const std::string& made_of,
                                           const LabelRules& rules) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  Header header;
  if (file.get() < 0 || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      pread(file.get(), &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) {
    return nullptr;
  }
  int64_t values = 0, value_bytes = 0;
  const bool sound =
      header.magic == kMagic && header.rows >= 1 && header.inputs >= 1 && header.text_bytes >= 2 &&
      !__builtin_mul_overflow(header.rows, header.inputs + 1, &values) &&
      !__builtin_mul_overflow(values, int64_t{4}, &value_bytes) && value_bytes <= about.st_size &&
      header.text_bytes <= about.st_size && header.text_at() + header.text_bytes == about.st_size;
  if (!sound) return nullptr;
  std::shared_ptr<CachedSet> set(new CachedSet());
  set->map_bytes_ = static_cast<size_t>(about.st_size);
  void* const map = mmap(nullptr, set->map_bytes_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (map == MAP_FAILED) return nullptr;
  set->map_ = map;
  const char* const begin = static_cast<const char*>(map);
  const std::string_view text(begin + header.text_at(), static_cast<size_t>(header.text_bytes));
  if (Crc32cExtend(0, text.data(), text.size()) != header.text_crc) return nullptr;
  const Json described = Json::Parse(text);
  const Json *const parsing = described.Find("parsing"), *const states = described.Find("states");
  if (parsing == nullptr || states == nullptr || parsing->dump() + states->dump() != made_of) return nullptr;
  set->features_ = reinterpret_cast<const float*>(begin + kFeaturesAt);
  set->labels_ = reinterpret_cast<const int32_t*>(begin + header.labels_at());
  set->rows_ = header.rows;
  set->inputs_ = header.inputs;
  set->classes_ = rules.classes;
  set->blocks_ = EqualBlocks(header.rows, kBlockRows);
  set->class_names_ = TextsOf(described.Find("class_names"));
  set->skipped_ = {NumberOf(described, "bad"), NumberOf(described, "with_gaps"),
                   NumberOf(described, "unseen"), TextsOf(described.Find("faults"))};
  set->fingerprint_ = {header.rows, static_cast<uint32_t>(NumberOf(described, "labels_crc"))};
  // Labels are used as indexes.
  const uint32_t crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(set->labels_),
                                                     static_cast<size_t>(header.rows) * sizeof(int32_t)));
  if (crc != set->fingerprint_.labels) return nullptr;
  const auto in_range = [&](int32_t label) { return label >= 0 && label < *rules.classes; };
  if (rules.classes && !std::all_of(set->labels_, set->labels_ + header.rows, in_range)) return nullptr;
  return set;
}

CachedSet::~CachedSet() {
  if (map_ != nullptr) munmap(map_, map_bytes_);
}

gpu::MatrixView<const float> CachedSet::floats() const {
  if (!scale_.shift.empty()) return {};
  return {features_, rows_, inputs_};
}

void CachedSet::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
                       float* targets) const {
  for (int64_t i = 0; i < count; ++i) {
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
