#include <glob.h>

#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "trainer/rows/csv_rows.h"
#include "trainer/rows/idx_rows.h"
#include "trainer/rows/json_rows.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

namespace {

// Standard input cannot be read again: there a mark stays, and only CSV may have one.
std::unique_ptr<InputBytes> OpenBehindMark(const std::string& path, const std::string& key) {
  auto file = std::make_unique<InputBytes>(path, key);
  constexpr char kMark[] = "\xef\xbb\xbf";
  char begin[sizeof kMark] = {};
  if (path == "-" || file->Peek() != 0xef) return file;
  file->Read(begin, sizeof kMark - 1);
  return std::strcmp(begin, kMark) == 0 ? std::move(file) : std::make_unique<InputBytes>(path, key);
}

}  // namespace

std::unique_ptr<RowReader> OpenRows(const std::string& path, const RowSpec& spec,
                                    const std::string& idx_labels) {
  std::unique_ptr<InputBytes> file = OpenBehindMark(path, spec.key);
  const int first = file->Peek();
  if (first == '\0') return std::make_unique<IdxRows>(std::move(file), spec, idx_labels, path == "-");
  if (first == '{' || first == '[') return std::make_unique<JsonRows>(std::move(file), spec);
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
