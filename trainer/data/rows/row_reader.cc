#include "trainer/data/rows/row_reader.h"

#include <glob.h>

#include <array>
#include <filesystem>
#include <numeric>
#include <string_view>

#include "base/error.h"
#include "trainer/data/rows/row_formats.h"

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

void RowBlock::Clear() {
  rows = 0;
  floats.clear();
  bytes.clear();
  labels.clear();
  targets.clear();
  ids.clear();
}

void RowBlock::DropUnfinished() {
  const auto values = static_cast<size_t>(rows * inputs);
  if (floats.size() > values) floats.resize(values);
  if (bytes.size() > values) bytes.resize(values);
}

Batch RowBlock::AsBatch() {
  Batch batch;
  batch.rows = rows;
  batch.columns = inputs;
  batch.labels = labels.empty() ? nullptr : labels.data();
  batch.targets = targets.empty() ? nullptr : targets.data();
  if (bytes.empty()) {
    batch.inputs = floats.data();
    return batch;
  }
  if (numbers_.size() < static_cast<size_t>(rows)) {
    numbers_.resize(static_cast<size_t>(rows));
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }
  batch.bytes = {{bytes.data(), rows, inputs}, {numbers_.data(), rows}};
  return batch;
}

std::unique_ptr<RowReader> OpenRows(const std::string& path, const RowSpec& spec,
                                    const std::string& idx_labels) {
  auto file = std::make_unique<InputBytes>(path, spec.key);
  std::array<char, kByteOrderMark.size()> mark{};
  if (file->GoesOnWith(kByteOrderMark)) file->Read(mark.data(), kByteOrderMark.size());
  switch (FormatOf(file.get(), spec)) {
    case RowFormat::kIdx:
      return OpenIdxRows(std::move(file), spec, idx_labels, path == "-");
    case RowFormat::kJsonLines:
      return OpenJsonRows(std::move(file), spec);
    case RowFormat::kCsv:
      break;
  }
  return OpenCsvRows(std::move(file), spec);
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
