#include "trainer/rows/sparse_file.h"

#include <emmintrin.h>
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "trainer/config/user_text.h"
#include "trainer/rows/criteo_line.h"
#include "trainer/rows/vw_line.h"

namespace dtrain {

int64_t CountBlanks(std::string_view line) {
  constexpr size_t kBlock = sizeof(__m128i);
  constexpr size_t kMaxSums = 255;  // that a byte can count
  const __m128i blanks = _mm_set1_epi8(' '), tabs = _mm_set1_epi8('\t'), zeros = _mm_setzero_si128();
  const auto sum = [&](__m128i bytes) {
    const __m128i halves = _mm_sad_epu8(bytes, zeros);
    return _mm_cvtsi128_si64(halves) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(halves, halves));
  };
  int64_t count = 0;
  size_t at = 0;
  while (at + kBlock <= line.size()) {
    __m128i sums = zeros;
    for (size_t i = 0; i < kMaxSums && at + kBlock <= line.size(); ++i, at += kBlock) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(line.data() + at));
      sums = _mm_sub_epi8(sums, _mm_or_si128(_mm_cmpeq_epi8(bytes, blanks), _mm_cmpeq_epi8(bytes, tabs)));
    }
    count += sum(sums);
  }
  for (; at < line.size(); ++at) count += line[at] == ' ' || line[at] == '\t' ? 1 : 0;
  return count;
}

std::string NumberFault(const std::string& title, std::string_view text, NumberText state) {
  return fmt::format("{} {}; {}. Correct it, or remove the row.", title,
                     text.empty() ? "is empty" : "= " + Shown(std::string(text)), NumberRule(state));
}

bool AreNumbers(std::string_view text, char between, size_t min_count) {
  for (size_t count = 1;; ++count) {
    const size_t end = std::min(text.find(between), text.size());
    if (!ExactNumber(text.substr(0, end))) return false;
    if (end == text.size()) return count >= min_count;
    text.remove_prefix(end + 1);
  }
}

std::unique_ptr<LineParser> MakeLineParser(const DataConfig& data, const LineRules& rules) {
  switch (data.train.format) {
    case DataFormat::kLibsvm:
      return MakeLibsvmParser(data, rules);
    case DataFormat::kVw:
      return MakeVwParser(data, rules);
    case DataFormat::kCriteo:
      return MakeCriteoParser(data, rules);
    default:
      break;
  }
  DT_CHECK(false, static_cast<int>(data.train.format));
  return nullptr;
}

namespace {

RowFault FaultOf(const LineFault& fault, const LineReader& reader) {
  return FaultAt(reader.path(), {reader.number(), static_cast<int64_t>(fault.at) + 1}, fault.rule);
}

// A feature that is 0 is as one that is not there: its weight is not asked for.
void DropZeros(SparseLine* row) {
  if (std::find(row->values.begin(), row->values.end(), 0.0f) == row->values.end()) return;
  size_t kept = 0;
  for (size_t i = 0; i < row->ids.size(); ++i) {
    if (row->values[i] == 0) continue;
    row->ids[kept] = row->ids[i];
    row->values[kept++] = row->values[i];
  }
  row->ids.resize(kept);
  row->values.resize(kept);
}

LineRules RulesOf(const RowContext& context, SkippedRows* skipped) {
  LineRules rules;
  if (context.inputs != 0) rules.inputs = context.inputs;
  rules.labels = context.labels;
  if (context.labels) rules.unlabelled = &skipped->unlabelled;
  if (context.spec == nullptr) return rules;
  rules.beyond = &skipped->beyond;
  rules.end_of_labels = context.spec->end_of_labels;
  rules.names = context.spec->names;
  return rules;
}

}  // namespace

SparseFile::SparseFile(const DataConfig& data, const RowContext& context, std::unique_ptr<InputBytes> file,
                       SkippedRows* skipped)
    : LineFile(data, std::move(file), skipped),
      inputs_(context.inputs),
      weighted_(HasRowWeights(data) && context.labels),
      parser_(MakeLineParser(data, RulesOf(context, skipped))) {}

CsvField SparseFile::label() const {
  const int64_t at = line_.label.empty() ? 0 : line_.label.data() - reader().line().data();
  return {line_.label, {reader().number(), at + 1}, false};
}

int64_t SparseFile::FindField(const std::string& name, const char* key) const {
  const bool tags = data().train.format == DataFormat::kVw;
  if (name == "label") return 0;
  if (name == "tag" && tags) return 1;
  throw UserError("{} {}: a row of {} has no columns to keep. Try {}.", key, name, path(),
                  tags ? "tag, or label" : "label");
}

std::vector<std::string> SparseFile::NumberNames() const {
  std::vector<std::string> names;
  for (int64_t i = 1; data().train.format == DataFormat::kCriteo && i <= kCriteoNumbers; ++i) {
    names.push_back(fmt::format("I{}", i));
  }
  return names;
}

std::string SparseFile::Id() const {
  return line_.tag.empty() ? std::string() : Json(std::string(line_.tag)).dump();
}

bool SparseFile::NextText(RowText* row) {
  do {
    if (!reader().Next()) return false;
  } while (!parser_->HasRow(reader().line()));
  *row = {reader().text(), kSparseFeatureBytes * parser_->MaxFeatures(reader().line())};
  return true;
}

RowFile::Read SparseFile::ReadRow(ParsedRows* rows, RowLabels* labels) {
  std::optional<LineFault> fault;
  do {
    if (!reader().Next()) return Read::kEnd;
  } while (!parser_->Parse(reader().line(), &line_, &fault) && !fault);
  if (fault) throw FaultOf(*fault, reader());
  if (labels != nullptr) labels->Add(label());
  if (inputs_ != 0) DropZeros(&line_);
  rows->sparse.Add(line_.ids.data(), line_.values.data(), line_.ids.size());
  if (weighted_) rows->weights.push_back(static_cast<float>(line_.weight));
  if (!data().offset.empty()) rows->row_offsets.push_back(line_.offset);
  std::move(line_.names.begin(), line_.names.end(), std::back_inserter(rows->names));
  return Read::kRow;
}

}  // namespace dtrain
