#include "trainer/model/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "trainer/model/pin.h"

namespace dtrain {
namespace {

// The row boundary nearest to element `target`; the flat vector's ends are boundaries too.
int64_t NearestRow(const std::vector<Variable>& variables, int64_t target) {
  for (const Variable& variable : variables) {
    if (target >= variable.offset + variable.size()) continue;
    const int64_t row = (target - variable.offset + variable.cols / 2) / variable.cols;
    return variable.offset + row * variable.cols;
  }
  return variables.empty() ? 0 : variables.back().offset + variables.back().size();
}

void SetOffsets(Layout* layout) {
  for (Variable& variable : layout->variables) {
    variable.offset = layout->size;
    layout->size += variable.size();
  }
}

void CutByBytes(int ps_count, Layout* layout) {
  SetOffsets(layout);
  int64_t begin = 0;
  for (int ps = 0; ps < ps_count; ++ps) {
    const bool last = ps + 1 == ps_count;
    const int64_t target = layout->size / ps_count * (ps + 1) + layout->size % ps_count * (ps + 1) / ps_count;
    const int64_t end = last ? layout->size : std::max(begin, NearestRow(layout->variables, target));
    layout->ps.push_back({begin, end});
    begin = end;
  }
}

// Variable i lies on ps owners[i]; the variables of a ps keep their order.
void PlaceWhole(const std::vector<int>& owners, int ps_count, Layout* layout) {
  std::vector<Variable> given;
  given.swap(layout->variables);
  for (int ps = 0; ps < ps_count; ++ps) {
    Range range{layout->size, layout->size};
    for (size_t i = 0; i < given.size(); ++i) {
      if (owners[i] != ps) continue;
      Variable variable = given[i];
      variable.offset = range.end;
      range.end += variable.size();
      layout->variables.push_back(std::move(variable));
    }
    layout->size = range.end;
    layout->ps.push_back(range);
  }
}

std::vector<int> InTurn(size_t variables, int ps_count) {
  std::vector<int> owners(variables);
  for (size_t i = 0; i < variables; ++i) owners[i] = static_cast<int>(i % static_cast<size_t>(ps_count));
  return owners;
}

}  // namespace

Layout PlaceVariables(std::vector<Variable> variables, int ps_count, const PlacementConfig& placement) {
  DT_CHECK(ps_count >= 1, ps_count);
  Layout layout;
  layout.variables = std::move(variables);
  switch (placement.policy) {
    case PlacementPolicy::kBytes:
      CutByBytes(ps_count, &layout);
      break;
    case PlacementPolicy::kRoundRobin:
      PlaceWhole(InTurn(layout.variables.size(), ps_count), ps_count, &layout);
      break;
    case PlacementPolicy::kPin:
      PlaceWhole(PinnedOwners(layout.variables, ps_count, placement.pin), ps_count, &layout);
      break;
  }
  return layout;
}

std::vector<Segment> Layout::SegmentsOf(int ps_index) const {
  const Range range = ps.at(static_cast<size_t>(ps_index));
  std::vector<Segment> segments;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& variable = variables[i];
    const int64_t begin = std::max(range.begin, variable.offset);
    const int64_t end = std::min(range.end, variable.offset + variable.size());
    if (begin >= end) continue;
    segments.push_back({static_cast<int>(i), (begin - variable.offset) / variable.cols,
                        (end - begin) / variable.cols, begin});
  }
  return segments;
}

std::string Layout::RowsText(const Segment& segment) const {
  return fmt::format("{} [{}:{})", variables[static_cast<size_t>(segment.variable)].name, segment.first_row,
                     segment.first_row + segment.rows);
}

const Variable& Layout::Find(const std::string& name) const {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const Variable& variable) { return variable.name == name; });
  DT_CHECK(found != variables.end(), name);
  return *found;
}

}  // namespace dtrain
