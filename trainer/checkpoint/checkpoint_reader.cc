#include "trainer/checkpoint/checkpoint_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/table/row_optimizer.h"

namespace dtrain {
namespace {

constexpr int64_t kMaxManifest = int64_t{1} << 28;  // bytes; a checkpoint of 1 TB has a manifest of 40 MB

// Opens a shard file and verifies its size and header.
InputFile OpenShard(const std::string& checkpoint, const StoredShard& shard) {
  InputFile file(checkpoint, shard.file);
  if (file.size() != shard.bytes) {
    throw BadCheckpoint(checkpoint,
                        fmt::format("{} has {} bytes; must be {}", shard.file, file.size(), shard.bytes));
  }
  char header[kShardHeader.size()];
  file.ReadAt(0, sizeof header, header);
  if (kShardHeader == std::string_view(header, sizeof header)) return file;
  throw BadCheckpoint(checkpoint, fmt::format("{} does not begin with the {} bytes of a shard file",
                                              shard.file, sizeof header));
}

// Reads and verifies a piece, with its padding. `values` grows as needed.
void ReadPiece(const std::string& checkpoint, const InputFile& file, const StoredPiece& piece,
               std::vector<float>* values) {
  const int64_t bytes = Padded(piece.bytes());
  values->resize(std::max(values->size(), static_cast<size_t>(bytes) / sizeof(float)));
  file.ReadAt(piece.offset, bytes, values->data());
  const uint64_t checksum = Checksum(values->data(), static_cast<size_t>(bytes));
  if (checksum == piece.checksum) return;
  throw BadCheckpoint(
      checkpoint,
      fmt::format("{} is damaged at byte {}: the checksum of the {} bytes from there is {:016x}, not {:016x}",
                  file.name(), piece.offset, bytes, checksum, piece.checksum));
}

}  // namespace

void VerifyShard(const std::string& checkpoint, const StoredShard& shard) {
  const InputFile file = OpenShard(checkpoint, shard);
  std::vector<float> values;
  for (const StoredPiece& piece : shard.pieces) ReadPiece(checkpoint, file, piece, &values);
}

Manifest ReadManifest(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw BadCheckpoint(path, "there is no such directory");
  }
  if (error) throw BadCheckpoint(path, "cannot be looked at: " + ErrnoText(error.value()));
  if (!std::filesystem::is_directory(status)) throw BadCheckpoint(path, "is a file, not a directory");
  Manifest manifest;
  const std::optional<std::string> problem =
      FromBytes(InputFile(path, kManifestName).ReadAll(kMaxManifest), &manifest);
  if (problem) throw BadCheckpoint(path, fmt::format("{} is damaged: {}", kManifestName, *problem));
  return manifest;
}

// The directory is that of the checkpoint and not of its path, which may be a link from elsewhere.
FoundBase FindBase(const std::string& delta, const StoredBase& base) {
  const std::string name = CheckpointName(base.step);
  std::string problem;
  for (const std::string& each : {name, ReplacedName(name, base.sequence)}) {
    FoundBase found{delta + "/../" + each, {}};
    try {
      found.manifest = ReadManifest(found.path);
      if (found.manifest.checksum == base.checksum && !found.manifest.base) return found;
      if (problem.empty()) problem = "is another checkpoint than when the delta was written";
    } catch (const BadCheckpoint& bad) {
      if (problem.empty()) problem = bad.problem();
    }
  }
  throw BadCheckpoint(delta, fmt::format("its base {}: {}", name, problem));
}

CheckpointReader::CheckpointReader(const std::string& path, Manifest manifest)
    : path_(path), manifest_(std::move(manifest)) {
  Config();
  for (const StoredShard& shard : manifest_.shards) shards_.push_back(OpenShard(path_, shard));
  places_.resize(manifest_.tensors.size() * (manifest_.slots.size() + 1));
  for (size_t shard = 0; shard < manifest_.shards.size(); ++shard) {
    const std::vector<StoredPiece>& pieces = manifest_.shards[shard].pieces;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto slot = static_cast<size_t>(pieces[i].slot);
      const size_t at = static_cast<size_t>(pieces[i].tensor) * (manifest_.slots.size() + 1) + slot;
      places_[at].push_back({shard, i, pieces[i].first});
    }
  }
  const auto before = [](const Place& a, const Place& b) { return a.first < b.first; };
  for (std::vector<Place>& places : places_) std::sort(places.begin(), places.end(), before);
  if (manifest_.base) OpenBase();
  if (!manifest_.table || !manifest_.table->hashed()) return;
  FindHashPlaces();
  FindHashWindows();
}

// Calls `call`, which reads the base: an error of it is one of the delta.
template <typename Call>
auto CheckpointReader::OfBase(Call&& call) {
  try {
    return call();
  } catch (const BadCheckpoint& bad) {
    throw BadCheckpoint(path_,
                        fmt::format("its base {}: {}", CheckpointName(manifest_.base->step), bad.problem()));
  }
}

// A rule of manifests is that they are in order.
void CheckpointReader::FindHashPlaces() {
  for (size_t shard = 0; shard < manifest_.shards.size(); ++shard) {
    const std::vector<StoredPiece>& pieces = manifest_.shards[shard].pieces;
    const uint64_t end = manifest_.RowsOf(shard).end;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].tensor != manifest_.table_tensor()) continue;
      const auto next = i + 1 < pieces.size() ? static_cast<uint64_t>(pieces[i + 1].first) : end;
      hash_places_.push_back({shard, i, {static_cast<uint64_t>(pieces[i].first), next}});
    }
  }
}

void CheckpointReader::FindHashWindows() {
  std::vector<uint64_t> begins;
  uint64_t end = 0;
  for (CheckpointReader* each : {this, base_.get()}) {
    if (each == nullptr) continue;
    for (const HashPlace& place : each->hash_places_) begins.push_back(place.rows.begin);
    if (!each->hash_places_.empty()) end = std::max(end, each->hash_places_.back().rows.end);
  }
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  const auto place_of = [](const std::vector<HashPlace>& places, uint64_t row) -> const HashPlace* {
    const auto behind = std::partition_point(places.begin(), places.end(),
                                             [&](const HashPlace& place) { return place.rows.begin <= row; });
    return behind == places.begin() || (behind - 1)->rows.end <= row ? nullptr : &*(behind - 1);
  };
  for (size_t i = 0; i < begins.size(); ++i) {
    hash_windows_.push_back({{begins[i], i + 1 < begins.size() ? begins[i + 1] : end},
                             place_of(hash_places_, begins[i]),
                             base_ ? place_of(base_->hash_places_, begins[i]) : nullptr});
  }
}

gpu::Span<const CheckpointReader::HashWindow> CheckpointReader::HashWindows(RowRange range) const {
  const auto first =
      std::partition_point(hash_windows_.begin(), hash_windows_.end(),
                           [&](const HashWindow& window) { return window.rows.end <= range.begin; });
  const auto behind = std::partition_point(
      first, hash_windows_.end(), [&](const HashWindow& window) { return window.rows.begin < range.end; });
  return {hash_windows_.data() + (first - hash_windows_.begin()), behind - first};
}

// Valid until the next piece is loaded.
HashPieceView CheckpointReader::LoadHashPiece(const HashPlace* place) {
  if (place == nullptr) return {};
  const auto* const bytes = reinterpret_cast<const std::byte*>(Load(place->shard, place->piece));
  const auto size = static_cast<size_t>(manifest_.shards[place->shard].pieces[place->piece].bytes());
  return {{bytes, size}, place->rows};
}

void CheckpointReader::ReadHashPiece(RowRange range, size_t number, const VisitHashRow& visit) {
  const HashWindow& window = HashWindows(range).data[number];
  const RowRange rows{std::max(range.begin, window.rows.begin), std::min(range.end, window.rows.end)};
  const int64_t width = manifest_.table->width;
  const int64_t values = manifest_.row_values();
  std::vector<float> anew(static_cast<size_t>(new_slots_.counts().RowValues(width)));
  const auto take = [&](const HashRow& stored) {
    if (!slots_begin_anew() || stored.values == nullptr) return visit(stored);
    std::copy_n(stored.values, width, anew.begin());
    first_slots_(anew.data());
    HashRow row = stored;
    row.values = anew.data();
    visit(row);
  };
  const HashPieceView own = LoadHashPiece(window.own);
  if (!base_) {
    const std::string wrong = dtrain::ReadHashPiece(own.bytes, own.rows, width, values, rows, take);
    if (!wrong.empty()) FailPiece(window.own->shard, window.own->piece, wrong);
    return;
  }
  const HashPieceView of_base = OfBase([&] { return base_->LoadHashPiece(window.base); });
  const std::string wrong = ReadHashDelta(own, of_base, width, values, rows, take);
  if (wrong.empty()) return;
  if (window.own != nullptr) FailPiece(window.own->shard, window.own->piece, wrong);
  OfBase([&] { base_->FailPiece(window.base->shard, window.base->piece, wrong); });
}

void CheckpointReader::FailPiece(size_t shard, size_t piece, const std::string& wrong) const {
  const StoredShard& file = manifest_.shards[shard];
  throw BadCheckpoint(path_, fmt::format("{} is damaged in the piece at byte {}: {}", file.file,
                                         file.pieces[piece].offset, wrong));
}

void CheckpointReader::OpenBase() {
  FoundBase found = FindBase(path_, *manifest_.base);
  const Manifest& base = found.manifest;
  const bool fits = base.table && base.table->features == manifest_.table->features &&
                    base.table->width == manifest_.table->width &&
                    base.all_slots() == manifest_.all_slots() &&
                    base.shards.size() == manifest_.shards.size();
  if (!fits) throw BadCheckpoint(path_, "its base is of another model");
  OfBase([&] {
    base_.reset(new CheckpointReader(found.path, std::move(found.manifest)));  // the constructor is private
  });
}

void CheckpointReader::Verify() {
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    for (size_t piece = 0; piece < manifest_.shards[shard].pieces.size(); ++piece) Load(shard, piece);
  }
  if (base_) OfBase([&] { base_->Verify(); });
}

std::string CheckpointReader::Config() const {
  std::string text = InputFile(path_, kConfigName).ReadAll(manifest_.config_bytes);
  const uint64_t checksum = Checksum(text.data(), text.size());
  if (checksum == manifest_.config_checksum) return text;
  throw BadCheckpoint(
      path_, fmt::format("{} is damaged: the checksum of its {} bytes is {:016x}, not {:016x}", kConfigName,
                         text.size(), checksum, manifest_.config_checksum));
}

const float* CheckpointReader::Load(size_t shard, size_t piece) {
  if (loaded_ && loaded_shard_ == shard && loaded_piece_ == piece) return values_.data();
  loaded_ = false;
  ReadPiece(path_, shards_[shard], manifest_.shards[shard].pieces[piece], &values_);
  loaded_shard_ = shard;
  loaded_piece_ = piece;
  loaded_ = true;
  return values_.data();
}

const std::vector<CheckpointReader::Place>& CheckpointReader::PlacesOf(const std::string& tensor,
                                                                       const std::string& slot) const {
  size_t at = 0;
  while (at < manifest_.tensors.size() && manifest_.tensors[at].name != tensor) ++at;
  DT_CHECK(at < manifest_.tensors.size(), tensor);
  size_t slot_at = 0;
  if (slot != kWeights) {
    const auto found = std::find(manifest_.slots.begin(), manifest_.slots.end(), slot);
    DT_CHECK(found != manifest_.slots.end(), slot);
    slot_at = static_cast<size_t>(found - manifest_.slots.begin()) + 1;
  }
  return places_[at * (manifest_.slots.size() + 1) + slot_at];
}

void CheckpointReader::Read(const std::string& tensor, const std::string& slot, int64_t first, int64_t count,
                            float* out) {
  if (slots_begin_anew() && slot != kWeights) {
    const std::vector<std::string>& names = new_slots_.names;
    const auto found = std::find(names.begin(), names.end(), slot);
    DT_CHECK(found != names.end(), slot);
    std::fill_n(out, count, slot_values_[static_cast<size_t>(found - names.begin())]);
    return;
  }
  const std::vector<Place>& places = PlacesOf(tensor, slot);
  const auto behind = [](int64_t element, const Place& place) { return element < place.first; };
  auto place = std::upper_bound(places.begin(), places.end(), first, behind);
  DT_CHECK(first >= 0 && count >= 0 && place != places.begin(), first, count);
  for (--place; count > 0; ++place) {
    DT_CHECK(place != places.end(), tensor, first, count);
    const int64_t skip = first - place->first;
    const int64_t here = std::min(count, manifest_.shards[place->shard].pieces[place->piece].count - skip);
    DT_CHECK(here > 0, tensor, first, count);
    std::memcpy(out, Load(place->shard, place->piece) + skip, static_cast<size_t>(here) * sizeof(float));
    first += here;
    count -= here;
    out += here;
  }
}

void CheckpointReader::ReadRows(RowRange range, const VisitRow& visit) {
  DT_CHECK(manifest_.table.has_value());
  const int64_t width = manifest_.table->width;
  if (manifest_.table->hashed()) {
    for (size_t piece = 0; piece < HashPieces(range); ++piece) {
      ReadHashPiece(range, piece, [&](const HashRow& row) {
        if (row.values != nullptr) visit(row.row, row.values);
      });
    }
    return;
  }
  if (!slots_begin_anew()) return ReadStoredRows(range, visit);
  std::vector<float> values(static_cast<size_t>(new_slots_.counts().RowValues(width)));
  ReadStoredRows(range, [&](uint64_t row, const float* stored) {
    std::copy_n(stored, width, values.begin());
    first_slots_(values.data());
    visit(row, values.data());
  });
}

void CheckpointReader::ReadStoredRows(RowRange range, const VisitRow& visit) {
  for (size_t shard = 0; shard < manifest_.shards.size(); ++shard) {
    const RowPieces pieces = manifest_.RowPiecesOf(shard);
    if (pieces.count() == 0) continue;
    const uint64_t begin = std::max(range.begin, pieces.At(0).begin),
                   end = std::min(range.end, pieces.At(pieces.count() - 1).end);
    if (begin >= end) continue;
    for (int64_t piece = pieces.Of(begin); piece <= pieces.Of(end - 1); ++piece) {
      ReadPieceRows(shard, pieces.At(piece), range, visit);
    }
  }
}

void CheckpointReader::ReadPieceRows(size_t shard, RowRange piece, RowRange range, const VisitRow& visit) {
  const int64_t width = manifest_.table->width;
  const int64_t values = manifest_.row_values();
  const net::TensorView bytes = LoadRows(shard, piece);
  std::string wrong;
  if (base_) {
    const net::TensorView of_base = OfBase([&] { return base_->LoadRows(shard, piece); });
    wrong = ReadDeltaPiece(bytes, of_base, piece, width, values, range, visit);
  } else {
    wrong = ReadRowPiece(bytes, piece, width, values, range, visit);
  }
  if (wrong.empty()) return;
  throw BadCheckpoint(path_, fmt::format("{} is damaged in the piece from row {} on: {}",
                                         manifest_.shards[shard].file, piece.begin, wrong));
}

// The bytes of a piece of rows, valid until the next one is loaded; none: it has no rows.
net::TensorView CheckpointReader::LoadRows(size_t shard, RowRange piece) {
  const std::vector<StoredPiece>& stored = manifest_.shards[shard].pieces;
  const auto first = static_cast<int64_t>(piece.begin);
  const auto at = std::partition_point(stored.begin(), stored.end(), [&](const StoredPiece& each) {
    return each.tensor != manifest_.table_tensor() || each.first < first;
  });
  if (at == stored.end() || at->first != first) return {nullptr, 0};
  const float* const values = Load(shard, static_cast<size_t>(at - stored.begin()));
  return {reinterpret_cast<const std::byte*>(values), static_cast<size_t>(at->bytes())};
}

InputFile::InputFile(std::string checkpoint, std::string name)
    : checkpoint_(std::move(checkpoint)), name_(std::move(name)) {
  // O_NONBLOCK: otherwise open() would wait on a pipe in the place of a file.
  fd_ = open((checkpoint_ + "/" + name_).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0 && (errno == ENOENT || errno == ENOTDIR)) Fail("is missing");
  if (fd_ < 0) Fail("cannot be opened: " + ErrnoText(errno));
  struct stat status {};
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd_);
    Fail("is no file");
  }
  size_ = status.st_size;
  posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);  // all readers go from front to back; a hint, and may fail
}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : checkpoint_(std::move(other.checkpoint_)),
      name_(std::move(other.name_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_) {}

void InputFile::ReadAt(int64_t offset, int64_t bytes, void* out) const {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(fd_, to, static_cast<size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Fail(fmt::format("cannot be read at byte {}: {}", offset, ErrnoText(errno)));
    if (got == 0) Fail(fmt::format("ends at byte {}", offset));
    to += got;
    offset += got;
    bytes -= got;
  }
}

std::string InputFile::ReadAll(int64_t most) const {
  if (size_ > most) Fail(fmt::format("has {} bytes; must be at most {}", size_, most));
  std::string content(static_cast<size_t>(size_), '\0');
  ReadAt(0, size_, content.data());
  return content;
}

void InputFile::Fail(const std::string& problem) const {
  throw BadCheckpoint(checkpoint_, fmt::format("{} {}", name_, problem));
}

namespace {

struct Shapes {
  std::string here = "no such tensor";   // in the checkpoint
  std::string there = "no such tensor";  // in the model
};

std::string ShapeText(const Manifest& of, const StoredTensor& tensor) {
  const bool any_keys = of.table && of.table->hashed() && tensor.name == kTableName;
  return any_keys ? fmt::format("any keys x {}", tensor.cols)
                  : fmt::format("{} x {}", tensor.rows, tensor.cols);
}

}  // namespace

void CheckpointReader::CheckFits(const Layout& layout, const ModelSlots& slots, const char* otherwise) const {
  std::map<std::string, Shapes> tensors;
  const Manifest model = ModelManifest(layout, slots);
  for (const StoredTensor& each : manifest_.tensors) tensors[each.name].here = ShapeText(manifest_, each);
  for (const StoredTensor& each : model.tensors) tensors[each.name].there = ShapeText(model, each);
  for (const auto& [name, shapes] : tensors) {
    if (shapes.here == shapes.there) continue;
    throw UserError(
        "{}: another model: {} is {} in the checkpoint and {} in this run. Use the file that it was written "
        "with ({}/config.yaml), or {}.",
        path_, name, shapes.here, shapes.there, path_, otherwise);
  }
  if (manifest_.all_slots() == slots) return;
  throw UserError(
      "{}: another optimizer: the checkpoint is of {} ({}), and train.optimizer of this run has {}. Use the "
      "file that it was written with ({}/config.yaml), or {}.",
      path_, manifest_.optimizer, manifest_.all_slots().Text(), slots.Text(), path_, otherwise);
}

void CheckpointReader::BeginWith(const dtrain::Config& config, const Layout& layout) {
  CheckFits(layout, manifest_.all_slots(), "another checkpoint");
  new_slots_ = SlotsOf(config);
  if (new_slots_ == manifest_.all_slots()) return;
  slot_values_ = InitialSlots(OptimizerOf(config.train, ModelHalf::kOther).values);
  first_slots_ = FirstSlots(config, layout.table ? layout.table->width() : 1);
}

int64_t CheckpointReader::slot_updates() const {
  if (slots_begin_anew() || manifest_.all_slots() == ModelSlots()) return 0;
  return std::min(manifest_.step + manifest_.origin.updates, kMaxStep);
}

}  // namespace dtrain
