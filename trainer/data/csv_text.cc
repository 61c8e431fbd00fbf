#include "trainer/data/csv_text.h"

#include <fmt/core.h>

#include "trainer/config/user_text.h"

namespace dtrain {

void CheckName(const std::string& path, const CsvField& field) {
  if (IsUtf8(field.text)) return;
  throw CsvError(
      path, field.place,
      fmt::format("the name {} is not UTF-8; names of columns and classes must be. Save the file as "
                  "CSV UTF-8, or convert it: iconv -f latin1 -t utf-8 a.csv > b.csv.",
                  Shown(std::string(field.text))));
}

std::vector<std::string> HeaderNames(const CsvReader& reader) {
  std::vector<std::string> names;
  for (const CsvField& field : reader.fields()) {
    CheckName(reader.path(), field);
    names.emplace_back(field.text);
  }
  return names;
}

}  // namespace dtrain
