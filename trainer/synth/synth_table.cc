#include "trainer/synth/synth_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>
#include <vector>

#include "base/tfrecord.h"
#include "trainer/config/data_config.h"
#include "trainer/rows/example_fields.h"
#include "trainer/sets/data_set.h"
#include "trainer/sets/generators.h"

namespace dtrain {
namespace {

class LinearTable : public SynthTable {
 public:
  LinearTable(uint64_t seed, int64_t features)
      : rows_(LinearRows(seed, "train", features, std::nullopt)), x_(static_cast<size_t>(features)) {}

  std::string Header() const override {
    std::string header;
    for (size_t i = 1; i <= x_.size(); ++i) header += fmt::format("x{},", i);
    return header + "y\n";
  }

  void Append(int64_t begin, int64_t end, std::string* text) override {
    for (int64_t row = begin; row < end; ++row) {
      float y = 0;
      rows_.Read({&row, 1}, {x_.data(), nullptr, nullptr, &y});
      for (const float x : x_) fmt::format_to(std::back_inserter(*text), "{},", x);
      fmt::format_to(std::back_inserter(*text), "{}\n", y);
    }
  }

 private:
  const DataSet rows_;
  std::vector<float> x_;
};

class DigitsTable : public SynthTable {
 public:
  explicit DigitsTable(uint64_t seed) : seed_(seed) {}

  std::string Header() const override {
    std::string header = "label";
    for (int64_t i = 0; i < kDigitInputs; ++i) header += fmt::format(",p{}", i);
    return header + "\n";
  }

  void Append(int64_t begin, int64_t end, std::string* text) override {
    while (begin < end) {
      const int64_t block = begin / kBlockRows, first = begin % kBlockRows;
      const int64_t last = std::min(kBlockRows, first + end - begin);
      AppendBlock(block, first, last, text);
      begin += last - first;
    }
  }

 private:
  // DrawDigits() draws rows from the first on, and its strokes anew in each call, which takes as long as a
  // thousand digits.
  static constexpr int64_t kBlockRows = 10000;

  void AppendBlock(int64_t block, int64_t first, int64_t last, std::string* text) {
    if (block != block_ || drawn_ < last) {
      const int64_t rows = block == block_ || first > 0 ? kBlockRows : last;
      digits_ = DrawDigits(seed_, fmt::format("synth {}", block), rows);
      block_ = block;
      drawn_ = rows;
    }
    std::vector<int64_t> rows(static_cast<size_t>(last - first));
    std::iota(rows.begin(), rows.end(), first);
    std::vector<int32_t> labels(rows.size());
    digits_->Read(rows, {nullptr, nullptr, labels.data()});
    for (int64_t row = first; row < last; ++row) {
      AppendRow(labels[static_cast<size_t>(row - first)], digits_->bytes().data + row * kDigitInputs, text);
    }
  }

  static void AppendRow(int32_t label, const uint8_t* pixels, std::string* text) {
    *text += static_cast<char>('0' + label);
    for (int64_t i = 0; i < kDigitInputs; ++i) {
      char number[4] = {','};
      *text += std::string_view(
          number,
          static_cast<size_t>(std::to_chars(number + 1, number + sizeof number, pixels[i]).ptr - number));
    }
    *text += '\n';
  }

  const uint64_t seed_;
  int64_t block_ = -1;
  int64_t drawn_ = 0;
  std::optional<DataSet> digits_;  // the first drawn_ rows of the block
};

// Records of a table with commas and a header.
class RecordTable : public SynthTable {
 public:
  // The first `numbers` columns are whole numbers.
  RecordTable(std::unique_ptr<SynthTable> table, size_t numbers)
      : table_(std::move(table)), numbers_(numbers) {
    const std::string header = table_->Header();
    ForEachField(header, [&](std::string_view name) { names_.emplace_back(name); });
  }

  std::string Header() const override { return ""; }
  std::string Truth() const override { return table_->Truth(); }
  void KeepTruth() override { table_->KeepTruth(); }

  void Append(int64_t begin, int64_t end, std::string* out) override {
    rows_.clear();
    table_->Append(begin, end, &rows_);
    size_t column = 0;
    ForEachField(rows_, [&](std::string_view text) {
      AddFeature(column, text);
      if (++column < names_.size()) return;
      AppendTfrecord(example_.Take(), out);
      column = 0;
    });
  }

 private:
  template <typename OnField>
  static void ForEachField(std::string_view text, OnField&& on_field) {
    while (!text.empty()) {
      const size_t end = text.find_first_of(",\n");
      on_field(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
  }

  void AddFeature(size_t column, std::string_view text) {
    if (text.empty()) return;
    int64_t number = 0;
    if (column >= numbers_) return example_.AddTexts(names_[column], {text});
    std::from_chars(text.data(), text.data() + text.size(), number);
    example_.AddInts(names_[column], {number});
  }

  const std::unique_ptr<SynthTable> table_;
  const size_t numbers_;
  std::vector<std::string> names_;
  std::string rows_;
  ExampleWriter example_;
};

}  // namespace

std::unique_ptr<SynthTable> NewCriteoRecords(uint64_t seed) {
  return std::make_unique<RecordTable>(NewCriteoTable(seed, true), 1 + kCriteoNumbers);
}

std::unique_ptr<SynthTable> NewLinearTable(uint64_t seed, int64_t features) {
  return std::make_unique<LinearTable>(seed, features);
}

std::unique_ptr<SynthTable> NewDigitsTable(uint64_t seed) { return std::make_unique<DigitsTable>(seed); }

}  // namespace dtrain
