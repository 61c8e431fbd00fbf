// OpenJsonFile() (row_files.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/user_text.h"
#include "trainer/input/csv_field.h"
#include "trainer/input/field_reading.h"
#include "trainer/rows/row_files.h"

namespace dtrain {
namespace {

using Json = nlohmann::json;

// Rows are never nested deeper. The parser copies and frees its values recursively, so the depth is limited.
constexpr int kMaxDepth = 64;
constexpr char kList[] = "features";
constexpr size_t kOffset = SIZE_MAX;  // in place of a feature's number

constexpr std::string_view kBlank = " \t\r\n";

size_t EndOfString(std::string_view text, size_t quote) {
  size_t at = quote + 1;
  while (text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at + 1;
}

// Returns the position of the comma or brace behind the value that begins at `at`.
size_t EndOfValue(std::string_view text, size_t at) {
  for (int depth = 0; depth > 0 || std::string_view(",}").find(text[at]) == std::string_view::npos;) {
    if (text[at] == '"') {
      at = EndOfString(text, at);
      continue;
    }
    if (text[at] == '{' || text[at] == '[') ++depth;
    if (text[at] == '}' || text[at] == ']') --depth;
    ++at;
  }
  return at;
}

// `key` is in quotes and may contain escapes.
bool IsName(std::string_view key, std::string_view name) {
  if (key.find('\\') == std::string_view::npos) return key.substr(1, key.size() - 2) == name;
  return Json::parse(key).get<std::string>() == name;
}

// Returns a member of a JSON object as text, unchanged, so that what is passed on keeps every digit; empty if
// there is none. `object` is the text of a valid object.
std::string_view MemberText(std::string_view object, std::string_view name) {
  for (size_t at = object.find('{') + 1; (at = object.find('"', at)) != std::string_view::npos;) {
    const size_t end = EndOfString(object, at);
    const bool is_name = IsName(object.substr(at, end - at), name);
    const size_t begin = object.find_first_not_of(kBlank, object.find(':', end) + 1);
    at = EndOfValue(object, begin);
    if (is_name) return object.substr(begin, object.find_last_not_of(kBlank, at - 1) + 1 - begin);
  }
  return {};
}

constexpr std::string_view kNaN = "NaN";  // as Python's json writes a missing value

// Returns a line with null in place of NaN, as JSON has it.
std::string WithoutNaN(std::string_view line) {
  std::string text(line);
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && in_string) {
      ++at;
    } else if (text[at] == '"') {
      in_string = !in_string;
    } else if (!in_string && text.compare(at, kNaN.size(), kNaN) == 0) {
      text.replace(at, kNaN.size(), "null");
    }
  }
  return text;
}

class JsonFile : public LineFile {
 public:
  JsonFile(const RowSpec& spec, std::unique_ptr<InputBytes> file, SkippedRows* skipped)
      : LineFile(spec.data, std::move(file), skipped),
        spec_(spec),
        names_(ColumnNames(spec.form)),
        columns_(ColumnCount(spec.form, spec.inputs)) {
    std::vector<std::string> names = names_;
    std::sort(names.begin(), names.end());
    has_feature_features_ = std::binary_search(names.begin(), names.end(), kList);
    const auto repeated = std::adjacent_find(names.begin(), names.end());
    if (repeated != names.end()) repeated_ = *repeated;
    for (const std::string* name : {&spec.label, &spec.data.weight, &spec.data.offset})
      known_.insert(ColumnNameIn(*name));
    for (const auto* listed : {&names_, &spec.keep}) known_.insert(listed->begin(), listed->end());
    for (const std::string& name : spec.data.ignore) known_.insert(ColumnNameIn(name));
    for (const InputColumn& column : spec.form.columns) {
      readings_.push_back(ReadingOf(spec.data, column.column, column.name));
    }
  }

  int64_t inputs() const override { return spec_.inputs; }
  // The names are those of RowSpec::keep: a row must have these members.
  int64_t FindField(const std::string& name, const char*) const override {
    return std::find(spec_.keep.begin(), spec_.keep.end(), name) - spec_.keep.begin();
  }
  std::string_view Field(int64_t field) const override {
    return MemberText(reader().line(), spec_.keep[static_cast<size_t>(field)]);
  }
  bool is_json() const override { return true; }
  std::string Id() const override {
    return has_id_ ? std::string(MemberText(reader().line(), "id")) : std::string();
  }

 private:
  Read ReadRow(ParsedRows* rows, RowLabels* /*labels*/) override {
    do {
      if (!reader().Next()) return Read::kEnd;
    } while (reader().line().find_first_not_of(" \t\r") == std::string_view::npos);
    const std::string_view line = reader().line();
    std::vector<std::set<std::string>> names;  // of each open object; the parser would replace a repeated one
    const auto check = [&](int depth, Json::parse_event_t event, const Json& parsed) {
      using Event = Json::parse_event_t;
      if (depth > kMaxDepth) Refuse(fmt::format("nested more than {} deep. Correct it.", kMaxDepth));
      if (event == Event::object_start) names.emplace_back();
      if (event == Event::object_end) names.pop_back();
      if (event != Event::key || names.back().insert(parsed.get<std::string>()).second) return true;
      Refuse(
          fmt::format("{} stands twice in one object. Leave one.", Quoted(Shown(parsed.get<std::string>()))));
    };
    // The parser takes a zero byte for the end of the line.
    if (const size_t zero = line.find('\0'); zero != std::string_view::npos) RefuseFrom(zero + 1);
    try {
      const bool plain = line.find(kNaN) == line.npos;
      AddRow(plain ? Json::parse(line, check) : Json::parse(WithoutNaN(line), check), rows);
    } catch (const Json::out_of_range&) {
      Refuse("a number beyond float64; must be at most 3.4e38 (float32). Correct it, or remove the line.");
    } catch (const Json::parse_error& error) {
      RefuseFrom(error.byte);
    }
    return Read::kRow;
  }

  void AddRow(const Json& row, ParsedRows* rows) {
    const auto list = row.is_object() ? row.find(kList) : row.end();
    const bool listed = list != row.end() && (list->is_array() || !has_feature_features_);
    if (row.is_array() || listed) {
      AddList(listed ? *list : row, &rows->features);
    } else if (row.is_object()) {
      AddByName(row, &rows->features);
    } else {
      Refuse("neither an object nor a list; a row is {\"features\": [1, 2]} or has the features by name.");
    }
    CheckKept(row);
    AddOffset(row, rows);
    has_id_ = row.is_object() && row.contains("id");
    if (!row.is_object()) return;
    for (const auto& item : row.items()) {
      if (known_.count(item.key()) == 0) skipped()->AddUnused(item.key());
    }
  }

  void AddList(const Json& list, std::vector<float>* features) const {
    if (!list.is_array()) Refuse("features is no list; it must be one of numbers.");
    if (static_cast<int64_t>(list.size()) != columns_) {
      Refuse(fmt::format("{}; must be {}, as the model has.",
                         Plural(static_cast<int64_t>(list.size()), "feature"), columns_));
    }
    for (size_t i = 0; i < list.size(); ++i) AddValue(list[i], i, features);
  }

  void AddByName(const Json& row, std::vector<float>* features) const {
    if (names_.empty()) {
      Refuse("features by name, and those of the model have none; give them as {\"features\": [1, 2]}.");
    }
    if (!repeated_.empty()) {
      Refuse(
          fmt::format("features by name, and {} of the model are called {}; give them as {{\"features\": [1, "
                      "2]}}, in the training data's order.",
                      std::count(names_.begin(), names_.end(), repeated_), Quoted(Shown(repeated_))));
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto found = row.find(names_[i]);
      if (found != row.end()) {
        AddValue(*found, i, features);
        continue;
      }
      std::vector<std::string> keys;
      for (const auto& item : row.items()) keys.push_back(item.key());
      const std::string closest = ClosestName(names_[i], keys);
      Refuse(fmt::format("no {}; the model has this feature.{} Add it.", Quoted(Shown(names_[i])),
                         closest.empty() ? "" : fmt::format(" Is it {}?", Quoted(Shown(closest)))));
    }
  }

  void AddValue(const Json& value, size_t column, std::vector<float>* features) const {
    if (!spec_.form.columns.empty()) return AppendColumn(value, column, features);
    features->push_back(Number(value, column));
  }

  void AddOffset(const Json& row, ParsedRows* rows) const {
    if (spec_.data.offset.empty()) return;
    const auto found = row.is_object() ? row.find(ColumnNameIn(spec_.data.offset)) : row.end();
    if (found == row.end()) {
      Refuse(fmt::format("no {}, which says what is added to the output of the row (data.offset). Add it.",
                         Quoted(Title(kOffset))));
    }
    rows->row_offsets.push_back(Number(*found, kOffset));
  }

  void CheckKept(const Json& row) const {
    for (const std::string& name : spec_.keep) {
      if (row.is_object() && row.contains(name)) continue;
      Refuse(fmt::format("no {}, which {} names. Add it.", Quoted(Shown(name)), spec_.keep_key));
    }
  }

  // null is a missing value; a category is a text, or a number as it is written.
  void AppendColumn(const Json& value, size_t column, std::vector<float>* features) const {
    const InputColumn& how = spec_.form.columns[column];
    const std::string raw = value.is_string() ? value.get<std::string>()
                            : value.is_null() ? ""
                                              : value.dump();
    std::string plain;
    const std::string text(PlainText(readings_[column], raw, Decimal::kPoint, &plain));
    if (how.is_category) {
      const bool known = AppendCategory(how, IsMissing(text) ? "" : text, features);
      if (!known && spec_.data.unseen == UnseenCategory::kError) {
        Refuse(fmt::format(
            "{} = {}; must be a category of the training rows: {}. Set data.unseen to other, or correct it.",
            Title(column), Shown(text), ListNames(how.categories, "or")));
      }
      if (!known) skipped()->AddUnseen(Title(column), text);
    } else if (how.fill && IsMissing(text)) {
      AppendNumber(how, std::nullopt, features);
    } else {
      const bool respelled = value.is_string() && text != raw;  // as data.number_format says
      AppendNumber(how, how.is_date ? Date(text, column) : Number(respelled ? Plain(text) : value, column),
                   features);
    }
  }

  static Json Plain(const std::string& number) {
    const std::optional<double> exact = ExactNumber(number);
    return exact ? Json(*exact) : Json(number);
  }

  float Number(const Json& value, size_t column) const {
    if (!value.is_number()) {
      Refuse(fmt::format("{} = {}; must be a number.", Title(column),
                         Shown(value.dump(-1, ' ', false, Json::error_handler_t::replace))));
    }
    const double number = value.get<double>();
    if (std::abs(number) > static_cast<double>(std::numeric_limits<float>::max())) {
      Refuse(fmt::format("{} = {}; must be at most 3.4e38 (float32).", Title(column), value.dump()));
    }
    if (spec_.pixels && !IsPixel(number)) {
      Refuse(fmt::format("{} = {}; {}.", Title(column), value.dump(), kPixelRule));
    }
    return static_cast<float>(number);
  }

  float Date(const std::string& text, size_t column) const {
    float days = 0;
    const NumberText state = ParseDate(text, &days);
    if (state != NumberText::kGood) {
      Refuse(fmt::format("{} = {}; {}. Correct it.", Title(column), Shown(text),
                         NumberRule(NumberText::kNotADate)));
    }
    return days;
  }

  std::string Title(size_t column) const {
    if (column == kOffset) return Shown(ColumnNameIn(spec_.data.offset));
    const std::string name = names_.empty() ? "" : Shown(names_[column]);
    return name.empty() ? fmt::format("feature {}", column + 1) : name;
  }

  // Throws a RowFault about the row on this line.
  [[noreturn]] void Refuse(const std::string& text) const {
    throw RowFault("{}:{}: {}", path(), reader().number(), text);
  }

  // `byte`: of the line, from 1.
  [[noreturn]] void RefuseFrom(size_t byte) const {
    throw RowFault(
        "{}:{}:{}: not JSON from here; a line must be one row, such as {{\"features\": [1, 2]}}. Correct it, "
        "or remove the line.",
        path(), reader().number(), byte);
  }

  const RowSpec& spec_;
  std::set<std::string> known_{kList, "id"};  // members that are read, or left out by the config
  const std::vector<std::string> names_;      // of the columns that a row must have; empty: there are none
  const int64_t columns_;                     // their number
  bool has_feature_features_ = false;         // the model has a feature named "features"
  std::string repeated_;                      // a name that two features have
  std::vector<FieldReading> readings_;        // of the model's columns, if the form has them
  bool has_id_ = false;                       // of the last row
};

}  // namespace

std::unique_ptr<RowFile> OpenJsonFile(const RowSpec& spec, std::unique_ptr<InputBytes> file,
                                      SkippedRows* skipped) {
  return std::make_unique<JsonFile>(spec, std::move(file), skipped);
}

}  // namespace dtrain
