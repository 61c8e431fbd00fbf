#include "trainer/model/layout.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "trainer/config/model_config.h"

namespace dtrain {
namespace {

constexpr int kUnplaced = -1;

// One entry of placement.pin, which the config has validated.
struct Pin {
  explicit Pin(const std::string& entry)
      : text(entry), name(entry.substr(0, entry.rfind('='))), ps(std::stoi(entry.substr(name.size() + 1))) {}
  bool Fits(const std::string& variable) const {
    if (name.back() != '*') return variable == name;
    return variable.compare(0, name.size() - 1, name, 0, name.size() - 1) == 0;
  }
  std::string text;
  std::string name;
  int ps = 0;
};

std::string NamesOf(const std::vector<Variable>& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Pin> CheckedPins(const std::vector<Variable>& variables, int ps_count,
                             const std::vector<std::string>& entries) {
  std::vector<Pin> pins;
  for (const std::string& entry : entries) {
    const Pin& pin = pins.emplace_back(entry);
    if (pin.ps >= ps_count) {
      throw UserError("placement.pin: {}; there is no ps {}: the cluster has {} ps. Name one of 0 to {}.",
                      pin.text, pin.ps, ps_count, ps_count - 1);
    }
    const auto fits = [&](const Variable& variable) { return pin.Fits(variable.name); };
    if (std::none_of(variables.begin(), variables.end(), fits)) {
      throw UserError("placement.pin: {}; fits no variable of the model. It has {}.", pin.text,
                      NamesOf(variables));
    }
  }
  return pins;
}

// Returns the ps of each variable under policy pin, in the order of the variables.
std::vector<int> PinnedOwners(const std::vector<Variable>& variables, int ps_count,
                              const std::vector<std::string>& entries) {
  const std::vector<Pin> pins = CheckedPins(variables, ps_count, entries);
  std::vector<int> owners(variables.size(), kUnplaced);
  std::vector<int64_t> held(static_cast<size_t>(ps_count));
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto pin =
        std::find_if(pins.begin(), pins.end(), [&](const Pin& each) { return each.Fits(variables[i].name); });
    if (pin == pins.end()) continue;
    owners[i] = pin->ps;
    held[static_cast<size_t>(pin->ps)] += variables[i].size();
  }
  std::vector<size_t> by_size(variables.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return variables[a].size() > variables[b].size(); });
  for (const size_t i : by_size) {
    if (owners[i] != kUnplaced) continue;
    const auto emptiest = std::min_element(held.begin(), held.end());
    owners[i] = static_cast<int>(emptiest - held.begin());
    *emptiest += variables[i].size();
  }
  return owners;
}

int64_t RoundedUp(int64_t elements, int64_t group) { return (elements + group - 1) / group * group; }

// Returns the boundary nearest to element `target`: a row that begins at a multiple of `group`, or an end of
// the flat vector.
int64_t NearestRow(const Layout& layout, int64_t target, int64_t group) {
  for (const Variable& variable : layout.variables) {
    const int64_t end = RoundedUp(variable.offset + variable.size(), group);
    if (target >= end) continue;
    const int64_t apart = std::lcm(variable.cols, group);
    return std::min(end, variable.offset + (target - variable.offset + apart / 2) / apart * apart);
  }
  return layout.size;
}

void SetOffsets(int64_t group, Layout* layout) {
  for (Variable& variable : layout->variables) {
    variable.offset = layout->size;
    layout->size = RoundedUp(layout->size + variable.size(), group);
  }
}

void CutByBytes(int ps_count, int64_t group, Layout* layout) {
  SetOffsets(group, layout);
  int64_t begin = 0;
  for (int ps = 0; ps < ps_count; ++ps) {
    const bool last = ps + 1 == ps_count;
    const int64_t target = layout->size / ps_count * (ps + 1) + layout->size % ps_count * (ps + 1) / ps_count;
    const int64_t end = last ? layout->size : std::max(begin, NearestRow(*layout, target, group));
    layout->ps.push_back({begin, end});
    begin = end;
  }
}

// Places variable i on ps owners[i]; the variables of a ps keep their order.
void PlaceWhole(const std::vector<int>& owners, int ps_count, int64_t group, Layout* layout) {
  std::vector<Variable> given;
  given.swap(layout->variables);
  for (int ps = 0; ps < ps_count; ++ps) {
    Range range{layout->size, layout->size};
    for (size_t i = 0; i < given.size(); ++i) {
      if (owners[i] != ps) continue;
      Variable variable = given[i];
      variable.offset = range.end;
      range.end = RoundedUp(range.end + variable.size(), group);
      layout->variables.push_back(std::move(variable));
    }
    layout->size = range.end;
    layout->ps.push_back(range);
  }
}

std::vector<int> RoundRobin(size_t variables, int ps_count) {
  std::vector<int> owners(variables);
  for (size_t i = 0; i < variables; ++i) owners[i] = static_cast<int>(i % static_cast<size_t>(ps_count));
  return owners;
}

}  // namespace

Layout PlaceVariables(std::vector<Variable> variables, int ps_count, const PlacementConfig& placement,
                      int64_t group) {
  DT_CHECK(ps_count >= 1, ps_count);
  Layout layout;
  layout.variables = std::move(variables);
  switch (placement.policy) {
    case PlacementPolicy::kBytes:
      CutByBytes(ps_count, group, &layout);
      break;
    case PlacementPolicy::kRoundRobin:
      PlaceWhole(RoundRobin(layout.variables.size(), ps_count), ps_count, group, &layout);
      break;
    case PlacementPolicy::kPin:
      PlaceWhole(PinnedOwners(layout.variables, ps_count, placement.pin), ps_count, group, &layout);
      break;
  }
  return layout;
}

int64_t Layout::parameters() const {
  int64_t sum = 0;
  for (const Variable& variable : variables) sum += variable.size();
  return sum;
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

namespace {

// Every task knows the size of batches, but not all know how many features a row has: it counts as this many.
constexpr int64_t kFeaturesOfRow = 64;
// A message of about so many bytes is worth a block more, up to so many blocks.
constexpr int64_t kRowsBytes = 512 << 10;
constexpr int64_t kMaxBlocks = 16;

int64_t TableBlocks(int64_t width, int ps_count, int64_t batch_rows) {
  const int64_t row_bytes = (width + 1) * static_cast<int64_t>(sizeof(float));  // with its key
  const int64_t bytes = batch_rows * kFeaturesOfRow * row_bytes / ps_count;
  return std::clamp<int64_t>(bytes / kRowsBytes, 1, kMaxBlocks);
}

}  // namespace

Layout TableLayoutOf(const ModelConfig& config, int ps_count, int64_t batch_rows) {
  DT_CHECK(config.inputs.has_value() && config.outputs.has_value());
  const int64_t factors = config.kind == ModelKind::kFm         ? config.factors
                          : config.kind == ModelKind::kWideDeep ? config.embedding
                                                                : 0;
  const int64_t width = *config.outputs + factors;
  if (width > TableLayout::kMaxWidth) {
    throw UserError(
        "model.outputs = {}; must be at most {} where weights are rows of a table. Try model.table: none.",
        *config.outputs, TableLayout::kMaxWidth - factors);
  }
  Layout layout;
  layout.ps.resize(static_cast<size_t>(ps_count));
  const int64_t features = config.table == TableKind::kHash ? TableLayout::kHashed : TableFeatures(config);
  layout.table.emplace(features, width, ps_count, factors, TableBlocks(width, ps_count, batch_rows));
  return layout;
}

Layout JointLayout(Layout tensors, const Layout& rows, const ModelConfig& config) {
  tensors.table = rows.table;
  tensors.form.flat = tensors.size;
  tensors.form.numbers = NumbersOf(config);
  tensors.form.column_bits = config.combine == Combine::kJoin ? config.column_bits : 0;
  return tensors;
}

void AddTableRows(gpu::Span<const std::byte> rows, ModelPart* part) {
  part->crc = Crc32cExtend(part->crc, rows.data, static_cast<size_t>(rows.size));
  part->bytes += rows.size;
}

std::string ModelChecksum(std::vector<ModelPart> parts) {
  std::sort(parts.begin(), parts.end(), [](const ModelPart& a, const ModelPart& b) {
    if (a.name != b.name) return a.name < b.name;
    return static_cast<uint64_t>(a.first_row) < static_cast<uint64_t>(b.first_row);  // of a hash table
  });
  uint32_t crc = 0;
  for (const ModelPart& part : parts) crc = Crc32cCombine(crc, part.crc, static_cast<uint64_t>(part.bytes));
  return fmt::format("{:08x}", crc);
}

}  // namespace dtrain
