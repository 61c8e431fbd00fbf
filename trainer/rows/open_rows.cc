#include <glob.h>

#include <array>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "trainer/rows/csv_rows.h"
#include "trainer/rows/idx_rows.h"
#include "trainer/rows/json_rows.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Whether a header begins behind so many blanks, or a row of JSON: both may with a bracket.
bool BeginsWithColumn(InputBytes* file, size_t blanks, const RowSpec& spec) {
  std::vector<std::string> names = spec.form.features;
  names.push_back(spec.label);
  for (const std::string& name : names) {
    if (name.empty() || !file->GoesOnWith(name, blanks)) continue;
    for (const char* end : {",", "\n", "\r", " ", "\t"}) {
      if (file->GoesOnWith(name + end, blanks)) return true;
    }
  }
  return false;
}

// No CSV file begins so: quotes stand around whole fields.
void RefuseJson(InputBytes* file, const std::string& key) {
  if (!file->GoesOnWith("{\"")) return;
  throw UserError(
      "{}: is JSON lines ({}); rows with labels are read of CSV and IDX files only. Save it as CSV, or use "
      "dtrain predict.",
      file->path(), key);
}

RowFormat FormatOf(InputBytes* file, const RowSpec& spec) {
  if (spec.format == RowFormat::kCsv) RefuseJson(file, spec.key);
  if (spec.format) return *spec.format;
  if (file->GoesOnWith(std::string_view("\0", 1))) return RowFormat::kIdx;
  const size_t blanks = file->CountBlanks(" \t\r\n");
  const bool bracket = file->GoesOnWith("{", blanks) || file->GoesOnWith("[", blanks);
  const bool json = bracket && !BeginsWithColumn(file, blanks, spec);
  return json ? RowFormat::kJsonLines : RowFormat::kCsv;
}

}  // namespace

std::unique_ptr<RowReader> OpenRows(const std::string& path, const RowSpec& spec,
                                    const std::string& idx_labels) {
  auto file = std::make_unique<InputBytes>(path, spec.key);
  std::array<char, kByteOrderMark.size()> mark{};
  if (file->GoesOnWith(kByteOrderMark)) file->Read(mark.data(), kByteOrderMark.size());
  switch (FormatOf(file.get(), spec)) {
    case RowFormat::kIdx:
      return std::make_unique<IdxRows>(std::move(file), spec, idx_labels, path == "-");
    case RowFormat::kJsonLines:
      return std::make_unique<JsonRows>(std::move(file), spec);
    case RowFormat::kCsv:
      break;
  }
  return std::make_unique<CsvRows>(std::move(file), spec);
}

std::vector<std::string> FilesOf(const std::string& pattern, const std::string& key) {
  std::error_code ignored;  // then it is a pattern
  if (pattern.find_first_of("*?[") == std::string::npos || std::filesystem::exists(pattern, ignored)) {
    return {pattern};
  }
  glob_t found{};
  const int failed = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (failed == 0 ? found.gl_pathc : 0));
  globfree(&found);
  if (!files.empty()) return files;
  throw UserError("{}: no file fits this pattern. Is {} right?", pattern, key);
}

}  // namespace dtrain
