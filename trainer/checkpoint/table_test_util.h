// Checkpoints of a table of width 1 for tests, full ones and deltas.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/checkpoint/parts_writer.h"
#include "trainer/table/row_pieces.h"

namespace dtrain::testing {

using TableRows = std::map<uint64_t, float>;

// SmallTable: the rows of a table in the course of a run, which saves them.
class SmallTable {
 public:
  static constexpr int64_t kFeatures = 300000;  // of several pieces
  static constexpr uint64_t kGroupRows = 64;

  explicit SmallTable(int ps = 2) : ps_(ps) {
    layout_.table.emplace(kFeatures, 1, ps);
    layout_.ps.resize(static_cast<size_t>(ps));
  }

  // Changes a row; to 0, its initial value, too.
  void Set(uint64_t row, float value) {
    rows_.erase(row);
    if (value != 0) rows_[row] = value;
    changed_.insert(row);
  }
  // Changes every row of `first`, `first` + `every`, ...
  void SetEach(uint64_t first, uint64_t every, float value) {
    for (uint64_t row = first; row < layout_.table->rows(); row += every) Set(row, value);
  }
  const TableRows& rows() const { return rows_; }
  uint64_t row_count() const { return layout_.table->rows(); }

  // Saves all rows, or those that have changed since the latest of all.
  std::string SaveAll(CheckpointDirectory* directory, int64_t step) {
    base_.reset();
    changed_.clear();
    StoredBase sealed;
    const std::string path = Save(directory, step, &sealed);
    base_ = sealed;
    return path;
  }
  std::string SaveDelta(CheckpointDirectory* directory, int64_t step) {
    return Save(directory, step, nullptr);
  }

 private:
  std::string Save(CheckpointDirectory* directory, int64_t step, StoredBase* sealed) const {
    const std::string temporary = directory->BeginSave(step);
    SmallCheckpoint of;
    of.layout = layout_;
    of.slots = {};
    of.step = step;
    std::vector<dtrain::WrittenPart> parts;
    for (int ps = 0; ps < ps_; ++ps) parts.push_back(WritePart(temporary, ps));
    Manifest manifest = ManifestOf(of, parts);
    manifest.base = base_;
    const StoredBase as_base = directory->Seal(temporary, manifest, "train: {steps: 1}\n");
    if (sealed != nullptr) *sealed = as_base;
    return directory->Publish(temporary);
  }

  dtrain::WrittenPart WritePart(const std::string& temporary, int ps) const {
    PartsWriter writer(layout_, ps, 0, temporary);
    const RowRange part = layout_.table->PartOf(ps);
    const RowPieces pieces(part, 1);
    std::vector<std::byte> bytes(kMaxRowPieceBytes);
    for (int64_t i = 0; i < pieces.count(); ++i) {
      const RowRange range = pieces.At(i);
      RowPieceWriter piece(1, 1, base_ ? kGroupRows : 0);
      std::set<uint64_t> groups;
      for (auto row = changed_.lower_bound(range.begin); row != changed_.lower_bound(range.end); ++row) {
        groups.insert(*row - (*row - part.begin) % kGroupRows);
      }
      if (base_) std::for_each(groups.begin(), groups.end(), [&](uint64_t group) { piece.Cover(group); });
      for (auto row = rows_.lower_bound(range.begin); row != rows_.lower_bound(range.end); ++row) {
        const uint64_t group = row->first - (row->first - part.begin) % kGroupRows;
        if (!base_ || groups.count(group) != 0) piece.Add(row->first, &row->second);
      }
      writer.Add(0, {bytes.data(), piece.Finish(range, bytes.data())});
    }
    return writer.Finish();
  }

  const int ps_;
  Layout layout_;
  TableRows rows_;              // those that are not as they were in the beginning
  std::set<uint64_t> changed_;  // since base_
  std::optional<StoredBase> base_;
};

// The rows of a checkpoint in [begin, end). Checks that they come in ascending order.
inline TableRows ReadTable(const std::string& path, uint64_t begin = 0, uint64_t end = ~uint64_t{0}) {
  TableRows rows;
  CheckpointReader(path).ReadRows({begin, end}, [&](uint64_t row, const float* value) {
    DT_CHECK(rows.empty() || rows.rbegin()->first < row, row);
    rows[row] = *value;
  });
  return rows;
}

}  // namespace dtrain::testing
