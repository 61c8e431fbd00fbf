#include "trainer/tf/tf_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/tfrecord.h"
#include "base/wire_fields.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr uint64_t kBlockBytes = 1 << 20;    // that are read at once
constexpr uint64_t kMaxTextBytes = 1 << 30;  // of a tensor of strings
constexpr size_t kMaxPieces = 1 << 16;       // of a tensor

// Makes a slice of a tensor of this shape. False: it does not lie in it.
bool SetSlice(const std::vector<int64_t>& extents, const std::vector<int64_t>& shape, TfPiece* piece) {
  if (extents.size() != 2 * shape.size()) return false;
  piece->begin.clear();
  piece->length.clear();
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t begin = extents[2 * i],
                  length = extents[2 * i + 1] == kWholeSide ? shape[i] : extents[2 * i + 1];
    if (begin < 0 || length < 0 || begin > shape[i] || length > shape[i] - begin) return false;
    piece->begin.push_back(begin);
    piece->length.push_back(length);
  }
  return true;
}

int64_t Product(const std::vector<int64_t>& sides) {
  int64_t product = 1;
  for (const int64_t side : sides) product *= side;
  return product;
}

bool Overlap(const TfPiece& a, const TfPiece& b) {
  for (size_t i = 0; i < a.begin.size(); ++i) {
    if (a.begin[i] >= b.begin[i] + b.length[i] || b.begin[i] >= a.begin[i] + a.length[i]) return false;
  }
  return true;
}

}  // namespace

int64_t TfPiece::size() const { return Product(length); }
int64_t TfTensor::size() const { return Product(shape); }

TfCheckpoint::TfCheckpoint(TfPaths paths) : paths_(std::move(paths)) {
  if (paths_.index.empty()) {
    ReadTables();
  } else {
    ReadIndex();
  }
  JoinParts();
  for (TfTensor& tensor : tensors_) CheckPieces(&tensor);
}

const TfTensor* TfCheckpoint::Find(const std::string& name) const {
  const auto found = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                      [](const TfTensor& a, const std::string& b) { return a.name < b; });
  return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

// BundleEntryProto: dtype 1, shape 2, shard_id 3, offset 4, size 5, crc32c 6, slices 7.
void TfCheckpoint::ReadIndex() {
  const SortedTable table(std::make_unique<SourceFile>(paths_.index));
  std::map<std::string, std::map<std::vector<int64_t>, TfPiece>> slices;
  bool has_header = false;
  const auto add = [&](std::string_view key, std::string_view value) {
    const auto refuse = [&](const char* what) {
      table.file().Refuse(
          fmt::format("the entry {} {}. Fetch the file anew.", Quoted(Shown(std::string(key))), what));
    };
    TfTensor tensor;
    TfPiece piece;
    std::vector<std::vector<int64_t>> parts;
    for (WireFields fields(value); !fields.at_end();) {
      if (!fields.Next()) refuse("is damaged");
      if (key.empty() && fields.number == 1) files_ = static_cast<int64_t>(fields.varint);
      if (key.empty() && fields.number == 2 && fields.varint == 1)
        refuse("says that it is big-endian, which is not read");
      if (fields.number == 1) tensor.type = static_cast<TfType>(fields.varint);
      if (fields.number == 2 && fields.type == WireFields::kBytes && !ReadShape(fields.bytes, &tensor.shape))
        refuse("has no shape");
      if (fields.number == 3 && fields.type == WireFields::kVarint)
        piece.file = static_cast<int64_t>(fields.varint);
      if (fields.number == 4) piece.offset = fields.varint;
      if (fields.number == 5) piece.bytes = fields.varint;
      if (fields.number == 6 && fields.type == WireFields::kFixed32)
        std::memcpy(&piece.crc, fields.bytes.data(), sizeof piece.crc);
      if (fields.number == 7 && fields.type == WireFields::kBytes &&
          !ReadSlice(fields.bytes, &parts.emplace_back()))
        refuse("has a damaged slice");
    }
    if (key.empty()) {
      has_header = files_ > 0;
      return;
    }
    if (piece.file < 0 || piece.file >= files_) refuse("lies in no data file");
    if (key[0] == '\0') {
      std::vector<int64_t> extents;
      if (!ReadSliceKey(key, &tensor.name, &extents)) refuse("is the key of no slice");
      slices[tensor.name].emplace(extents, piece);
      return;
    }
    tensor.name = key;
    tensor.is_sliced = !parts.empty();
    if (parts.empty()) {
      piece.begin.assign(tensor.shape.size(), 0);
      piece.length = tensor.shape;
      tensor.pieces.push_back(piece);
    }
    const auto& found = slices[tensor.name];
    for (const std::vector<int64_t>& extents : parts) {
      const auto part = found.find(extents);
      if (part == found.end()) {
        tensor.unreadable = "a slice of it is not in the index";
        continue;
      }
      if (!SetSlice(extents, tensor.shape, &tensor.pieces.emplace_back(part->second)))
        refuse("has a slice that is no part of it");
    }
    tensors_.push_back(std::move(tensor));
  };
  for (const SortedTable::Handle& block : table.blocks()) table.ReadBlock(block, add);
  if (!has_header) table.file().Refuse("says nothing about its data files: it is no index of a checkpoint.");
}

// SavedTensorSlices: meta 1 {tensor 1 {name 1, shape 2, type 3, slice 4}}, data 2 {name 1, slice 2, data 3}.
void TfCheckpoint::ReadTables() {
  std::map<std::string, TfTensor> by_name;
  std::map<std::string, std::map<std::vector<int64_t>, TfPiece>> data;
  std::map<std::string, std::vector<std::vector<int64_t>>> parts;
  for (const std::string& path : paths_.tables) {
    tables_.push_back(std::make_unique<SortedTable>(std::make_unique<SourceFile>(path)));
    const SortedTable& table = *tables_.back();
    const auto refuse = [&](std::string_view key) {
      table.file().Refuse(
          fmt::format("the entry {} is no part of a checkpoint, or damaged. Fetch the file anew.",
                      Quoted(Shown(std::string(key)))));
    };
    for (const SortedTable::Handle& block : table.blocks()) {
      table.ReadBlock(block, [&](std::string_view key, std::string_view value) {
        WireFields all(value);
        while (!all.at_end()) {
          if (!all.Next() || all.type != WireFields::kBytes) refuse(key);
          for (WireFields fields(all.bytes); !fields.at_end();) {
            if (!fields.Next()) refuse(key);
            if (all.number == 1 && fields.number == 1) {
              TfTensor tensor;
              std::vector<std::vector<int64_t>> slices;
              for (WireFields meta(fields.bytes); !meta.at_end();) {
                if (!meta.Next()) refuse(key);
                if (meta.number == 1) tensor.name = meta.bytes;
                if (meta.number == 2 && !ReadShape(meta.bytes, &tensor.shape)) refuse(key);
                if (meta.number == 3) tensor.type = static_cast<TfType>(meta.varint);
                if (meta.number == 4 && !ReadSlice(meta.bytes, &slices.emplace_back())) refuse(key);
              }
              auto& of_name = parts[tensor.name];
              of_name.insert(of_name.end(), slices.begin(), slices.end());
              const auto [known, is_new] = by_name.emplace(tensor.name, tensor);
              if (!is_new && (known->second.shape != tensor.shape || known->second.type != tensor.type))
                refuse(key);
            }
          }
          if (all.number != 2) continue;
          std::string name;
          std::vector<int64_t> extents;
          for (WireFields fields(all.bytes); !fields.at_end();) {
            if (!fields.Next()) refuse(key);
            if (fields.number == 1) name = fields.bytes;
            if (fields.number == 2 && !ReadSlice(fields.bytes, &extents)) refuse(key);
          }
          TfPiece piece;
          piece.file = static_cast<int64_t>(tables_.size()) - 1;
          piece.offset = block.offset;
          piece.bytes = block.size;
          piece.key = key;
          data[name].emplace(extents, piece);
        }
      });
    }
  }
  files_ = static_cast<int64_t>(tables_.size());
  for (auto& [name, tensor] : by_name) {
    const auto& found = data[name];
    tensor.is_sliced = parts[name].size() > 1;
    for (const std::vector<int64_t>& extents : parts[name]) {
      const auto part = found.find(extents);
      if (part == found.end()) {
        tensor.unreadable = "a slice of it is not in the file";
      } else if (!SetSlice(extents, tensor.shape, &tensor.pieces.emplace_back(part->second))) {
        tensor.unreadable = "a slice of it is no part of its shape";
      }
    }
    tensors_.push_back(tensor);
  }
}

// Each part of a variable has slots of its own, "w/part_0/Adam" and "w/part_1/Adam", which have the shape of
// the whole and one slice of it. They become one tensor by the name of the first.
void TfCheckpoint::JoinParts() {
  std::map<std::string, TfTensor*> joined;
  std::set<std::string> gone;
  for (TfTensor& tensor : tensors_) {
    const std::string_view name = tensor.name;
    const size_t slash = std::min(name.rfind('/'), name.size());
    const std::string of(WithoutPart(name.substr(0, slash)));
    const TfTensor* const whole = of.size() < slash ? Find(of) : nullptr;
    if (whole == nullptr || whole->shape != tensor.shape || !tensor.unreadable.empty() ||
        tensor.pieces.size() != 1 || tensor.pieces[0].size() >= tensor.size())
      continue;
    const auto [first, is_new] = joined.emplace(of + std::string(name.substr(slash)), &tensor);
    if (is_new || first->second->type != tensor.type) continue;
    first->second->pieces.push_back(tensor.pieces[0]);
    first->second->is_sliced = true;
    gone.insert(tensor.name);
  }
  const auto is_gone = [&](const TfTensor& tensor) { return gone.count(tensor.name) > 0; };
  tensors_.erase(std::remove_if(tensors_.begin(), tensors_.end(), is_gone), tensors_.end());
}

// Each value lies in one piece.
void TfCheckpoint::CheckPieces(TfTensor* tensor) const {
  if (!tensor->unreadable.empty()) return;
  std::vector<TfPiece>& pieces = tensor->pieces;
  if (pieces.size() > kMaxPieces) {
    tensor->unreadable = fmt::format("it has {} slices, more than {}", pieces.size(), kMaxPieces);
    return;
  }
  // In the order of the first dimension that is cut.
  size_t cut = 0;
  while (
      cut + 1 < tensor->shape.size() &&
      std::all_of(pieces.begin(), pieces.end(), [&](const TfPiece& piece) { return piece.begin[cut] == 0; }))
    ++cut;
  std::sort(pieces.begin(), pieces.end(), [&](const TfPiece& a, const TfPiece& b) {
    return !a.begin.empty() && a.begin[cut] < b.begin[cut];
  });
  int64_t values = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    values += pieces[i].size();
    const int64_t bytes = BytesOf(tensor->type) * pieces[i].size();
    if (tables_.empty() && BytesOf(tensor->type) > 0 && pieces[i].bytes != static_cast<uint64_t>(bytes))
      tensor->unreadable = fmt::format("it has {} bytes in place of {}", pieces[i].bytes, bytes);
    for (size_t j = i + 1; j < pieces.size() && !pieces[i].begin.empty(); ++j) {
      if (pieces[j].begin[cut] >= pieces[i].begin[cut] + pieces[i].length[cut]) break;
      if (Overlap(pieces[i], pieces[j])) tensor->unreadable = "two of its slices overlap";
    }
  }
  if (values != tensor->size() && tensor->unreadable.empty())
    tensor->unreadable = fmt::format("its slices have {} of {} values", values, tensor->size());
}

std::string TfCheckpoint::FileName(int64_t number) const {
  if (!tables_.empty()) return paths_.tables[static_cast<size_t>(number)];
  return fmt::format("{}.data-{:05}-of-{:05}", paths_.prefix, number, files_);
}

const SourceFile& TfCheckpoint::DataFile(int64_t number) const {
  std::unique_ptr<SourceFile>& file = open_[number];
  if (file == nullptr) file = std::make_unique<SourceFile>(FileName(number));
  return *file;
}

const SourceFile& TfCheckpoint::FileOf(const TfTensor& tensor, const TfPiece& piece) const {
  const SourceFile& file = DataFile(piece.file);
  if (!file.Holds(piece.offset, piece.bytes)) {
    file.Refuse(fmt::format(
        "{}: its {} bytes from byte {} on are not there: the file ends at byte {}. Fetch it anew.",
        Shown(tensor.name), piece.bytes, piece.offset, file.size()));
  }
  return file;
}

// Calls take(bytes) for all bytes of a piece of V2, and verifies their checksum.
void TfCheckpoint::ReadBytes(const TfTensor& tensor, const TfPiece& piece,
                             const std::function<void(std::string_view bytes)>& take) const {
  const SourceFile& file = FileOf(tensor, piece);
  std::vector<char> block(std::min(piece.bytes, kBlockBytes));
  uint32_t crc = 0;
  for (uint64_t done = 0; done < piece.bytes; done += block.size()) {
    block.resize(std::min(piece.bytes - done, kBlockBytes));
    file.ReadAt(piece.offset + done, block.size(), block.data());
    crc = Crc32cExtend(crc, block.data(), block.size());
    take({block.data(), block.size()});
  }
  if (tensor.type != TfType::kString && MaskCrc(crc) != piece.crc) ThrowDamaged(tensor, piece);
}

void TfCheckpoint::ThrowDamaged(const TfTensor& tensor, const TfPiece& piece) const {
  DataFile(piece.file)
      .Refuse(fmt::format(
          "{}: its {} bytes from byte {} on are damaged: the checksum is wrong. Fetch the file anew.",
          Shown(tensor.name), piece.bytes, piece.offset));
}

// Calls take(bytes) for the values of a piece, little-endian, in whole ones.
void TfCheckpoint::ReadValues(const TfTensor& tensor, const TfPiece& piece,
                              const std::function<void(std::string_view bytes)>& take) const {
  if (tables_.empty()) return ReadBytes(tensor, piece, take);
  const SortedTable& table = *tables_[static_cast<size_t>(piece.file)];
  std::string bytes;
  table.ReadBlock({piece.offset, piece.bytes}, [&](std::string_view key, std::string_view value) {
    if (key == piece.key) bytes = ValuesOf(tensor.type, value);
  });
  if (bytes.size() != static_cast<size_t>(piece.size() * BytesOf(tensor.type))) {
    table.file().Refuse(fmt::format("{}: it has {} bytes in place of {}. Fetch the file anew.",
                                    Shown(tensor.name), bytes.size(), piece.size() * BytesOf(tensor.type)));
  }
  take(bytes);
}

int64_t TfCheckpoint::ReadInteger(const TfTensor& tensor) const {
  const auto refuse = [&] {
    throw UserError("{}: {} is of {} with {} values{}; must be one whole number.", prefix(),
                    Shown(tensor.name), NameOf(tensor.type), tensor.size(),
                    tensor.unreadable.empty() ? "" : ", and " + tensor.unreadable);
  };
  const bool is_real = tensor.type == TfType::kFloat32 || tensor.type == TfType::kFloat64;
  const bool is_whole = tensor.type == TfType::kInt32 || tensor.type == TfType::kInt64;
  if (tensor.size() != 1 || !tensor.unreadable.empty() || (!is_real && !is_whole)) refuse();
  int64_t number = 0;
  ReadValues(tensor, tensor.pieces[0], [&](std::string_view bytes) {
    if (is_whole) {
      std::memcpy(&number, bytes.data(), bytes.size());
      if (tensor.type == TfType::kInt32) number = static_cast<int32_t>(number);
      return;
    }
    constexpr double kExact = 9007199254740992;  // 2^53
    float narrow = 0;
    double real = 0;
    std::memcpy(tensor.type == TfType::kFloat32 ? static_cast<void*>(&narrow) : &real, bytes.data(),
                bytes.size());
    if (tensor.type == TfType::kFloat32) real = narrow;
    if (!(std::fabs(real) <= kExact) || real != std::trunc(real)) refuse();
    number = static_cast<int64_t>(real);
  });
  return number;
}

void TfCheckpoint::Verify(const TfTensor& tensor) const {
  if (!tables_.empty()) return;  // blocks were verified when they were read
  for (const TfPiece& piece : tensor.pieces) {
    if (tensor.type == TfType::kString) {
      ReadStrings(tensor, piece);
    } else {
      ReadBytes(tensor, piece, [](std::string_view /*bytes*/) {});
    }
  }
}

// The lengths (varints), the masked checksum of the lengths as u32 (of those beyond that as u64), the texts.
// The tensor's checksum is over the lengths as such, their checksum and the texts.
std::string TfCheckpoint::ReadStrings(const TfTensor& tensor, const TfPiece& piece) const {
  const SourceFile& file = DataFile(piece.file);
  if (piece.bytes > kMaxTextBytes)
    file.Refuse(fmt::format("{}: more than {} bytes of strings, which are not read.", Shown(tensor.name),
                            kMaxTextBytes));
  std::string bytes;
  ReadBytes(tensor, piece, [&](std::string_view block) { bytes += block; });
  WireFields fields(bytes);
  uint32_t crc = 0;
  uint64_t texts = 0;
  for (int64_t left = piece.size(); left > 0; --left) {
    uint64_t length = 0;
    if (!fields.ReadVarint(&length) || length > bytes.size()) ThrowDamaged(tensor, piece);
    texts += length;
    crc = Crc32cExtend(crc, &length, sizeof(uint32_t));  // texts are shorter than 4 GiB
  }
  const std::string_view rest = fields.rest();
  const uint32_t of_lengths = MaskCrc(crc);
  if (rest.size() != sizeof of_lengths + texts ||
      std::memcmp(rest.data(), &of_lengths, sizeof of_lengths) != 0 ||
      MaskCrc(Crc32cExtend(crc, rest.data(), rest.size())) != piece.crc) {
    ThrowDamaged(tensor, piece);
  }
  return std::string(rest.substr(sizeof of_lengths));
}

std::string TfCheckpoint::ReadText(const TfTensor& tensor) const {
  const bool is_text = tensor.type == TfType::kString && tensor.size() == 1 && tensor.unreadable.empty();
  return is_text && !is_v1() && tensor.pieces[0].bytes <= kMaxDescription
             ? ReadStrings(tensor, tensor.pieces[0])
             : std::string();
}

}  // namespace dtrain
