#include <glob.h>

#include "base/error.h"
#include "trainer/rows/csv_rows.h"
#include "trainer/rows/idx_rows.h"
#include "trainer/rows/json_rows.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

std::unique_ptr<RowReader> OpenRows(const std::string& path, const RowSpec& spec,
                                    const std::string& idx_labels) {
  auto file = std::make_unique<InputBytes>(path, spec.key);
  const int first = file->Peek();
  if (first == '\0') return std::make_unique<IdxRows>(std::move(file), spec, idx_labels);
  if (first == '{' || first == '[') return std::make_unique<JsonRows>(std::move(file), spec);
  return std::make_unique<CsvRows>(std::move(file), spec);
}

std::vector<std::string> FilesOf(const std::string& pattern, const std::string& key) {
  if (pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  glob_t found{};
  const int failed = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (failed == 0 ? found.gl_pathc : 0));
  globfree(&found);
  if (!files.empty()) return files;
  throw UserError("{}: no file fits this pattern. Is {} right?", pattern, key);
}

}  // namespace dtrain
