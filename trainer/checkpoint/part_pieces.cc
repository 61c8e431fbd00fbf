#include "trainer/checkpoint/part_pieces.h"

#include <algorithm>

#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/table/hash_pieces.h"
#include "trainer/table/row_pieces.h"

namespace dtrain {
namespace {

void AddPiece(StoredPiece piece, StoredShard* shard) {
  piece.offset = shard->bytes;
  shard->bytes += Padded(piece.bytes());
  shard->pieces.push_back(piece);
}

// A size that is beyond the limit stays so.
int64_t ValuesIn(uint64_t bytes) {
  const auto size = static_cast<int64_t>(std::min<uint64_t>(bytes, 2 * kMaxRowPieceBytes));
  return size / static_cast<int64_t>(sizeof(float));
}

class RangePieces : public PartPieces {
 public:
  RangePieces(const Layout& layout, int ps, int64_t slots)
      : variables_(layout.variables),
        range_(layout.ps.at(static_cast<size_t>(ps))),
        slots_(slots),
        tensors_(PiecesOf(layout, ps, static_cast<int>(slots))) {}

  int64_t count() const override { return range_.size() == 0 ? 0 : RangePieceCount(range_, slots_); }
  bool Fits(int64_t number, size_t bytes) const override {
    return number < count() && bytes == BytesOf(number);
  }
  size_t numbers() const override { return tensors_.size(); }

  // What lies between variables is not written.
  void Write(int64_t number, net::TensorView piece, ShardWriter* file, WrittenPart* written) const override {
    VisitTensors(number, [&](const TensorPiece& tensor, size_t offset) {
      const size_t bytes = static_cast<size_t>(tensor.count) * sizeof(float);
      written->checksums.push_back(file->Add(piece.data + offset, bytes));
    });
  }
  bool AddTo(StoredShard* shard, WrittenNumbers* said) const override {
    if (said->part.checksums.size() - said->checksums < tensors_.size()) return false;
    for (const TensorPiece& tensor : tensors_) {
      AddPiece({tensor.variable, tensor.slot, tensor.first, tensor.count, 0,
                said->part.checksums[said->checksums++]},
               shard);
    }
    return true;
  }
  void Read(CheckpointReader* from, int64_t number, std::vector<std::byte>* piece) const override {
    piece->assign(BytesOf(number), std::byte{0});
    VisitTensors(number, [&](const TensorPiece& tensor, size_t offset) {
      from->Read(
          variables_[static_cast<size_t>(tensor.variable)].name,
          tensor.slot == 0 ? CheckpointReader::kWeights : from->slots()[static_cast<size_t>(tensor.slot) - 1],
          tensor.first, tensor.count, reinterpret_cast<float*>(piece->data() + offset));
    });
  }

 private:
  size_t BytesOf(int64_t number) const {
    return static_cast<size_t>(RangePieceAt(range_, slots_, number).elements.size()) * sizeof(float);
  }
  // Calls `visit(tensor, offset)` for the tensors in a piece.
  template <typename Visit>
  void VisitTensors(int64_t number, Visit&& visit) const {
    const auto [slot, elements] = RangePieceAt(range_, slots_, number);
    auto tensor = std::partition_point(tensors_.begin(), tensors_.end(),
                                       [block = number / (1 + slots_), slot = slot](const TensorPiece& each) {
                                         const int64_t of = each.begin / kBlockValues;
                                         return of < block || (of == block && each.slot < slot);
                                       });
    for (; tensor != tensors_.end() && tensor->slot == slot && tensor->begin < elements.end; ++tensor) {
      visit(*tensor, static_cast<size_t>(tensor->begin - elements.begin) * sizeof(float));
    }
  }

  const std::vector<Variable> variables_;
  const Range range_;
  const int64_t slots_;
  const std::vector<TensorPiece> tensors_;
};

// What the pieces of rows of both kinds do alike. `table`: the index of its tensor.
class PiecesOfRows : public PartPieces {
 public:
  PiecesOfRows(const Layout& layout, int ps, SlotCounts slots)
      : tensor_(static_cast<int64_t>(layout.variables.size())),
        rows_(layout.table->PartOf(ps)),
        width_(layout.table->width()),
        values_(slots.RowValues(width_)) {}

 protected:
  void Add(uint64_t first, WrittenNumbers* said, StoredShard* shard) const {
    const uint64_t size = said->part.sizes[said->sizes++];
    const uint64_t checksum = said->part.checksums[said->checksums++];
    if (size != 0) AddPiece({tensor_, 0, static_cast<int64_t>(first), ValuesIn(size), 0, checksum}, shard);
  }
  bool Has(const WrittenNumbers& said, size_t count) const {
    return said.part.checksums.size() - said.checksums >= count &&
           said.part.sizes.size() - said.sizes >= count;
  }
  static void AppendTo(net::TensorView piece, ShardWriter* file, WrittenPart* written) {
    written->sizes.push_back(piece.size);
    written->checksums.push_back(piece.size == 0 ? 0 : file->Add(piece.data, piece.size));
  }

  const int64_t tensor_;
  const RowRange rows_;
  const int64_t width_;
  const int64_t values_;  // of a row with its slots
};

class TablePieces : public PiecesOfRows {
 public:
  TablePieces(const Layout& layout, int ps, SlotCounts slots)
      : PiecesOfRows(layout, ps, slots), pieces_(rows_, values_) {}

  int64_t count() const override { return pieces_.count(); }
  bool Fits(int64_t number, size_t bytes) const override {
    return number < count() && bytes <= kMaxRowPieceBytes && bytes % sizeof(float) == 0;
  }
  size_t numbers() const override { return 2 * static_cast<size_t>(count()); }
  void Write(int64_t, net::TensorView piece, ShardWriter* file, WrittenPart* written) const override {
    AppendTo(piece, file, written);
  }
  bool AddTo(StoredShard* shard, WrittenNumbers* said) const override {
    if (!Has(*said, static_cast<size_t>(count()))) return false;
    for (int64_t i = 0; i < count(); ++i) Add(pieces_.At(i).begin, said, shard);
    return true;
  }
  void Read(CheckpointReader* from, int64_t number, std::vector<std::byte>* piece) const override {
    const RowRange rows = pieces_.At(number);
    RowPieceWriter writer(width_, values_);
    from->ReadRows(rows, [&](uint64_t row, const float* values) { writer.Add(row, values); });
    piece->resize(kMaxRowPieceBytes);
    piece->resize(writer.Finish(rows, piece->data()));
  }

 private:
  const RowPieces pieces_;
};

class HashTablePieces : public PiecesOfRows {
 public:
  using PiecesOfRows::PiecesOfRows;

  int64_t count() const override { return kOpenEnd; }
  bool Fits(int64_t, size_t bytes) const override {
    return bytes == 0 ||
           (bytes >= kMinHashPieceBytes && bytes <= kMaxRowPieceBytes && bytes % sizeof(float) == 0);
  }
  size_t numbers() const override { return 0; }
  void Write(int64_t, net::TensorView piece, ShardWriter* file, WrittenPart* written) const override {
    const std::optional<uint64_t> begin = BeginOf(piece);
    if (!begin) return;
    written->firsts.push_back(*begin);
    AppendTo(piece, file, written);
  }
  // They are all that are left.
  bool AddTo(StoredShard* shard, WrittenNumbers* said) const override {
    if (!Has(*said, said->part.firsts.size())) return false;
    while (said->firsts < said->part.firsts.size()) Add(said->part.firsts[said->firsts++], said, shard);
    return true;
  }
  int64_t CountIn(const CheckpointReader& from) const override {
    return static_cast<int64_t>(from.HashPieces(rows_));
  }
  // With the slots of another optimizer a piece may take more than in its file.
  void Read(CheckpointReader* from, int64_t number, std::vector<std::byte>* piece) const override {
    HashRowList rows(values_);
    from->ReadHashPiece(rows_, static_cast<size_t>(number), [&](const HashRow& row) { rows.Add(row); });
    std::vector<HashRow> found;
    rows.AppendTo(&found);
    piece->resize(HashPieceBytes(found.size(), rows.value_rows(), values_));
    WriteHashPiece(found, width_, values_, piece->data());
  }
};

}  // namespace

int64_t PartPieces::CountIn(const CheckpointReader&) const { return count(); }

// Only this and MakeParts() of shards ask which kinds of parts a ps has.
PartsOfPs PartsOf(const Layout& layout, int ps, SlotCounts slots) {
  PartsOfPs parts;
  if (RangeBlocksOf(layout, static_cast<size_t>(ps)) > 0) {
    parts.push_back(std::make_unique<RangePieces>(layout, ps, slots.other));
  }
  if (layout.has_hash_table()) {
    parts.push_back(std::make_unique<HashTablePieces>(layout, ps, slots));
  } else if (layout.table) {
    parts.push_back(std::make_unique<TablePieces>(layout, ps, slots));
  }
  return parts;
}

}  // namespace dtrain
