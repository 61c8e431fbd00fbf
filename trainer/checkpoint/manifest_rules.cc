#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/model/layout.h"

namespace dtrain {
namespace {

using Problem = std::optional<std::string>;

constexpr size_t kMaxName = 1024;
constexpr int64_t kMaxSide = int64_t{1} << 46;  // a tensor's size in bytes fits into an int64_t
constexpr size_t kMaxTableSlots = 8;
constexpr size_t kMaxPositions = 512 * 1024;  // they travel in a message's header
constexpr size_t kMaxPath = 4096;
constexpr int64_t kMaxConfig = int64_t{1} << 26;  // bytes

// Names appear on terminals and in logs.
bool IsName(const std::string& name) {
  const auto fits = [](unsigned char c) { return c >= 0x20 && c != 0x7f; };
  return !name.empty() && name.size() <= kMaxName && std::all_of(name.begin(), name.end(), fits);
}

bool IsPath(const std::string& path) {
  return path.size() <= kMaxPath &&
         std::none_of(path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Problem TensorProblem(const Manifest& manifest) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const StoredTensor& tensor = manifest.tensors[i];
    if (!IsName(tensor.name)) return fmt::format("tensor {} has a name that is none", i);
    if (!names.insert(tensor.name).second) return fmt::format("tensor {} is there twice", tensor.name);
    if (tensor.rows < 1 || tensor.cols < 1 || tensor.rows > kMaxSide / tensor.cols) {
      return fmt::format("tensor {} is {} x {}", tensor.name, tensor.rows, tensor.cols);
    }
  }
  return std::nullopt;
}

Problem SlotProblem(const std::vector<std::string>& slots) {
  std::set<std::string_view> names;
  for (const std::string& slot : slots) {
    if (!IsName(slot)) return "a slot has a name that is none";
    if (!names.insert(slot).second) return fmt::format("slot {} is there twice", slot);
  }
  return std::nullopt;
}

Problem TextProblem(const Manifest& manifest) {
  for (const std::string* text : {&manifest.version, &manifest.optimizer, &manifest.mode}) {
    if (!IsName(*text)) return "version, optimizer or mode is no name";
  }
  if (!manifest.origin.path.empty() && !IsPath(manifest.origin.path)) return "what it began with is no path";
  return SlotProblem(manifest.slots);
}

Problem TableProblem(const Manifest& manifest) {
  const StoredTable& table = *manifest.table;
  const bool fits = table.hashed() ? static_cast<int64_t>(manifest.shards.size()) <= TableLayout::kHashRanges
                                   : table.features >= 1 && table.features < TableLayout::kMaxFeatures;
  if (!fits || table.width < 1 || table.width > TableLayout::kMaxWidth ||
      manifest.slots.size() > kMaxTableSlots) {
    return fmt::format("a table of {} features, {} wide, with {} slots", table.features, table.width,
                       manifest.slots.size());
  }
  if (table.linear_slots) {
    if (Problem problem = SlotProblem(*table.linear_slots)) return problem;
    if (table.width < 2 || table.linear_slots->size() > kMaxTableSlots || !manifest.all_slots().differ()) {
      return fmt::format("a table {} wide, with {} slots of its linear part", table.width,
                         table.linear_slots->size());
    }
  }
  const StoredTensor& last = manifest.tensors.back();
  const bool same = last.name == kTableName && last.rows == table.tensor_rows() && last.cols == table.width;
  if (!same) return "another tensor than its table in the last place";
  return std::nullopt;
}

// A delta is of rows, and later than its base.
Problem BaseProblem(const Manifest& manifest) {
  const StoredBase& base = *manifest.base;
  if (!manifest.table) return "a base, and no table";
  if (base.sequence < 1 || base.sequence >= manifest.sequence || base.step < 0 || base.step > kMaxStep) {
    return fmt::format("a base of sequence {}, step {}", base.sequence, base.step);
  }
  return std::nullopt;
}

bool IsOfTable(const Manifest& manifest, const StoredPiece& piece) {
  return manifest.table && piece.tensor == manifest.table_tensor();
}

// A piece of a table begins in what is left of the rows of its shard, of another than a hash table where one
// of `pieces` does. Takes off the rows up to its first one.
Problem RowPieceProblem(const StoredPiece& piece, const std::optional<RowPieces>& pieces, RowRange* left) {
  const auto first = static_cast<uint64_t>(piece.first);
  if (first < left->begin || first >= left->end) {
    return fmt::format("begins at row {}; must be in [{}, {})", first, left->begin, left->end);
  }
  if (pieces && pieces->At(pieces->Of(first)).begin != first) {
    return fmt::format("begins at row {}, where none begins", first);
  }
  left->begin = first + 1;
  if (piece.slot != 0) return fmt::format("is of slot {}", piece.slot);
  constexpr auto kMaxValues = static_cast<int64_t>(kMaxRowPieceBytes / sizeof(float));
  if (piece.count < 1 || piece.count > kMaxValues) {
    return fmt::format("has {} elements; must be 1 to {}", piece.count, kMaxValues);
  }
  return std::nullopt;
}

// A piece lies within its tensor.
Problem PieceProblem(const Manifest& manifest, const StoredPiece& piece) {
  if (piece.tensor < 0 || piece.tensor >= static_cast<int64_t>(manifest.tensors.size())) {
    return fmt::format("is of tensor {} of {}", piece.tensor, manifest.tensors.size());
  }
  if (piece.slot < 0 || piece.slot > static_cast<int64_t>(manifest.slots.size())) {
    return fmt::format("is of slot {} of {}", piece.slot, manifest.slots.size());
  }
  if (piece.count < 1 || piece.count > kBlockValues) {
    return fmt::format("has {} elements; must be 1 to {}", piece.count, kBlockValues);
  }
  const StoredTensor& tensor = manifest.tensors[static_cast<size_t>(piece.tensor)];
  if (piece.first < 0 || piece.first > tensor.size() - piece.count) {
    return fmt::format("has elements {} to {} of the {} of {}", piece.first,
                       static_cast<uint64_t>(piece.first) + static_cast<uint64_t>(piece.count), tensor.size(),
                       tensor.name);
  }
  return std::nullopt;
}

Problem ShardProblem(const Manifest& manifest) {
  const auto count = static_cast<int64_t>(manifest.shards.size());
  for (int64_t i = 0; i < count; ++i) {
    const StoredShard& shard = manifest.shards[static_cast<size_t>(i)];
    const std::string name = ShardName(i, count);
    if (shard.file != name) return fmt::format("file {} has another name than {}", i, name);
    int64_t end = kShardAlignment;
    RowRange left;  // of the table
    std::optional<RowPieces> rows;
    if (manifest.table) left = manifest.RowsOf(static_cast<size_t>(i));
    if (manifest.table && !manifest.table->hashed()) rows = manifest.RowPiecesOf(static_cast<size_t>(i));
    bool in_table = false;
    for (size_t k = 0; k < shard.pieces.size(); ++k) {
      const StoredPiece& piece = shard.pieces[k];
      const bool of_table = IsOfTable(manifest, piece);
      Problem problem = of_table ? RowPieceProblem(piece, rows, &left) : PieceProblem(manifest, piece);
      if (!problem && in_table && !of_table) problem = "is behind one of the table";
      in_table = of_table;
      if (!problem && piece.offset != end) {
        problem = fmt::format("is at byte {}; must be {}", piece.offset, end);
      }
      if (problem) return fmt::format("piece {} of {} {}", k, name, *problem);
      end += Padded(shard.pieces[k].bytes());
    }
    if (shard.bytes != end) return fmt::format("{} has {} bytes; must be {}", name, shard.bytes, end);
  }
  return std::nullopt;
}

// Every element of every tensor but the table, in weights and slots, is in exactly one piece.
Problem CoverProblem(const Manifest& manifest) {
  std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>> parts;  // tensor, slot, first, end
  for (const StoredShard& shard : manifest.shards) {
    for (const StoredPiece& piece : shard.pieces) {
      if (IsOfTable(manifest, piece)) continue;
      parts.emplace_back(piece.tensor, piece.slot, piece.first, piece.first + piece.count);
    }
  }
  std::sort(parts.begin(), parts.end());
  size_t next = 0;
  const size_t tensors = manifest.tensors.size() - (manifest.table ? 1 : 0);
  for (size_t tensor = 0; tensor < tensors; ++tensor) {
    for (size_t slot = 0; slot <= manifest.slots.size(); ++slot) {
      const int64_t size = manifest.tensors[tensor].size();
      for (int64_t covered = 0; covered < size; ++next) {
        const std::tuple<int64_t, int64_t, int64_t> due(tensor, slot, covered);
        if (next == parts.size() ||
            std::tie(std::get<0>(parts[next]), std::get<1>(parts[next]), std::get<2>(parts[next])) != due) {
          return fmt::format("element {} of {}{} is in no piece, or in two", covered,
                             manifest.tensors[tensor].name, slot == 0 ? "" : ", " + manifest.slots[slot - 1]);
        }
        covered = std::get<3>(parts[next]);
      }
    }
  }
  if (next != parts.size()) return "an element is in two pieces";
  return std::nullopt;
}

}  // namespace

Problem ManifestProblem(const Manifest& manifest) {
  if (manifest.sequence < 1) return fmt::format("sequence {}; must be >= 1", manifest.sequence);
  if (manifest.step < 0 || manifest.step > kMaxStep) {
    return fmt::format("step {}; must be 0 to {}", manifest.step, kMaxStep);
  }
  if (manifest.origin.updates < 0 || manifest.origin.updates > kMaxStep) {
    return fmt::format("{} earlier updates; must be 0 to {}", manifest.origin.updates, kMaxStep);
  }
  if (manifest.positions.size() > kMaxPositions) {
    return fmt::format("positions of {} bytes; must be at most {}", manifest.positions.size(), kMaxPositions);
  }
  if (manifest.config_bytes < 0 || manifest.config_bytes > kMaxConfig) {
    return fmt::format("{} has {} bytes; must be at most {}", kConfigName, manifest.config_bytes, kMaxConfig);
  }
  if (manifest.tensors.empty()) return "there are no tensors";
  if (manifest.shards.empty()) return "there are no shard files";
  if (Problem problem = TextProblem(manifest)) return problem;
  if (Problem problem = TensorProblem(manifest)) return problem;
  if (manifest.table) {
    if (Problem problem = TableProblem(manifest)) return problem;
  }
  if (manifest.base) {
    if (Problem problem = BaseProblem(manifest)) return problem;
  }
  if (Problem problem = ShardProblem(manifest)) return problem;
  if (manifest.inputs) {
    if (Problem problem = FormProblem(*manifest.inputs)) return problem;
  }
  return CoverProblem(manifest);
}

}  // namespace dtrain
