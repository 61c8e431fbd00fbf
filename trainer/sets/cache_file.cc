#include "trainer/sets/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/input/sources.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// Keys that do not change how rows are parsed.
bool ChangesParsing(const std::string& key) {
  for (const char* other :
       {"data.cache", "data.cache_dir", "data.cache_wait_s", "data.shuffle_rows", "data.fit_rows",
        "data.scale", "data.seed", "data.shuffle", "data.split", "data.last_batch", "data.validation",
        "data.validation_by", "data.class_weights"}) {
    if (key == other) return false;
  }
  return key.compare(0, 10, "data.test.") != 0;
}

// Returns what determines the parsed rows, besides the content of the files.
Json ParsingOf(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
               int64_t inputs, const std::vector<std::string>& files) {
  Config config;
  config.data = data;
  Json parsing = Json::object();
  for (const Field* field : FieldsIn("data")) {
    if (ChangesParsing(field->key)) parsing[field->key] = ValueText(*field, field->get(config));
  }
  parsing["files"] = Json(files);
  parsing["inputs"] = inputs;
  parsing["classes"] = rules.classes.value_or(0);
  if (rules.range != gpu::TargetRange::kAny) parsing["targets"] = rules.source;
  parsing["names"] = Json(rules.given);  // sorted by value where they are numbers: another key than before
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

Json StatesOf(const std::vector<std::string>& files) {
  Json states = Json::array();
  for (const std::string& file : files) states.push_back(Json(FileState(file)));
  return states;
}

std::vector<std::string> TextsIn(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const Json* const list = object.Find(key);
  if (list == nullptr || !list->is_array()) return texts;
  for (const Json& one : *list) {
    if (one.is_string()) texts.push_back(one.get<std::string>());
  }
  return texts;
}

int64_t WholeIn(const Json& object, const char* key) {
  const Json* const found = object.Find(key);
  return found != nullptr && found->is_number_integer() ? found->get<int64_t>() : 0;
}

}  // namespace

std::string FileState(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) throw UserError("{}: cannot be opened: {}.", path, ErrnoText(errno));
  return fmt::format("{} {} {}.{} {}.{}", about.st_size, about.st_ino, about.st_mtim.tv_sec,
                     about.st_mtim.tv_nsec, about.st_ctim.tv_sec, about.st_ctim.tv_nsec);
}

std::shared_ptr<const PassFacts> FactsOf(std::vector<std::string> class_names, SkippedRows skipped) {
  auto facts = std::make_shared<PassFacts>();
  facts->class_names = std::move(class_names);
  facts->skipped = std::move(skipped);
  return facts;
}

void FinishFacts(const Pass& pass, RowLabels* labels, PassFacts* facts) {
  const std::vector<int32_t> sorted = labels->FinalNumbers();
  pass.Finish(labels);
  std::vector<int64_t> as_they_came = facts->class_rows;
  as_they_came.resize(
      std::max(as_they_came.size(), sorted.size()));  // a row that is left out may name a class
  facts->class_rows.resize(as_they_came.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    facts->class_rows[static_cast<size_t>(sorted[i])] = as_they_came[i];
  }
  while (!facts->class_rows.empty() && facts->class_rows.back() == 0) facts->class_rows.pop_back();
  facts->rows = pass.count();
  facts->class_names = labels->names();
  facts->skipped = pass.skipped();
}

std::string Describe(const CacheFile& file, const PassFacts& facts) {
  Json text = {{"made_of", file.made_of},
               {"rows", facts.rows},
               {"labels_crc", facts.fingerprint.labels},
               {"features", facts.fingerprint.features},
               {"bad", facts.skipped.bad},
               {"with_gaps", facts.skipped.with_gaps},
               {"unlabelled", facts.skipped.unlabelled},
               {"unseen_in", Json::object()}};
  for (const auto& [column, of_column] : facts.skipped.unseen_in) {
    const auto& [most, rows] = of_column.MostFrequent();
    text["unseen_in"][column] = {{"rows", of_column.rows}, {"most", most}, {"rows_of_most", rows}};
  }
  text["faults"] = Json(facts.skipped.faults);
  text["class_names"] = Json(facts.class_names);
  text["class_rows"] = Json(facts.class_rows);
  return text.dump();
}

std::optional<PassFacts> FactsIn(const CacheFile& file, std::string_view text) {
  const Json described = Json::Parse(text);
  if (!described.is_object()) return std::nullopt;
  const Json* const made_of = described.Find("made_of");
  if (made_of == nullptr || *made_of != Json(file.made_of)) return std::nullopt;
  PassFacts facts;
  facts.rows = WholeIn(described, "rows");
  facts.class_names = TextsIn(described, "class_names");
  if (const Json* const rows = described.Find("class_rows"); rows != nullptr && rows->is_array()) {
    for (const Json& one : *rows)
      facts.class_rows.push_back(one.is_number_integer() ? one.get<int64_t>() : 0);
  }
  facts.skipped.bad = WholeIn(described, "bad");
  facts.skipped.with_gaps = WholeIn(described, "with_gaps");
  facts.skipped.unlabelled = WholeIn(described, "unlabelled");
  facts.skipped.faults = TextsIn(described, "faults");
  if (const Json* const columns = described.Find("unseen_in"); columns != nullptr && columns->is_object()) {
    for (const auto& [column, texts] : columns->items()) {
      const Json* const most = texts.Find("most");
      if (most == nullptr || !most->is_string()) continue;
      const UnseenTexts of_column{WholeIn(texts, "rows"),
                                  {{most->get<std::string>(), WholeIn(texts, "rows_of_most")}}};
      facts.skipped.unseen += of_column.rows;
      facts.skipped.unseen_in.emplace(column, of_column);
    }
  }
  facts.fingerprint = {facts.rows, static_cast<uint32_t>(WholeIn(described, "labels_crc")),
                       static_cast<uint64_t>(WholeIn(described, "features"))};
  return facts;
}

void ThrowNoCache(const std::string& path, int error) {
  ThrowUnwritable(
      fmt::format("{}: cannot be written: {}. Set data.cache_dir to a directory that can be written and has "
                  "room.",
                  path, ErrnoText(error)),
      error);
}

std::string MakeCacheDirectory(const DataConfig& data) {
  const std::string directory = data.cache_dir.empty() ? "dtrain-cache" : data.cache_dir;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) ThrowNoCache(directory, error.value());
  return directory;
}

CacheFile CacheFileOf(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                      int64_t inputs, const char* ending) {
  const std::vector<std::string> files = SourceFiles(data.train.path, "data.train.path");
  const std::string parsing = ParsingOf(data, rules, how, inputs, files).dump();
  const std::string directory = MakeCacheDirectory(data);
  return {fmt::format("{}/{}-{:08x}.{}", directory, fs::path(files.front()).filename().string(),
                      Crc32cExtend(0, parsing.data(), parsing.size()), ending),
          parsing + StatesOf(files).dump()};
}

namespace {

// Waits until this task holds the lock of a file, or for so long. A task that dies lets go of its lock.
class FileLock {
 public:
  FileLock(const std::string& path, std::chrono::duration<double> wait) : state_(std::make_shared<State>()) {
    state_->file = FileDescriptor(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (state_->file.get() < 0) ThrowNoCache(path, errno);
    held_ = flock(state_->file.get(), LOCK_EX | LOCK_NB) == 0;
    if (held_) return;
    // The system has no wait for a lock that ends by time: a thread waits, and after that time it is left
    // alone.
    std::thread([state = state_] {
      while (flock(state->file.get(), LOCK_EX) != 0 && errno == EINTR) {
      }
      const std::lock_guard<std::mutex> guard(state->mutex);
      state->ended = true;
      state->changed.notify_all();
    }).detach();
    std::unique_lock<std::mutex> guard(state_->mutex);
    held_ = state_->changed.wait_for(guard, wait, [&] { return state_->ended; });
  }

  bool held() const { return held_; }

 private:
  struct State {  // shared with the thread
    FileDescriptor file;
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
  };
  const std::shared_ptr<State> state_;
  bool held_ = false;
};

}  // namespace

void RemoveLeftOver(const std::string& path) {
  const fs::path cache(path);
  const std::string names = cache.filename().string() + ".";
  std::error_code unknown;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache.parent_path(), unknown)) {
    const std::string name = entry.path().filename().string();
    if (name.compare(0, names.size(), names) != 0 || entry.path().extension() != kTemporary) continue;
    const FileDescriptor file(open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.get() >= 0 && flock(file.get(), LOCK_EX | LOCK_NB) == 0) unlink(entry.path().c_str());
  }
}

void OpenOrMake(const DataConfig& data, const CacheFile& file, const std::function<bool()>& open_it,
                const std::function<void()>& make) {
  if (open_it()) return;
  const FileLock lock(file.path + ".lock", std::chrono::duration<double>(data.cache_wait_s));
  if (open_it()) return;
  if (!lock.held()) {
    throw UserError(
        "{}: another task makes this cache and is not done after {} s (data.cache_wait_s). Wait for it, or "
        "end it, or set another data.cache_dir.",
        file.path, data.cache_wait_s);
  }
  std::error_code unknown;
  if (fs::is_directory(file.path, unknown)) {
    throw UserError(
        "{}: is a directory, and the cache of data.train has this name. Remove it, or set another "
        "data.cache_dir.",
        file.path);
  }
  make();
  if (!open_it()) throw UserError("{}: was replaced by another task. Start again.", file.path);
}

}  // namespace dtrain
