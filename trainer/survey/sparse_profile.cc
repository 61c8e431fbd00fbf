#include "trainer/survey/sparse_profile.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "trainer/input/csv_reader.h"
#include "trainer/input/sources.h"
#include "trainer/rows/criteo_line.h"
#include "trainer/rows/sparse_file.h"
#include "trainer/rows/sparse_line.h"

namespace dtrain {
namespace {

constexpr char kKey[] = "the table's path";

using Words = std::vector<std::string_view>;

// How a line looks: kMaybe says nothing of the format, as a label without features does not.
enum class Looks { kNo, kMaybe, kYes };

// A number, or what the parsers refuse by its name or ask about: several labels, costs, a weight.
bool IsLabel(std::string_view text) { return AreNumbers(text, ',', 1) || AreNumbers(text, ':', 1); }

// A label, perhaps a group, and INDEX:VALUE, or FIELD:INDEX:VALUE, which is refused by its name. Behind a
// name there are two of these at least: a time has the form of one.
Looks LooksLikeLibsvm(const Words& words) {
  const auto has_comment = [](std::string_view word) { return word.find('#') != word.npos; };
  const auto end = std::find_if(words.begin(), words.end(), has_comment);
  if (end == words.begin()) return Looks::kMaybe;
  const bool is_label = IsLabel(words[0]);
  auto first = words.begin() + 1;
  if (first != end && IsGroup(*first)) ++first;
  if (!std::all_of(first, end, [](std::string_view word) { return AreNumbers(word, ':', 2); }))
    return Looks::kNo;
  if (is_label) return first == end ? Looks::kMaybe : Looks::kYes;
  const bool is_name = words[0].find_first_of(",;:|\"") == std::string_view::npos;
  return is_name && end - words.begin() > 2 ? Looks::kYes : Looks::kNo;
}

// What stands before the first bar, and namespaces with features: bars stand before names, the first perhaps
// behind a tag, and alone at most once. Without a number for a label some feature has a value.
Looks LooksLikeVw(const Words& words) {
  bool has_bar = false, ends_with_bar = false, plain_tag = false, values = false;
  for (const std::string_view word : words) {
    const size_t bar = word.rfind('|'), colon = word.find(':');
    const bool is_tag = !has_bar && bar == word.find('|');
    ends_with_bar = bar != word.npos;
    if (ends_with_bar && bar > 0 && !is_tag) return Looks::kNo;
    plain_tag = plain_tag || (ends_with_bar && bar > 0 && word.front() != '\'');
    values = values ||
             (has_bar && !ends_with_bar && colon != word.npos && AreNumbers(word.substr(colon + 1), ':', 1));
    has_bar = has_bar || ends_with_bar;
  }
  const bool first_is_bar = words[0].find('|') != std::string_view::npos;
  if (!has_bar || std::count(words.begin(), words.end(), "|") > 1) return Looks::kNo;
  if (plain_tag && (first_is_bar || !values)) return Looks::kNo;
  return values || (!first_is_bar && IsLabel(words[0]) && !ends_with_bar) ? Looks::kYes : Looks::kMaybe;
}

// What lacks the label, or the tab before an empty last field, is told by the parser.
Looks LooksLikeCriteo(const Words& fields) {
  constexpr size_t kFields = static_cast<size_t>(1 + kCriteoNumbers + kCriteoCategories);
  const bool whole = fields.size() == kFields, lacks_one = fields.size() + 1 == kFields;
  const bool fits =
      (whole || lacks_one) && (FitsCriteo(fields, true) || (lacks_one && FitsCriteo(fields, false)));
  return fits ? Looks::kYes : Looks::kNo;
}

// Reads libsvm's LABEL:WEIGHT if `weights`.
SparseProfile ReadRows(const std::string& path, const std::vector<std::string>& files, DataFormat format,
                       bool weights) {
  SparseProfile profile;
  profile.path = path;
  DataConfig data;
  data.train.format = profile.format = format;
  data.index_base = 0;
  const bool libsvm = format == DataFormat::kLibsvm;
  if (weights) data.weight = "label";
  const std::unique_ptr<LineParser> parser = MakeLineParser(data, {});
  ColumnBuilder label(kMaxDistinct, Decimal::kPoint);
  std::unordered_set<uint64_t> features;
  SparseLine row;
  uint64_t first = 1, end = 0;
  int64_t weighted = 0, may_be_features = 0;
  for (const std::string& file : files) {
    LineReader lines(OpenInput(file, kKey));
    while (lines.Next()) {
      const std::string_view line = lines.line();
      if (const std::optional<int64_t> said = libsvm ? IndexBaseOf(line) : std::nullopt) {
        profile.said_base = said;
        continue;
      }
      std::optional<LineFault> fault;
      if (!parser->Parse(line, &row, &fault)) {
        if (fault) profile.faults.Add({lines.number(), static_cast<int64_t>(fault->at) + 1}, fault->rule);
        if (fault && profile.faults.count == 1) profile.faults.example = fault->rule;  // in full
        continue;
      }
      ++profile.rows;
      label.Add({row.label, {lines.number(), 1}});
      const size_t behind = static_cast<size_t>(row.label.data() - line.data()) + row.label.size();
      if (weights && behind < line.size() && line[behind] == ':') {
        ++weighted;
        const double number = ExactNumber(row.label).value_or(-1);
        const bool is_below = row.ids.empty() || number < static_cast<double>(row.ids[0]);
        may_be_features += number >= 0 && is_below ? 1 : 0;
      }
      for (const uint64_t id : row.ids) {
        first = std::min(first, id);
        end = std::max(end, id + 1);
        if (features.size() < kMaxDistinct) features.insert(id);
      }
    }
    profile.faults.EndFile(file);
  }
  profile.features = static_cast<int64_t>(features.size());
  profile.has_weights = weighted * 2 > profile.rows;
  profile.may_lack_labels = weighted > 0 && may_be_features == weighted;
  // Few such rows lack the label, or have a weight among rows that have none.
  if (weighted > 0 && !profile.has_weights) return ReadRows(path, files, format, false);
  profile.label = label.Finish("the label");
  if (!libsvm) return profile;
  profile.index_base = std::min(static_cast<int64_t>(first), profile.said_base.value_or(1));
  profile.inputs = std::max<int64_t>(1, static_cast<int64_t>(end) - profile.index_base);
  return profile;
}

}  // namespace

DataFormat SparseFormatOf(CsvReader* text) {
  const auto are_most = [&](char delimiter, Looks (*look)(const Words&)) {
    constexpr size_t kLooked = 100;
    size_t yes = 0, no = 0;
    for (const CsvRecord& row : text->Peek(delimiter, Quotes::kNone, kLooked)) {
      Words words;
      for (const CsvField& field : row.fields) {
        if (delimiter != ' ' || !field.text.empty()) words.push_back(field.text);
      }
      const Looks looks = words.empty() ? Looks::kMaybe : look(words);
      yes += looks == Looks::kYes ? 1 : 0;
      no += looks == Looks::kNo ? 1 : 0;
    }
    return yes > 4 * no;
  };
  return are_most(' ', LooksLikeLibsvm)    ? DataFormat::kLibsvm
         : are_most(' ', LooksLikeVw)      ? DataFormat::kVw
         : are_most('\t', LooksLikeCriteo) ? DataFormat::kCriteo
                                           : DataFormat::kNone;
}

SparseProfile ProfileSparseRows(const std::string& path) {
  SparseProfile none;
  none.path = path;
  if (path == "-") return none;  // it is read once, as a table
  const std::vector<std::string> files = SourceFiles({path}, kKey);
  std::unique_ptr<InputBytes> input = OpenInput(files[0], kKey);
  if (input->BeginsRecords(false)) return none;
  CsvReader first(std::move(input), CsvReader::Lenient());
  const DataFormat format = SparseFormatOf(&first);
  return format == DataFormat::kNone ? none : ReadRows(path, files, format, format == DataFormat::kLibsvm);
}

}  // namespace dtrain
