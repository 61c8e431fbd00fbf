// A first look at a table: any file has a profile or is no table, and what the profile counts is in the file.
#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/survey/table_profile.h"

namespace dtrain::fuzz {
namespace {

void Look(const std::string& path, size_t size) {
  const TableProfile table = ProfileTable(path);
  Require(!table.columns.empty(), "a table has a column");
  for (const ColumnProfile& column : table.columns) {
    Require(column.missing + column.known == table.rows, "a value of each row is missing or known");
    Require(column.distinct <= column.known, "no more values differ than there are");
    Require(column.not_a_number.first.line <= static_cast<int64_t>(size), "a place is in the file");
  }
}

int FuzzOne(const uint8_t* data, size_t size) {
  const MemoryFile file(Input(data, size).Rest());
  const bool gzip = size > 1 && data[0] == 0x1f;  // its content may be longer
  try {
    Look(file.path(), gzip ? SIZE_MAX / 2 : size);
  } catch (const UserError&) {
  }
  return 0;
}

const AddTarget added("table", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
