#include "trainer/rows/row_file.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"

namespace dtrain {
namespace {

constexpr int64_t SkippedRows::*kCounts[] = {&SkippedRows::bad, &SkippedRows::with_gaps, &SkippedRows::unseen,
                                             &SkippedRows::unlabelled, &SkippedRows::beyond};

}  // namespace

const std::pair<const std::string, int64_t>& UnseenTexts::MostFrequent() const {
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  return *std::max_element(texts.begin(), texts.end(), fewer);
}

void SkippedRows::AddUnseen(const std::string& column, std::string_view text) {
  ++unseen;
  UnseenTexts& of_column = unseen_in[column];
  ++of_column.rows;
  if (const auto found = of_column.texts.find(text); found != of_column.texts.end()) {
    ++found->second;
  } else if (of_column.texts.size() < kMaxTexts) {
    of_column.texts.emplace(text, 1);
  }
}

void SkippedRows::Add(const SkippedRows& more) {
  for (const auto count : kCounts) this->*count += more.*count;
  for (const std::string& fault : more.faults) {
    if (faults.size() < kToldFaults) faults.push_back(fault);
  }
  for (const std::string& header : more.headers) {
    if (headers.size() < kToldFaults) headers.push_back(header);
  }
  for (const auto& [column, of_column] : more.unseen_in) {
    UnseenTexts& all = unseen_in[column];
    all.rows += of_column.rows;
    for (const auto& [text, rows] : of_column.texts) all.texts[text] += rows;
  }
  for (const std::string& name : more.unused) AddUnused(name);
  notes.insert(more.notes.begin(), more.notes.end());
}

SkippedRows SkippedRows::Since(const SkippedRows& before) const {
  SkippedRows since;
  for (const auto count : kCounts) since.*count = this->*count - before.*count;
  since.faults.assign(faults.begin() + static_cast<std::ptrdiff_t>(before.faults.size()), faults.end());
  since.headers.assign(headers.begin() + static_cast<std::ptrdiff_t>(before.headers.size()), headers.end());
  since.unseen_in = unseen_in;
  for (const auto& [column, of_column] : before.unseen_in) {
    UnseenTexts& left = since.unseen_in[column];
    left.rows -= of_column.rows;
    for (const auto& [text, rows] : of_column.texts) left.texts[text] -= rows;
    if (left.rows == 0) since.unseen_in.erase(column);
  }
  return since;
}

const CsvColumns& RowFile::columns() const {
  static const CsvColumns kNone;
  return kNone;
}

bool RowFile::NextText(RowText* /*row*/) {
  DT_CHECK(false, path());
  return false;
}

bool RowFile::Next(ParsedRows* rows, RowLabels* labels) {
  const size_t values = rows->features.size();
  const RowLabels::Mark mark = labels == nullptr ? RowLabels::Mark() : labels->mark();
  while (true) {
    try {
      const Read read = ReadRow(rows, labels);
      if (read == Read::kRow) return true;
      if (read == Read::kEnd) return false;
      ++skipped_.with_gaps;
    } catch (const RowFault& fault) {
      Note(fault);
    }
    rows->features.resize(values);
    if (labels != nullptr) labels->GoBack(mark);
  }
}

void RowFile::Note(const RowFault& fault) {
  if (data_.bad_rows == BadRows::kStop) throw fault;
  if (++skipped_.bad > data_.bad_rows_limit) {
    throw UserError("{} It is bad row {}, and data.bad_rows_limit = {}.", fault.what(), skipped_.bad,
                    data_.bad_rows_limit);
  }
  if (skipped_.faults.size() < SkippedRows::kToldFaults) skipped_.faults.emplace_back(fault.what());
  SkipFault();
}

}  // namespace dtrain
