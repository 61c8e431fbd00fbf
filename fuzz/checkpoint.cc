// Checkpoints, deltas with their bases too: a damaged one is refused, whatever its checksums say; no file is
// read beyond its end.
#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/parts_writer.h"
#include "trainer/checkpoint/table_test_util.h"
#include "trainer/config/config.h"
#include "trainer/table/hash_pieces.h"
#include "trainer/table/hash_store.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTrailer = sizeof(uint64_t);

using Files = std::map<std::string, std::string>;  // contents by name

// Good checkpoints of one directory: a delta is behind its base.
struct Saved {
  std::vector<std::string> names;
  std::vector<Files> files;
};

Saved Take(const CheckpointDirectory& directory) {
  Saved saved;
  for (const std::string& checkpoint : testing::NamesIn(directory.path())) {
    if (!IsCheckpointName(checkpoint)) continue;
    saved.names.push_back(checkpoint);
    const std::string path = directory.PathOf(checkpoint);
    Files& files = saved.files.emplace_back();
    for (const std::string& name : testing::NamesIn(path))
      files[name] = testing::FileContent(path + "/" + name);
  }
  fs::remove_all(directory.path());
  return saved;
}

// A hash table of 2 ps, with one slot; with a base it has what has changed since, and what left. `two`: the
// first value of a row has two slots. Returns what it is as a base.
StoredBase SaveHashed(CheckpointDirectory* directory, const StoredBase* base = nullptr, bool two = false) {
  testing::SmallCheckpoint of;
  of.layout = Layout();
  of.layout.table.emplace(TableLayout::kHashed, 2, 2);
  of.layout.ps.resize(2);
  of.slots = {"sum"};
  of.step += base == nullptr ? 0 : 1;
  const std::string temporary = directory->BeginSave(of.step);
  const float values[] = {1, 2, 3, 4, 5};
  const int64_t of_row = two ? 5 : 4;
  std::vector<dtrain::WrittenPart> parts;
  for (int ps = 0; ps < 2; ++ps) {
    const RowRange part = of.layout.table->PartOf(ps);
    std::vector<HashRow> rows = {{part.begin + 5, 7, 0, values}, {part.begin + 9, 8, 1, nullptr}};
    if (base != nullptr)
      rows = {{part.begin + 5, 0, HashRow::kLeft, nullptr}, {part.begin + 9, 9, 0, values}};
    if (ps == 1) rows.push_back({of.layout.table->bias_row(), 8, 0, values});
    std::vector<std::byte> bytes(HashPieceBytes(3, 2, of_row, true));
    PartsWriter writer(of.layout, ps, 1, temporary);
    const HashCover cover{part, base != nullptr && ps == 1};
    if (cover.whole) rows.erase(rows.begin());
    writer.Add(
        0, {bytes.data(), WriteHashPiece(rows, 2, of_row, bytes.data(), base == nullptr ? nullptr : &cover)});
    parts.push_back(writer.Finish());
  }
  dtrain::Manifest manifest = testing::ManifestOf(of, parts);
  if (base != nullptr) manifest.base = *base;
  if (two) manifest.table->linear_slots = {"z", "n"};
  const StoredBase sealed = directory->Seal(temporary, manifest, "train: {steps: 1}\n");
  directory->Publish(temporary);
  return sealed;
}

// The checkpoints have tensors, a hash table, a table with its base, or a hash table with its base,
// of one optimizer or of two.
Saved MakeSaved(size_t kind) {
  CheckpointDirectory directory(testing::NewDirectory());
  directory.Prepare();
  if (kind == 0) testing::SaveSmall(&directory, {});
  if (kind == 1) SaveHashed(&directory);
  if (kind == 2) {
    testing::SmallTable table;
    table.SetEach(3, 20011, 1);
    table.SaveAll(&directory, 1);
    table.SetEach(5, 50021, 2);
    table.Set(3, 0);
    table.SaveDelta(&directory, 2);
  }
  if (kind >= 3) {
    const StoredBase base = SaveHashed(&directory, nullptr, kind == 4);
    SaveHashed(&directory, &base, kind == 4);
  }
  return Take(directory);
}

constexpr size_t kKinds = 5;

const Saved& GoodOf(size_t kind) {
  static const Saved all[kKinds] = {MakeSaved(0), MakeSaved(1), MakeSaved(2), MakeSaved(3), MakeSaved(4)};
  return all[kind];
}

std::string WithChecksum(std::string body) {
  const uint64_t checksum = Checksum(body.data(), body.size());
  return body.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
}

// Restores rows of a hash table as a ps does.
void ReadHashed(CheckpointReader* reader) {
  const StoredTable& table = *reader->manifest().table;
  const int64_t values = reader->manifest().row_values();
  const RowRange all = {0, TableLayout(table.features, table.width, 1).rows()};
  HashStore store(all, values, [&](uint64_t, float* row) { std::fill_n(row, values, 0.F); });
  for (size_t piece = 0; piece < reader->HashPieces(all); ++piece) {
    reader->ReadHashPiece(all, piece, [&](const HashRow& row) { store.Put(row); });
  }
}

// Reads all that the manifest promises.
void ReadAll(const std::string& path) {
  CheckpointReader reader(path);
  reader.Verify();
  reader.Config();
  for (const StoredTensor& tensor : reader.manifest().tensors) {
    if (reader.manifest().table && tensor.name == kTableName) continue;
    std::vector<float> values(static_cast<size_t>(tensor.size()));
    reader.Read(tensor.name, CheckpointReader::kWeights, 0, tensor.size(), values.data());
    for (const std::string& slot : reader.manifest().slots) {
      reader.Read(tensor.name, slot, 0, tensor.size(), values.data());
    }
  }
  if (!reader.manifest().table) return;
  uint64_t next = 0;
  reader.ReadRows({0, ~uint64_t{0}}, [&](uint64_t row, const float*) {
    Require(row >= next, "rows come in ascending order");
    next = row + 1;
  });
  if (reader.manifest().table->hashed()) ReadHashed(&reader);
}

// Makes the checksums of a checkpoint fit its files, as far as its manifest can be read. `base`: the checksum
// of the manifest of its base. Returns that of its own.
uint64_t Fit(Files* files, uint64_t base) {
  std::string& bytes = (*files)[kManifestName];
  bytes = WithChecksum(bytes.substr(0, bytes.size() - std::min(bytes.size(), kTrailer)));
  dtrain::Manifest manifest;
  if (FromBytes(bytes, &manifest)) return 0;
  for (StoredShard& shard : manifest.shards) {
    const auto file = files->find(shard.file);
    if (file == files->end()) continue;
    const std::string& content = file->second;
    for (StoredPiece& piece : shard.pieces) {
      const auto at = static_cast<size_t>(piece.offset), size = static_cast<size_t>(Padded(piece.bytes()));
      if (at + size <= content.size()) piece.checksum = Checksum(content.data() + at, size);
    }
  }
  if (manifest.base) manifest.base->checksum = base;
  bytes = ToBytes(manifest, &manifest.checksum);
  return manifest.checksum;
}

// Changes bytes of the files as the input says.
void Damage(Input& input, Saved* saved) {
  while (!input.empty()) {
    const uint64_t which = input.Below(saved->files[0].size() * saved->files.size());
    Files& files = saved->files[which / saved->files[0].size()];
    std::string& content =
        std::next(files.begin(), static_cast<int64_t>(which % saved->files[0].size()))->second;
    const size_t at = input.Short();
    const uint8_t change = input.Byte();
    if (change == 0) {
      content.resize(std::min(content.size(), at));
    } else if (at < content.size()) {
      content[at] = static_cast<char>(content[at] ^ change);
    } else if (at < content.size() + 64) {
      content.append(1, static_cast<char>(change));
    }
  }
}

// Writes and reads them.
void Try(const Saved& saved) {
  for (size_t i = 0; i < saved.names.size(); ++i) {
    const std::string path = ScratchDirectory() + "/" + saved.names[i];
    fs::create_directories(path);
    for (const auto& [name, content] : saved.files[i]) {
      std::ofstream(path + "/" + name, std::ios::binary | std::ios::trunc) << content;
    }
  }
  try {
    ReadAll(ScratchDirectory() + "/" + saved.names.back());
  } catch (const UserError&) {
  }
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint8_t how = input.Byte();
  Saved saved = GoodOf(how / 2 % kKinds);
  bool fits = true;
  if (how % 2 != 0) {
    fits = !input.Flag();
    Damage(input, &saved);
  } else {
    const std::string bytes = WithChecksum(input.Rest());
    dtrain::Manifest read;
    if (FromBytes(bytes, &read)) return 0;
    Require(!ManifestProblem(read), "a manifest that was read keeps the rules");
    saved.files.back()[kManifestName] = bytes;
  }
  uint64_t base = 0;
  for (Files& files : saved.files) {
    if (fits) base = Fit(&files, base);
  }
  Try(saved);
  return 0;
}

const AddTarget added("checkpoint", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
