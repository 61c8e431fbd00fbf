// OpenJsonRows and MemberText (row_formats.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/user_text.h"
#include "trainer/input/csv_reader.h"
#include "trainer/rows/row_formats.h"

namespace dtrain {
namespace {

using Json = nlohmann::json;

// Rows are never nested deeper. The parser copies and frees its values recursively, so the depth is limited.
constexpr int kMaxDepth = 64;
constexpr char kList[] = "features";
constexpr size_t kPieceBytes = 1 << 16;
constexpr size_t kMaxLine = 64 << 20;

// RepeatedMember: finds a name that occurs twice in an object, which the parser would silently replace.
class RepeatedMember {
 public:
  // Call it for every event of nlohmann::json's parser with the event's value. Returns the name if it is a
  // key that its object already has; else null. Valid as long as `parsed`.
  const std::string* OnEvent(nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) {
      names_.emplace_back();
    } else if (event == Event::object_end) {
      names_.pop_back();
    } else if (event == Event::key) {
      const auto* const name = parsed.get_ptr<const std::string*>();
      if (!names_.back().insert(*name).second) return name;
    }
    return nullptr;
  }

 private:
  std::vector<std::set<std::string>> names_;  // of each open object
};

// LineReader: the lines of a file, or of standard input as they arrive.
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<InputBytes> file) : file_(std::move(file)) {}

  // Returns the next line without its end, valid until the next call; false at the end of the file. Throws
  // UserError for a line of more than 64 MiB.
  bool Next(std::string_view* line);
  // Whether a complete line that is not blank has arrived.
  bool HasWholeLine() const {
    const size_t text = buffer_.find_first_not_of(" \t\r\n", begin_);
    return text != std::string::npos && buffer_.find('\n', text) != std::string::npos;
  }
  int64_t line() const { return line_; }  // number of the last line, from 1
  const std::string& path() const { return file_->path(); }

 private:
  std::unique_ptr<InputBytes> file_;
  std::string buffer_;
  size_t begin_ = 0;  // of the next line
  int64_t line_ = 0;
  bool at_end_ = false;
};

bool LineReader::Next(std::string_view* line) {
  size_t scanned = begin_;
  while (true) {
    const size_t end = buffer_.find('\n', scanned);
    if (end != std::string::npos || (at_end_ && begin_ < buffer_.size())) {
      const size_t stop = end != std::string::npos ? end : buffer_.size();
      *line = std::string_view(buffer_).substr(begin_, stop - begin_);
      if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
      begin_ = stop + (end != std::string::npos ? 1 : 0);
      ++line_;
      return true;
    }
    if (at_end_) return false;
    buffer_.erase(0, begin_);
    begin_ = 0;
    scanned = buffer_.size();
    if (scanned > kMaxLine) {
      throw UserError("{}:{}:1: a line of more than {} bytes; a row must be one line.", path(), line_ + 1,
                      scanned);
    }
    buffer_.resize(scanned + kPieceBytes);
    const int64_t got = file_->ReadSome(buffer_.data() + scanned, kPieceBytes);
    buffer_.resize(scanned + static_cast<size_t>(got));
    at_end_ = got == 0;
  }
}

class JsonRows : public RowReader {
 public:
  JsonRows(std::unique_ptr<InputBytes> file, const RowSpec& spec);

  RowFormat format() const override { return RowFormat::kJsonLines; }
  bool Next(RowBlock* block) override;
  bool HasMore() const override { return lines_.HasWholeLine(); }
  std::vector<std::string> KeptNames() const override { return spec_.keep; }

 private:
  void AddRow(const Json& row, std::string_view text, RowBlock* block) const;
  void AddList(const Json& list, RowBlock* block) const;
  void AddKept(const Json& row, std::string_view text, RowBlock* block) const;
  void AddByName(const Json& row, RowBlock* block) const;
  void AddValue(const Json& value, size_t column, RowBlock* block) const;
  void AppendColumn(const Json& value, size_t column, std::vector<float>* features) const;
  float Number(const Json& value, size_t column) const;
  float Date(const std::string& text, size_t column) const;
  std::string Title(size_t column) const;
  // Throws a RowFault about the row on this line.
  [[noreturn]] void Refuse(const std::string& text) const;
  [[noreturn]] void RefuseFrom(size_t byte) const;

  const RowSpec spec_;
  const std::vector<std::string> names_;  // of the columns that a row must have; empty: there are none
  const int64_t columns_;                 // their number
  bool has_feature_features_ = false;     // the model has a feature named "features"
  std::string repeated_;                  // a name that two features have
  LineReader lines_;
};

JsonRows::JsonRows(std::unique_ptr<InputBytes> file, const RowSpec& spec)
    : spec_(spec),
      names_(ColumnNames(spec.form)),
      columns_(ColumnCount(spec.form, spec.inputs)),
      lines_(std::move(file)) {
  std::vector<std::string> names = names_;
  std::sort(names.begin(), names.end());
  has_feature_features_ = std::binary_search(names.begin(), names.end(), kList);
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated != names.end()) repeated_ = *repeated;
}

bool JsonRows::Next(RowBlock* block) {
  std::string_view line;
  do {
    if (!lines_.Next(&line)) return false;
  } while (line.find_first_not_of(" \t") == std::string_view::npos);
  RepeatedMember repeated;
  const auto check = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kMaxDepth) Refuse(fmt::format("nested more than {} deep. Correct it.", kMaxDepth));
    if (const std::string* name = repeated.OnEvent(event, parsed)) {
      Refuse(fmt::format("{} stands twice in one object. Leave one.", Quoted(Shown(*name))));
    }
    return true;
  };
  // The parser takes a zero byte for the end of the line.
  if (const size_t zero = line.find('\0'); zero != std::string_view::npos) RefuseFrom(zero + 1);
  try {
    AddRow(Json::parse(line, check), line, block);
  } catch (const Json::out_of_range&) {
    Refuse("a number beyond float64; must be at most 3.4e38 (float32). Correct it, or remove the line.");
  } catch (const Json::parse_error& error) {
    RefuseFrom(error.byte);
  }
  return true;
}

void JsonRows::AddRow(const Json& row, std::string_view text, RowBlock* block) const {
  const auto list = row.is_object() ? row.find(kList) : row.end();
  const bool listed = list != row.end() && (list->is_array() || !has_feature_features_);
  if (row.is_array() || listed) {
    AddList(listed ? *list : row, block);
  } else if (row.is_object()) {
    AddByName(row, block);
  } else {
    Refuse("neither an object nor a list; a row is {\"features\": [1, 2]} or has the features by name.");
  }
  AddKept(row, text, block);
  const bool named = row.is_object() && row.contains("id");
  block->ids.emplace_back(named ? MemberText(text, "id") : std::string_view());
  ++block->rows;
}

void JsonRows::AddList(const Json& list, RowBlock* block) const {
  if (!list.is_array()) Refuse("features is no list; it must be one of numbers.");
  if (static_cast<int64_t>(list.size()) != columns_) {
    Refuse(fmt::format("{}; must be {}, as the model has.",
                       Plural(static_cast<int64_t>(list.size()), "feature"), columns_));
  }
  for (size_t i = 0; i < list.size(); ++i) AddValue(list[i], i, block);
}

void JsonRows::AddKept(const Json& row, std::string_view text, RowBlock* block) const {
  for (const std::string& name : spec_.keep) {
    if (!row.is_object() || !row.contains(name)) {
      Refuse(fmt::format("no {}, which --keep names. Add it.", Quoted(Shown(name))));
    }
    block->kept.push_back({std::string(MemberText(text, name)), /*is_json=*/true});
  }
}

void JsonRows::AddByName(const Json& row, RowBlock* block) const {
  const std::vector<std::string>& names = names_;
  if (names.empty()) {
    Refuse("features by name, and those of the model have none; give them as {\"features\": [1, 2]}.");
  }
  if (!repeated_.empty()) {
    Refuse(
        fmt::format("features by name, and {} of the model are called {}; give them as "
                    "{{\"features\": [1, 2]}}, in the training data's order.",
                    std::count(names.begin(), names.end(), repeated_), Quoted(Shown(repeated_))));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = row.find(names[i]);
    if (found != row.end()) {
      AddValue(*found, i, block);
      continue;
    }
    std::vector<std::string> keys;
    for (const auto& item : row.items()) keys.push_back(item.key());
    const std::string closest = ClosestName(names[i], keys);
    Refuse(fmt::format("no {}; the model has this feature.{} Add it.", Quoted(Shown(names[i])),
                       closest.empty() ? "" : fmt::format(" Is it {}?", Quoted(Shown(closest)))));
  }
}

void JsonRows::AddValue(const Json& value, size_t column, RowBlock* block) const {
  const size_t begin = block->floats.size(), row = begin - static_cast<size_t>(block->rows * spec_.inputs);
  if (spec_.form.columns.empty()) {
    block->floats.push_back(Number(value, column));
  } else {
    AppendColumn(value, column, &block->floats);
  }
  for (size_t i = begin; i < block->floats.size(); ++i) {
    block->floats[i] = Scaled(spec_, static_cast<int64_t>(row + i - begin), block->floats[i]);
  }
}

// null is a missing value; a category is a text, or a number as it is written.
void JsonRows::AppendColumn(const Json& value, size_t column, std::vector<float>* features) const {
  const InputColumn& how = spec_.form.columns[column];
  const std::string text = value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
  if (how.is_category) {
    const bool known = AppendCategory(how, IsMissing(text) ? "" : text, features);
    if (!known && spec_.refuses_unseen) {
      Refuse(
          fmt::format("{} = {}; must be a category of the training rows: {}. Set data.unseen to other, or "
                      "correct it.",
                      Title(column), Shown(text), ListNames(how.categories, "or")));
    }
  } else if (how.fill && IsMissing(text)) {
    AppendNumber(how, std::nullopt, features);
  } else if (how.is_date) {
    AppendNumber(how, Date(text, column), features);
  } else {
    AppendNumber(how, Number(value, column), features);
  }
}

float JsonRows::Date(const std::string& text, size_t column) const {
  float days = 0;
  const NumberText state = ParseDate(text, &days);
  if (state != NumberText::kGood) {
    Refuse(fmt::format("{} = {}; {}. Correct it.", Title(column), Shown(text),
                       NumberRule(NumberText::kNotADate)));
  }
  return days;
}

float JsonRows::Number(const Json& value, size_t column) const {
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

std::string JsonRows::Title(size_t column) const {
  const std::string name = names_.empty() ? "" : Shown(names_[column]);
  return name.empty() ? fmt::format("feature {}", column + 1) : name;
}

void JsonRows::Refuse(const std::string& text) const {
  throw RowFault("{}:{}: {}", lines_.path(), lines_.line(), text);
}

// `byte`: of the line, from 1.
void JsonRows::RefuseFrom(size_t byte) const {
  throw RowFault(
      "{}:{}:{}: not JSON from here; a line must be one row, such as {{\"features\": [1, 2]}}. Correct it, "
      "or remove the line.",
      lines_.path(), lines_.line(), byte);
}

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
  return nlohmann::json::parse(key).get<std::string>() == name;
}

}  // namespace

std::unique_ptr<RowReader> OpenJsonRows(std::unique_ptr<InputBytes> file, const RowSpec& spec) {
  return std::make_unique<JsonRows>(std::move(file), spec);
}

std::string_view MemberText(std::string_view object, std::string_view name) {
  std::string_view found;
  for (size_t at = object.find('{') + 1; (at = object.find('"', at)) != std::string_view::npos;) {
    const size_t end = EndOfString(object, at);
    const bool is_name = IsName(object.substr(at, end - at), name);
    const size_t begin = object.find_first_not_of(kBlank, object.find(':', end) + 1);
    at = EndOfValue(object, begin);
    if (is_name) found = object.substr(begin, object.find_last_not_of(kBlank, at - 1) + 1 - begin);
  }
  return found;
}

}  // namespace dtrain
