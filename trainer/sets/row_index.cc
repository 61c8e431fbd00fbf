#include "trainer/sets/row_index.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "trainer/input/sources.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/rows/pass.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/class_weights.h"

namespace dtrain {
namespace {

constexpr std::array<char, 8> kMagic = {'d', 't', 'r', 'i', 'd', 'x', '0', '1'};

// The file: this, the description as JSON, and the places. Numbers are those of this machine.
struct Header {
  std::array<char, 8> magic = kMagic;
  int64_t text_bytes = 0;
  int64_t places = 0;
  int64_t crc = 0;  // CRC-32C of all that follows
};
static_assert(std::is_trivially_copyable_v<RecordBlock>);

RowIndex PassOverRows(const DataConfig& data, const LabelRules& rules, const RowFiles& files) {
  SourceInputs inputs(files.paths(), "data.train.path");
  Pass pass(data, files.context(), &inputs);
  RowIndex index;
  RowLabels labels = pass.NewLabels(rules);
  BlockCuts cuts;
  ParsedRows row;
  uint32_t crc = 0;
  uint64_t features = 0;  // the checksum of those so far
  for (TextMark begin; pass.Next(&row, &labels); begin = pass.rows().mark()) {
    if (pass.begins_file()) {
      cuts.NextFile();
      begin = pass.file_begin();
    }
    if (cuts.Begins(row.feature_bytes())) {
      const bool is_reached = pass.rows().CanSeek() || pass.begins_file();
      index.places.push_back(
          {pass.count() - 1, static_cast<int64_t>(pass.file()), begin, 0, is_reached ? 1 : 0});
    }
    index.places.back().bytes = pass.rows().mark().byte - index.places.back().begin.byte;
    features = FeatureChecksum(FeatureForm::kText,
                               {BytesOf(&features, 1), BytesOf(row.features), BytesOf(row.sparse.ids),
                                BytesOf(row.sparse.values), BytesOf(row.weights), BytesOf(row.row_offsets)});
    row.Clear();
    crc = rules.classes ? ColumnCrc(crc, labels.classes()) : ColumnCrc(crc, labels.targets());
    if (rules.classes) CountClass(labels.classes().back(), &index.facts.class_rows);
    labels.Truncate(0);
  }
  FinishFacts(pass, &labels, &index.facts);
  index.facts.fingerprint = {pass.count(), crc, features};
  return index;
}

// Returns why all rows must be parsed before they are trained on; empty: the config does not ask for it.
std::string WhyParsed(const DataConfig& data, const std::vector<InputColumn>& how, const RowFiles& files) {
  if (data.bad_rows == BadRows::kSkip) return "data.bad_rows: skip leaves rows out";
  if (data.missing == MissingValues::kDrop) return "data.missing: drop leaves rows out";
  if (data.validation_by == HeldOutBy::kStratified) {
    return "data.validation_by: stratified draws from the rows of each class";
  }
  if (!data.class_weights.empty() && data.class_weights.front() == "balanced") {
    return "data.class_weights: balanced counts the rows of each class";
  }
  if (std::any_of(how.begin(), how.end(), [](const InputColumn& column) { return column.is_category; })) {
    return "texts that no category has are counted (data.categories)";
  }
  for (const std::string& path : files.paths()) {
    if (!OpenInput(path, "data.train.path")->CanSeek()) return fmt::format("{} is packed", path);
  }
  return "";
}

// Returns what the first labels say of all, none of them in it; null: they do not say it.
std::unique_ptr<const RowLabels> FirstLabels(const DataConfig& data, const LabelRules& rules,
                                             const RowFiles& files) {
  constexpr int64_t kMaxRows = 1 << 14;
  SourceInputs inputs(files.paths(), "data.train.path");
  Pass pass(data, files.context(), &inputs);
  RowLabels labels = pass.NewLabels(rules);
  for (ParsedRows row; pass.count() < kMaxRows && pass.Next(&row, &labels); row.Clear()) {
    if (!labels.IsSettled()) continue;
    labels.Finish();
    labels.Truncate(0);
    return std::make_unique<const RowLabels>(std::move(labels));
  }
  return nullptr;
}

RowIndex ScanRows(const RowFiles& files) {
  RowIndex index;
  FeatureSum sum;
  RecordScan scan(files, [&](std::string_view row) { sum.Add(row); });
  for (RecordBlock block; scan.Next(&block);) index.places.push_back(block);
  index.facts.rows = scan.rows();
  index.facts.fingerprint = {scan.rows(), 0, sum.Value(FeatureForm::kRecords)};
  return index;
}

void Keep(const RowIndex& index, const CacheFile& cache) {
  std::string body = Describe(cache, index.facts);
  Header header;
  header.text_bytes = static_cast<int64_t>(body.size());
  header.places = static_cast<int64_t>(index.places.size());
  body.append(BytesOf(index.places.data(), index.places.size()));
  header.crc = Crc32cExtend(0, body.data(), body.size());
  try {
    WriteFileAtomically(cache.path, std::string(BytesOf(&header, 1)) + body);
  } catch (const FileError& error) {
    ThrowUnwritable(fmt::format("{} Or set data.cache_dir to another directory.", error.what()),
                    error.error_number());
  }
}

// Whether the places are those of so many rows in so many files.
bool AreSound(const std::vector<RecordBlock>& places, int64_t rows, size_t files) {
  int64_t file = -1;
  for (size_t i = 0; i < places.size(); ++i) {
    const RecordBlock& place = places[i];
    const bool is_next_file = place.file != file;
    const int64_t end = i + 1 < places.size() ? places[i + 1].first_row : rows;
    if (place.file < file || place.file >= static_cast<int64_t>(files)) return false;
    if (place.is_reached != 1 && (place.is_reached != 0 || is_next_file)) return false;
    if (place.begin.byte < 0 || place.begin.line < 1 || place.bytes < 0) return false;
    if (i == 0 && place.first_row != 0) return false;
    if (end <= place.first_row || end - place.first_row > BlockCuts::kMaxRows) return false;
    file = place.file;
  }
  return !places.empty();
}

// Unset: there is none of these data.
std::optional<RowIndex> ReadKept(const CacheFile& cache, size_t files) {
  const FileDescriptor file(open(cache.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  Header header;
  if (file.get() < 0 || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) ||
      read(file.get(), &header, sizeof(header)) != static_cast<ssize_t>(sizeof(header)) ||
      header.magic != kMagic || header.text_bytes < 2 || header.text_bytes > about.st_size ||
      header.places < 1 || header.places > about.st_size) {
    return std::nullopt;
  }
  const auto text_bytes = static_cast<size_t>(header.text_bytes);
  const size_t bytes = text_bytes + static_cast<size_t>(header.places) * sizeof(RecordBlock);
  if (bytes + sizeof(header) != static_cast<size_t>(about.st_size)) return std::nullopt;
  std::string body(bytes, '\0');
  if (read(file.get(), body.data(), body.size()) != static_cast<ssize_t>(body.size()) ||
      Crc32cExtend(0, body.data(), body.size()) != header.crc) {
    return std::nullopt;
  }
  std::optional<PassFacts> facts = FactsIn(cache, std::string_view(body).substr(0, text_bytes));
  if (!facts) return std::nullopt;
  RowIndex index;
  index.facts = std::move(*facts);
  index.places.resize(static_cast<size_t>(header.places));
  std::memcpy(index.places.data(), body.data() + text_bytes, body.size() - text_bytes);
  if (!AreSound(index.places, index.facts.rows, files)) return std::nullopt;
  return index;
}

}  // namespace

RowIndex IndexRows(const DataConfig& data, const LabelRules& rules, const std::vector<InputColumn>& how,
                   const RowFiles& files, bool parses) {
  std::string why = WhyParsed(data, how, files);
  std::unique_ptr<const RowLabels> labels;
  if (why.empty()) labels = FirstLabels(data, rules, files);
  if (why.empty() && labels == nullptr) why = "the first labels do not say which classes there are";
  if (parses) labels.reset();
  const auto make = [&] { return labels != nullptr ? ScanRows(files) : PassOverRows(data, rules, files); };
  std::optional<RowIndex> index;
  if (data.cache_dir.empty()) {
    index = make();
    index->facts.why_parsed = std::move(why);
  } else {
    const CacheFile cache = CacheFileOf(data, rules, how, files.inputs(), "index");
    // One that was made by a scan knows no labels.
    const auto open_it = [&] {
      index = ReadKept(cache, files.count());
      return index && (labels != nullptr || index->facts.fingerprint.labels != 0);
    };
    OpenOrMake(data, cache, open_it, [&] { Keep(make(), cache); });
  }
  if (labels != nullptr && index->facts.fingerprint.labels == 0) {
    index->facts.class_names = labels->names();
    index->labels = std::move(labels);
  }
  return std::move(*index);
}

}  // namespace dtrain
