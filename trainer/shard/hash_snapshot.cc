#include "trainer/shard/hash_snapshot.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "trainer/table/row_pieces.h"

namespace dtrain {
namespace {

bool IsBefore(const HashRow& a, const HashRow& b) { return a.row < b.row; }

size_t BytesOf(const std::vector<HashRow>& rows, int64_t values) {
  const auto with_values =
      std::count_if(rows.begin(), rows.end(), [](const HashRow& row) { return row.values; });
  return HashPieceBytes(rows.size(), static_cast<size_t>(with_values), values);
}

}  // namespace

HashSnapshot::HashSnapshot(const HashStore& rows, const std::vector<Block>& blocks, int64_t width,
                           size_t max_kept_bytes)
    : rows_(rows),
      blocks_(blocks),
      width_(width),
      max_kept_bytes_(max_kept_bytes),
      initial_(static_cast<size_t>(rows.values())),
      copied_(rows.values()) {
  for (const Block& block : blocks) AddPieces(block);
  if (!rows_.has_bias()) return;
  // A piece of its own: it is what was kept of no other rows.
  const uint64_t row = rows_.rows().end - 1;
  pieces_.push_back({{row, row}, 0, blocks.back().base, 1, HashRowList(rows_.values())});
  pieces_.back().kept.Add(rows_.Bias());
}

// A piece has the rows of some segments. None of all rows has no rows; where a segment has none, some may
// have left it since the base.
void HashSnapshot::AddPieces(const Block& block) {
  size_t rows = 0, with_values = 0;
  rows_.VisitSegments([&](const HashSegment& segment) {
    if (segment.rows().begin < block.rows.begin || segment.rows().begin >= block.rows.end) return;
    if (segment.count() == 0 && !block.base) return;
    rows += segment.count();
    with_values += segment.value_rows();
    const bool is_first = pieces_.empty() || pieces_.back().rows.end <= block.rows.begin;
    if (is_first ||
        HashPieceBytes(rows, with_values, rows_.values(), block.base.has_value()) > kMaxRowPieceBytes) {
      rows = segment.count();
      with_values = segment.value_rows();
      pieces_.push_back({segment.rows(), block.step, block.base, 0, HashRowList(rows_.values())});
    }
    pieces_.back().count = rows;
    pieces_.back().rows.end = std::min(segment.rows().end, ~uint64_t{0} - 1);  // without the bias
  });
}

void HashSnapshot::Keep(const HashRow& row) {
  const auto behind =
      std::upper_bound(pieces_.begin(), pieces_.end(), row.row,
                       [](uint64_t its, const HashPiece& piece) { return its < piece.rows.begin; });
  if (behind - pieces_.begin() <= released_) return;
  HashPiece& piece = *(behind - 1);
  if (row.row >= piece.rows.end || row.step > piece.step) return;  // it came later
  kept_bytes_ -= piece.kept.bytes();
  const size_t values = piece.kept.Add(row);
  kept_bytes_ += piece.kept.bytes();
  if (kept_rows_) {
    (*kept_rows_)[row.row] = {static_cast<size_t>(behind - pieces_.begin() - 1), values,
                              row.values != nullptr};
    kept_bytes_ += kPlaceBytes;
  }
  cost_.max_bytes = std::max(cost_.max_bytes, kept_bytes_);
  if (kept_bytes_ <= max_kept_bytes_) return;
  cost_.given_up = true;
  ReleasePieces(piece_count());
}

// Whoever waits comes next: a reader that locks again at once would keep an update from the lock for many
// pieces.
std::unique_lock<std::mutex> HashSnapshot::LockInTurn() const {
  const std::lock_guard next(next_);
  return std::unique_lock(mutex_);
}

// Copies the rows of a piece as they were at the moment. False: it is released. A row that changes between
// two slices is kept, so all slices are of the one moment.
bool HashSnapshot::Find(int64_t number) const {
  constexpr uint64_t kSliceRows = 1 << 12;
  const HashPiece& piece = pieces_[static_cast<size_t>(number)];
  const uint64_t slices = piece.count / kSliceRows + 1, size = piece.rows.size() / slices + 1;
  copied_.Clear();
  left_.clear();
  bool is_in_order = true;
  RowRange slice{piece.rows.begin, piece.rows.begin};
  do {
    slice = {slice.end, std::min(piece.rows.end - slice.end, size) + slice.end};
    const std::unique_lock lock = LockInTurn();
    if (!Has(number)) return false;
    rows_.VisitRange(slice, [&](const HashRow& row) {
      if (row.step <= piece.step) copied_.Add(row);
    });
    piece.kept.VisitEach([&](const HashRow& row) {
      const bool is_bias = piece.rows.size() == 0;
      if (!is_bias && (row.row < slice.begin || row.row >= slice.end)) return;
      copied_.Add(row);
      is_in_order = false;
    });
    if (piece.base && slice.end == piece.rows.end) knows_left_ = rows_.LeftSinceBase(piece.rows, &left_);
  } while (slice.end < piece.rows.end);
  found_.clear();
  copied_.AppendTo(&found_);
  if (!is_in_order) std::sort(found_.begin(), found_.end(), IsBefore);
  return true;
}

// Takes from what Find() has found what has changed since the base. False: it takes more bytes than all of
// `found_`, or it is not known which rows have left.
bool HashSnapshot::FindChanges(const HashPiece& piece) const {
  if (!knows_left_) return false;
  changed_.clear();
  std::copy_if(found_.begin(), found_.end(), std::back_inserter(changed_),
               [&](const HashRow& row) { return row.step > *piece.base; });
  auto there = found_.begin();
  for (const uint64_t row : left_) {
    const HashRow gone{row, 0, HashRow::kLeft, nullptr};
    there = std::lower_bound(there, found_.end(), gone, IsBefore);
    if (there == found_.end() || there->row != row) changed_.push_back(gone);  // else it has come again
  }
  std::sort(changed_.begin(), changed_.end(), IsBefore);
  return BytesOf(changed_, rows_.values()) <= BytesOf(found_, rows_.values());
}

// Unset: the piece is released.
std::optional<size_t> HashSnapshot::Write(int64_t number, std::byte* bytes) const {
  if (number < 0 || number >= piece_count()) return std::nullopt;
  const std::lock_guard reading(reading_);
  if (!Find(number)) return std::nullopt;
  const HashPiece& piece = pieces_[static_cast<size_t>(number)];
  if (!piece.base) return WriteHashPiece(found_, width_, rows_.values(), bytes);
  const bool whole = !FindChanges(piece);
  const RowRange rows{piece.rows.begin, std::max(piece.rows.end, piece.rows.begin + 1)};  // that of the bias
  const HashCover cover{rows, whole};
  return WriteHashPiece(whole ? found_ : changed_, width_, rows_.values(), bytes, &cover);
}

std::optional<Snapshot::Held> HashSnapshot::Read(int64_t piece, float* scratch) const {
  auto* const bytes = reinterpret_cast<std::byte*>(scratch);
  const std::optional<size_t> size = Write(piece, bytes);
  if (!size) return std::nullopt;
  return Held{{bytes, *size}, std::nullopt};
}

std::optional<net::LentBytes> HashSnapshot::Lend(int64_t piece) const {
  const net::LentBuffer buffer(kMaxRowPieceBytes);
  if (piece >= piece_count()) return buffer.Lend(0, 0);
  const std::optional<size_t> size = Write(piece, reinterpret_cast<std::byte*>(buffer.floats()));
  if (!size) return std::nullopt;
  return buffer.Lend(0, *size);
}

// What a row was; null: it is as it was.
const float* HashSnapshot::AsItWas(uint64_t row, uint64_t step, float* initial) const {
  if (rows_.has_bias() && row + 1 == rows_.rows().end) return pieces_.back().kept.At(0);
  const auto kept = kept_rows_->find(row);
  if (kept == kept_rows_->end() && !rows_.IsNewer(row, step)) return nullptr;
  if (kept != kept_rows_->end() && kept->second.has_values) {
    return pieces_[kept->second.piece].kept.At(kept->second.values);
  }
  rows_.InitialRow(row, initial);
  return initial;
}

bool HashSnapshot::GoBack(KeySpan keys, float* weights) const {
  const std::lock_guard lock(mutex_);
  if (!kept_rows_ || released_ > 0) return false;
  if (keys.size == 0) return true;
  const auto block = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& each) {
    return each.rows.begin <= keys[0] && keys[0] < each.rows.end;
  });
  DT_CHECK(block != blocks_.end(), keys[0]);
  for (int64_t i = 0; i < keys.size; ++i, weights += width_) {
    const float* const row = AsItWas(keys[i], block->step, initial_.data());
    if (row != nullptr) std::copy_n(row, width_, weights);
  }
  return true;
}

void HashSnapshot::ReleaseBefore(int64_t piece) {
  const std::lock_guard lock(mutex_);
  ReleasePieces(std::min(piece, piece_count()));
}

// The lock is held.
void HashSnapshot::ReleasePieces(int64_t end) {
  for (; released_ < end; ++released_) {
    HashPiece& its = pieces_[static_cast<size_t>(released_)];
    kept_bytes_ -= std::min(kept_bytes_, its.kept.bytes());  // the bias was never counted
    its.kept = HashRowList(rows_.values());
  }
}

SnapshotCost HashSnapshot::Cost() const {
  const std::lock_guard lock(mutex_);
  return cost_;
}

}  // namespace dtrain
