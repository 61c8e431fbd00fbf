// TFRecord: records lie in the file, have a field for each column, and what is wrong with one is an error.
// Where records end does not depend on what is in them.
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/tfrecord.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/rows/example_reader.h"

namespace dtrain::fuzz {
namespace {

std::unique_ptr<InputBytes> Open(const std::string& path) {
  auto file = std::make_unique<InputBytes>(path, "data.train.path");
  file->BeginsRecords(true);
  return file;
}

// Returns how many records there are, those at fault too, before the file ends or is damaged.
int64_t CountRecords(const std::string& path, const ExampleRules& rules, uint64_t taken) {
  int64_t count = -1;  // the names are none
  ExampleReader reader(Open(path), rules);
  size_t columns = 0;
  for (bool more = true; more;) {
    try {
      more = reader.Next();
      if (!more) break;
      if (count < 0) columns = reader.fields().size();
      Require(reader.fields().size() == columns, "a record has a field for each column");
      for (size_t i = 0; i < columns; ++i) {
        const bool is_taken = taken == 0 || count < 0 || ((taken >> i % 8) & 1) != 0;
        if (!is_taken) continue;
        const CsvField& field = reader.fields()[i];
        float number = 0;
        const NumberText state = ParseNumber(field, Decimal::kPoint, &number);
        Require(!field.is_number || (state == NumberText::kGood && std::isfinite(number)),
                "a number is finite");
        FieldError(path, "a column", field, "a rule");
      }
      if (count < 0 && taken != 0) {
        for (size_t i = 0; i < columns; ++i) {
          if (((taken >> i % 8) & 1) != 0) reader.Take(static_cast<int64_t>(i), i % 2 == 0);
        }
      }
    } catch (const RowFault&) {
      reader.SkipFault();
      if (count < 0) return 0;  // no record says what there is
    }
    ++count;
  }
  return count;
}

int64_t CountTexts(const std::string& path, const ExampleRules& rules) {
  int64_t count = 0;
  ExampleReader reader(Open(path), rules);
  reader.Next();
  for (std::string_view text; reader.NextText(&text); ++count) {
    Require(text.size() >= kTfrecordHead + kTfrecordTail, "a record has its frame");
  }
  return count;
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  ExampleRules rules;
  rules.all_known = input.Flag();
  rules.empty_is_gap = input.Flag();
  rules.waits = input.Flag();
  if (input.Flag()) rules.names = {"x[1]", "y", input.Text(8)};
  const uint8_t taken = input.Byte();
  std::string content;
  if (input.Flag()) {
    content = input.Rest();
  } else {
    while (!input.empty()) AppendTfrecord(input.Text(255), &content);
  }
  const MemoryFile file(content);
  int64_t records = -1;
  try {
    records = CountRecords(file.path(), rules, taken);
  } catch (const UserError&) {
  }
  try {
    const int64_t texts = CountTexts(file.path(), rules);
    Require(records <= texts, "a record has a text");
  } catch (const UserError&) {
    Require(records <= 0, "the text of a good file is read");
  }
  return 0;
}

const AddTarget added("tfrecord", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
