// CSV files: every record lies in the file, and every field is a number, a name or an error. A lenient reader
// has the same records where nothing is wrong, and reads the others to their end. What comes in pieces, as
// through a pipe, has the same records and faults as the whole.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

// Pieces: a text that comes so many bytes at a time.
class Pieces : public PipeSource {
 public:
  Pieces(std::string text, size_t piece) : text_(std::move(text)), piece_(piece) {}
  int64_t Read(char* out, int64_t size) override {
    const size_t count = text_.copy(out, std::min(piece_, static_cast<size_t>(size)), at_);
    at_ += count;
    return static_cast<int64_t>(count);
  }

 private:
  const std::string text_;
  const size_t piece_;
  size_t at_ = 0;
};

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

// Records, or what is wrong and where.
struct Found {
  Records records;
  std::string fault;
};

Found ReadFrom(std::unique_ptr<InputBytes> file) {
  CsvDialect commas = Trimmed();  // a choice of the delimiter depends on how much has come
  commas.delimiter = Delimiter::kComma;
  Found found;
  try {
    CsvReader reader(std::move(file), commas);
    while (reader.Next()) found.records.push_back(TextsOf(reader.fields()));
  } catch (const UserError& error) {
    found.fault = error.what();
  }
  return found;
}

// A byte of the text says in what pieces, and mostly that it is not read so: what a pipe needs takes longer
// than all else.
void ReadInPieces(const std::string& path, const std::string& text) {
  const size_t piece = text.empty() ? 0 : static_cast<uint8_t>(text[text.size() / 2]) % 64;
  if (piece == 0 || piece > 16 || InputBytes(path, "data.train.path").compressed()) return;
  if (!NoTextBecause(text, Packing::kNone, path).empty()) return;  // a pipe is not looked at so far
  const Found whole = ReadFrom(std::make_unique<InputBytes>(path, "data.train.path"));
  const Found pieces = ReadFrom(std::make_unique<InputBytes>(std::make_unique<Pieces>(text, piece), path));
  Require(pieces.records == whole.records, "a text has the same records in pieces");
  Require(pieces.fault == whole.fault, "a text has the same faults in pieces");
}

// `strict`: unset: something is wrong.
void ReadLeniently(const std::string& path, const std::optional<Records>& strict) {
  CsvReader reader(std::make_unique<InputBytes>(path, "data.train.path"), CsvReader::Lenient());
  Records peeked, records;
  int64_t faults = 0;
  reader.Begin(Trimmed());
  for (const CsvRecord& record : reader.Peek(reader.delimiter(), Quotes::kDouble, 10))
    peeked.push_back(TextsOf(record.fields));
  while (reader.Next()) {
    faults += reader.record().quote_faults;
    records.push_back(TextsOf(reader.fields()));
  }
  Require(peeked.size() <= records.size() && std::equal(peeked.begin(), peeked.end(), records.begin()),
          "what is looked at is read");
  if (!strict) return;
  Require(records == *strict, "a lenient reader has the records of a strict one");
  Require(faults == 0, "a lenient reader finds no faults where there are none");
}

int FuzzOne(const uint8_t* data, size_t size) {
  const std::string text = Input(data, size).Rest();
  const MemoryFile file(text);
  ReadInPieces(file.path(), text);
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
