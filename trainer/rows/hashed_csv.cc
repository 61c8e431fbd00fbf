// A table with columns that have too many texts for a feature each (data.hash): its rows are sparse. A
// feature of such a column is the hash of the column's name and the text (hashed_feature.h) with value 1, and
// a missing value is a text of its own. A column of data.bags has any number of such texts, whose values are
// their weights. Of any other column it is the hash of the name, with the number as
// value; with data.by_column it is one behind all hashes, scaled as data.numbers says. A column without a
// name is named by its number, from 0.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/names.h"
#include "trainer/config/item_text.h"
#include "trainer/config/model_config.h"
#include "trainer/config/user_text.h"
#include "trainer/rows/hashed_feature.h"
#include "trainer/rows/row_files.h"

namespace dtrain {
namespace {

// A column whose texts are hashed.
struct Hashed {
  int64_t column = 0;
  std::string name;
  HashedColumn texts;
  bool is_bag = false;
  bool has_colons = false;  // a text may have its weight behind a colon
  int64_t weights = -1;     // the column that has those of a bag; -1: none has
};

// Which inputs of a table become what.
struct InputSplit {
  CsvLayout numbers;
  std::vector<uint64_t> ids;  // of `numbers`
  std::vector<std::string> names;
  std::vector<Hashed> hashed;
  int64_t inputs = 0;
};

// Where an input of data.train stands in a file with `columns`.
int64_t PlaceOf(const CsvColumns& train, const CsvColumns& columns, int64_t input) {
  const auto found = std::find(train.inputs.begin(), train.inputs.end(), input);
  return columns.inputs[static_cast<size_t>(found - train.inputs.begin())];
}

InputSplit SplitOf(const DataConfig& data, const std::string& section, bool header, const CsvReader& reader,
                   const CsvColumns& columns, const CsvColumns& train) {
  const auto inputs = [&](const std::vector<std::string>& listed, const char* key) {
    const std::vector<int64_t> found = FindInputs(train, listed, key, reader);
    return std::set<int64_t>(found.begin(), found.end());
  };
  std::map<int64_t, const char*> keys;  // that a column is in
  const auto add = [&](int64_t column, const char* key) {
    const auto [other, is_new] = keys.emplace(column, key);
    if (is_new) return;
    throw reader.FaultAtRecord(fmt::format("{} is in {} and {}; it is one of them. Take it out.",
                                           ColumnTitle(train, column), other->second, key));
  };
  const std::set<int64_t> hash = inputs(data.hash, "data.hash"),
                          dates = inputs(DateColumns(data), "data.dates");
  for (const int64_t column : hash) add(column, "data.hash");
  std::map<int64_t, BagItem> bags;
  std::set<int64_t> weights;
  for (const std::string& item : data.bags) {
    BagItem bag = ParseBag(item);
    const int64_t column = FindInputs(train, {bag.column}, "data.bags", reader)[0];
    add(column, "data.bags");
    if (!bag.weights.empty()) weights.insert(FindInputs(train, {bag.weights}, "data.bags", reader)[0]);
    bags.emplace(column, std::move(bag));
  }
  for (const int64_t column : weights) add(column, "the weights of data.bags");
  for (const int64_t column : dates) add(column, "data.dates");
  InputSplit split;
  CsvColumns numbers = columns;
  numbers.inputs.clear();
  std::vector<InputColumn> how;
  const int64_t bits = *HashBits(data);
  const auto first_of = [&](int64_t at) { return data.by_column ? FirstOfColumn(at, bits) : 0; };
  for (size_t i = 0; i < train.inputs.size(); ++i) {
    const int64_t column = train.inputs[i];
    const std::string name =
        train.names.empty() ? fmt::format("{}", column) : train.names[static_cast<size_t>(column)];
    const std::string title =
        train.names.empty() || name.empty() ? fmt::format("column {}", column + 1) : name;
    if (weights.count(column) > 0) continue;
    const auto bag = bags.find(column);
    if (hash.count(column) > 0 || bag != bags.end()) {
      const auto at = static_cast<int64_t>(split.hashed.size());
      Hashed& hashed =
          split.hashed.emplace_back(Hashed{columns.inputs[i], title, HashedColumn(name, bits, first_of(at))});
      hashed.is_bag = bag != bags.end();
      hashed.has_colons = hashed.is_bag && bag->second.has_colons && data.train.format == DataFormat::kCsv &&
                          !reader.names_columns();
      if (hashed.is_bag && !bag->second.weights.empty())
        hashed.weights = PlaceOf(train, columns, FindColumn(train, bag->second.weights, "data.bags", reader));
      continue;
    }
    InputColumn number;
    number.column = column;
    number.is_date = dates.count(column) > 0;
    if (data.missing == MissingValues::kZero) number.fill = 0;
    how.push_back(number);
    numbers.inputs.push_back(columns.inputs[i]);
    split.names.push_back(title);
    split.ids.push_back(data.by_column ? first_of(CategoryColumns(data)) + split.ids.size()
                                       : HashedColumn(name, bits).NumberOf(""));
  }
  split.inputs = data.by_column ? static_cast<int64_t>(first_of(CategoryColumns(data)) + split.ids.size())
                                : int64_t{1} << bits;
  split.numbers = LayoutOf(data, section, header, numbers, std::move(how));
  return split;
}

class HashedCsvFile : public CsvFile {
 public:
  HashedCsvFile(const DataConfig& data, std::unique_ptr<CsvReader> reader, InputSplit split,
                const CsvColumns& columns, SkippedRows* skipped, const NameWish* names)
      : CsvFile(data, std::move(reader), std::move(split.numbers), skipped),
        columns_(columns),
        inputs_(data.whole_keys && !data.by_column ? kKeyInputs : split.inputs),
        names_(names),
        number_ids_(std::move(split.ids)),
        number_names_(std::move(split.names)),
        hashed_(std::move(split.hashed)),
        ids_(number_ids_.size() + hashed_.size()),
        values_(ids_.size()) {
    for (const Hashed& column : hashed_) {
      CsvReader& all = CsvFile::reader();
      column.is_bag ? all.TakeList(column.column, false) : all.Take(column.column, false);
      if (column.weights >= 0) all.TakeList(column.weights, true);
    }
  }

  int64_t inputs() const override { return inputs_; }
  const CsvColumns& columns() const override { return columns_; }
  std::vector<std::string> NumberNames() const override { return number_names_; }
  int64_t FindField(const std::string& name, const char* key) const override {
    const int64_t field = CsvFile::FindField(name, key);
    for (const Hashed& bag : hashed_) {
      if (!reader().names_columns() || !bag.is_bag || (field != bag.column && field != bag.weights)) continue;
      throw UserError("{} {}: is a list of TFRecord (data.bags), and no single value. Leave it out.", key,
                      name);
    }
    return field;
  }

 private:
  Read ReadRow(ParsedRows* rows, RowLabels* labels) override {
    numbers_.Clear();
    const Read read = CsvFile::ReadRow(&numbers_, labels);
    if (read != Read::kRow) return read;
    count_ = 0;
    row_names_.clear();
    for (size_t i = 0; i < number_ids_.size(); ++i) {
      const float number = numbers_.features[i];
      if (number == 0) continue;
      ids_[count_] = number_ids_[i];
      if (Wants(number_ids_[i])) row_names_.push_back({number_ids_[i], number_names_[i]});
      values_[count_++] = data().by_column ? ScaledNumber(number, data().numbers) : number;
    }
    const std::vector<CsvField>& fields = reader().fields();
    const bool drops = data().missing == MissingValues::kDrop;
    for (const Hashed& column : hashed_) {
      if (column.is_bag) {
        if (!AddBag(column)) return Read::kGap;
        continue;
      }
      const std::string_view text = fields[static_cast<size_t>(column.column)].text;
      const bool missing = IsMissing(text);
      if (missing && drops) return Read::kGap;
      ids_[count_] = column.texts.NumberOf(missing ? std::string_view() : text);
      if (Wants(ids_[count_])) AddName(column, missing ? std::string_view() : text);
      values_[count_++] = 1;
    }
    rows->sparse.Add(ids_.data(), values_.data(), count_);
    rows->AddNumbers(numbers_);
    std::move(row_names_.begin(), row_names_.end(), std::back_inserter(rows->names));
    return Read::kRow;
  }
  // A text of a bag takes a byte and a separator, and a number of a record one byte.
  int64_t MaxRowBytes(std::string_view row) const override {
    const size_t bag = data().bags.empty() ? 0 : reader().names_columns() ? row.size() : row.size() / 2 + 1;
    return kSparseFeatureBytes * static_cast<int64_t>(number_ids_.size() + hashed_.size() + bag);
  }

  bool Wants(uint64_t id) const { return names_ != nullptr && names_->Has(id); }
  // Of the feature that is the next one of the row.
  void AddName(const Hashed& column, std::string_view text) {
    row_names_.push_back({ids_[count_], FeatureNameOf(column.name, text)});
  }

  // False: it is missing, and such rows are left out.
  bool AddBag(const Hashed& bag) {
    const char separator = SeparatorOf(data());
    weights_.clear();
    if (bag.weights >= 0) {
      const auto add_weight = [&](const CsvField& field) {
        weights_.push_back(0);
        if (ParseNumber(field, reader().decimal(), &weights_.back()) != NumberText::kGood)
          RefuseWeight(bag.weights, field.text);
      };
      reader().ReadList(bag.weights, separator, std::ref(add_weight));  // without memory of its own
    }
    size_t count = 0;
    const auto add_text = [&](const CsvField& field) {
      std::string_view text = field.text;
      float weight = count < weights_.size() ? weights_[count] : 1;
      const size_t colon = bag.has_colons ? text.rfind(':') : text.npos;
      if (colon != text.npos) {
        std::string_view number = text.substr(colon + 1);
        number.remove_prefix(std::min(number.find_first_not_of(" \t"), number.size()));
        if (ParseNumber(number, reader().decimal(), &weight) != NumberText::kGood)
          RefuseWeight(bag.column, text);
        text = text.substr(0, colon);
        text = text.substr(0, text.find_last_not_of(" \t") + 1);
      }
      if (text.empty() && !reader().names_columns()) {
        Refuse(bag.column,
               "has an empty text; must have texts between its separators (data.bag_separator). "
               "Correct it, or remove the row.");
      }
      if (count_ + hashed_.size() >= ids_.size()) {
        ids_.resize(2 * (count_ + hashed_.size()));
        values_.resize(ids_.size());
      }
      ids_[count_] = bag.texts.NumberOf(text);
      if (Wants(ids_[count_])) AddName(bag, text);
      values_[count_++] = weight;
      ++count;
    };
    const bool is_there = reader().ReadList(bag.column, separator, std::ref(add_text));
    if (!is_there && data().missing == MissingValues::kDrop) return false;
    if (bag.weights >= 0 && count != weights_.size()) {
      Refuse(bag.weights,
             fmt::format("has {}; must have {}, as many as {} has texts (data.bags). Correct it, "
                         "or remove the row.",
                         Plural(static_cast<int64_t>(weights_.size()), "value"), count,
                         ColumnTitle(columns_, bag.column)));
    }
    return true;
  }
  [[noreturn]] void RefuseWeight(int64_t column, std::string_view text) {
    Refuse(
        column,
        fmt::format("has {}; a weight must be a finite number{}. Correct it, or remove the row.",
                    Quoted(Shown(std::string(text))),
                    text.find(':') == text.npos
                        ? ""
                        : " behind the colon (data.bags: COLUMN=none takes colons for a part of the text)"));
  }
  [[noreturn]] void Refuse(int64_t column, const std::string& what) {
    throw reader().FaultAtRecord(fmt::format("{} {}", ColumnTitle(columns_, column), what), column);
  }

  const CsvColumns columns_;
  const int64_t inputs_;
  const NameWish* const names_;
  const std::vector<uint64_t> number_ids_;
  const std::vector<std::string> number_names_;
  const std::vector<Hashed> hashed_;
  ParsedRows numbers_;  // of the row that is read, and its weight and offset
  // The features of the row that is read, with room for those of the columns.
  std::vector<uint64_t> ids_;
  std::vector<float> values_;
  size_t count_ = 0;
  std::vector<NamedFeature> row_names_;
  std::vector<float> weights_;  // of the texts of a bag
};

}  // namespace

std::unique_ptr<RowFile> OpenHashedCsv(const DataConfig& data, const std::string& section, bool header,
                                       std::unique_ptr<CsvReader> reader, const CsvColumns& columns,
                                       const CsvColumns& train, SkippedRows* skipped, const NameWish* names) {
  InputSplit split = SplitOf(data, section, header, *reader, columns, train);
  return std::make_unique<HashedCsvFile>(data, std::move(reader), std::move(split), columns, skipped, names);
}

}  // namespace dtrain
