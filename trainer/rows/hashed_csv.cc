// A table with columns that have too many texts for a feature each (data.hash): its rows are sparse. A
// feature of such a column is the hash of the column's name and the text (hashed_feature.h) with value 1, and
// a missing value is a text of its own. Of any other column it is the hash of the name, with the number as
// value; with data.by_column it is one behind all hashes, scaled as data.numbers says. A column without a
// name is named by its number, from 0.
#include <fmt/core.h>

#include <set>
#include <utility>

#include "trainer/config/model_config.h"
#include "trainer/rows/hashed_feature.h"
#include "trainer/rows/row_files.h"

namespace dtrain {
namespace {

// A column whose texts are hashed.
struct Hashed {
  int64_t column = 0;
  HashedColumn texts;
};

// Which inputs of a table become what.
struct InputSplit {
  CsvLayout numbers;
  std::vector<uint64_t> ids;  // of `numbers`
  std::vector<Hashed> hashed;
  int64_t inputs = 0;
};

InputSplit SplitOf(const DataConfig& data, const std::string& section, bool header, const CsvReader& reader,
                   const CsvColumns& columns, const CsvColumns& train) {
  const auto inputs = [&](const std::vector<std::string>& listed, const char* key) {
    const std::vector<int64_t> found = FindInputs(train, listed, key, reader);
    return std::set<int64_t>(found.begin(), found.end());
  };
  const std::set<int64_t> hash = inputs(data.hash, "data.hash"),
                          dates = inputs(DateColumns(data), "data.dates");
  for (const int64_t column : hash) {
    if (dates.count(column) == 0) continue;
    throw reader.FaultAtRecord(fmt::format(
        "{} is in data.hash and data.dates; it is one of them. Take it out.", ColumnTitle(train, column)));
  }
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
    if (hash.count(column) > 0) {
      const auto at = static_cast<int64_t>(split.hashed.size());
      split.hashed.push_back({columns.inputs[i], HashedColumn(name, bits, first_of(at))});
      continue;
    }
    InputColumn number;
    number.column = column;
    number.is_date = dates.count(column) > 0;
    if (data.missing == MissingValues::kZero) number.fill = 0;
    how.push_back(number);
    numbers.inputs.push_back(columns.inputs[i]);
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
                const CsvColumns& columns, SkippedRows* skipped)
      : CsvFile(data, std::move(reader), std::move(split.numbers), skipped),
        columns_(columns),
        inputs_(data.whole_keys && !data.by_column ? kKeyInputs : split.inputs),
        number_ids_(std::move(split.ids)),
        hashed_(std::move(split.hashed)) {
    for (const Hashed& column : hashed_) CsvFile::reader().Take(column.column, false);
  }

  int64_t inputs() const override { return inputs_; }
  const CsvColumns& columns() const override { return columns_; }

 private:
  Read ReadRow(ParsedRows* rows, RowLabels* labels) override {
    numbers_.Clear();
    const Read read = CsvFile::ReadRow(&numbers_, labels);
    if (read != Read::kRow) return read;
    ids_.clear();
    values_.clear();
    for (size_t i = 0; i < number_ids_.size(); ++i) {
      if (numbers_.features[i] == 0) continue;
      ids_.push_back(number_ids_[i]);
      values_.push_back(data().by_column ? ScaledNumber(numbers_.features[i], data().numbers)
                                         : numbers_.features[i]);
    }
    for (const Hashed& column : hashed_) {
      const std::string_view text = reader().fields()[static_cast<size_t>(column.column)].text;
      const bool missing = IsMissing(text);
      if (missing && data().missing == MissingValues::kDrop) return Read::kGap;
      ids_.push_back(column.texts.NumberOf(missing ? std::string_view() : text));
      values_.push_back(1);
    }
    rows->sparse.Add(ids_.data(), values_.data(), ids_.size());
    rows->weights.insert(rows->weights.end(), numbers_.weights.begin(), numbers_.weights.end());
    return Read::kRow;
  }
  int64_t MaxRowBytes() const override {
    return kSparseFeatureBytes * static_cast<int64_t>(number_ids_.size() + hashed_.size());
  }

  const CsvColumns columns_;
  const int64_t inputs_;
  const std::vector<uint64_t> number_ids_;
  const std::vector<Hashed> hashed_;
  ParsedRows numbers_;  // of the row that is read, and its weight
  std::vector<uint64_t> ids_;
  std::vector<float> values_;
};

}  // namespace

std::unique_ptr<RowFile> OpenHashedCsv(const DataConfig& data, const std::string& section, bool header,
                                       std::unique_ptr<CsvReader> reader, const CsvColumns& columns,
                                       const CsvColumns& train, SkippedRows* skipped) {
  InputSplit split = SplitOf(data, section, header, *reader, columns, train);
  return std::make_unique<HashedCsvFile>(data, std::move(reader), std::move(split), columns, skipped);
}

}  // namespace dtrain
