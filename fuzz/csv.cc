// CSV files: every record lies in the file, and every field is a number, a name or an error. A lenient reader
// has the same records where nothing is wrong, and reads the others to their end.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/input/csv_reader.h"

namespace dtrain::fuzz {
namespace {

CsvDialect Trimmed() {
  CsvDialect dialect;
  dialect.trim = true;
  return dialect;
}

using Records = std::vector<std::vector<std::string>>;

std::vector<std::string> TextsOf(const std::vector<CsvField>& fields) {
  std::vector<std::string> texts;
  for (const CsvField& field : fields) texts.emplace_back(field.text);
  return texts;
}

Records ReadAll(const std::string& path) {
  CsvReader reader(path, "data.train.path", Trimmed());
  Records records;
  while (reader.Next()) {
    records.push_back(TextsOf(reader.fields()));
    Require(!reader.fields().empty(), "a record has a field");
    for (const CsvField& field : reader.fields()) {
      float number = 0;
      ParseNumber(field.text, &number);
      FieldError(path, "a column", field, "a rule");
      CheckName(path, field);
    }
  }
  Require(reader.mark().byte <= reader.content_bytes() + 1, "records lie in the file");
  return records;
}

// `strict`: unset: something is wrong.
void ReadLeniently(const std::string& path, const std::optional<Records>& strict) {
  CsvReader reader(std::make_unique<InputBytes>(path, "data.train.path"), CsvReader::Lenient());
  Records peeked, records;
  int64_t faults = 0;
  reader.Begin(Trimmed());
  for (const CsvRecord& record : reader.Peek(reader.delimiter(), 10))
    peeked.push_back(TextsOf(record.fields));
  while (reader.Next()) {
    faults += reader.record().quote_faults;
    records.push_back(TextsOf(reader.fields()));
  }
  Require(peeked.size() <= records.size() && std::equal(peeked.begin(), peeked.end(), records.begin()),
          "what is looked at is read");
  if (!strict) return;
  Require(records == *strict, "a lenient reader has the records of a strict one");
  Require(faults + reader.empty_lines() == 0, "a lenient reader finds no faults where there are none");
}

int FuzzOne(const uint8_t* data, size_t size) {
  const MemoryFile file(Input(data, size).Rest());
  std::optional<Records> strict;
  try {
    strict = ReadAll(file.path());
  } catch (const UserError&) {
  }
  try {
    ReadLeniently(file.path(), strict);
  } catch (const UserError&) {
    Require(!strict, "a lenient reader refuses no more than a strict one");
  }
  return 0;
}

const AddTarget added("csv", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
