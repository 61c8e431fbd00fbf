// CSV files: every record lies in the file, and every field is a number, a name or an error.
#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/input/csv_reader.h"

namespace dtrain::fuzz {
namespace {

void ReadAll(const std::string& path) {
  CsvReader reader(path, "data.train.path");
  while (reader.Next()) {
    Require(!reader.fields().empty(), "a record has a field");
    for (const CsvField& field : reader.fields()) {
      float number = 0;
      ParseNumber(field.text, &number);
      TextInFile(field);
      CheckName(path, field);
    }
  }
  Require(reader.record_bytes() <= reader.content_bytes() + 1, "records lie in the file");
}

int FuzzOne(const uint8_t* data, size_t size) {
  const MemoryFile file(Input(data, size).Rest());
  try {
    ReadAll(file.path());
  } catch (const UserError&) {
  }
  return 0;
}

const AddTarget added("csv", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
