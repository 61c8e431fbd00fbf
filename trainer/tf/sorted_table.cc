#include "trainer/tf/sorted_table.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

#include "base/tfrecord.h"
#include "base/wire_fields.h"

namespace dtrain {
namespace {

constexpr uint64_t kFooterBytes = 48, kTrailerBytes = 5;
constexpr char kMagic[] = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";

uint32_t FixedAt(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void AppendFixed(uint32_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes a handle off the front of `bytes`.
bool TakeHandle(WireFields* bytes, SortedTable::Handle* handle) {
  return bytes->ReadVarint(&handle->offset) && bytes->ReadVarint(&handle->size);
}

}  // namespace

bool SortedTable::IsTable(const SourceFile& file) {
  char magic[8] = {};
  if (file.size() < kFooterBytes) return false;
  file.ReadAt(file.size() - sizeof magic, sizeof magic, magic);
  return std::memcmp(magic, kMagic, sizeof magic) == 0;
}

SortedTable::SortedTable(std::unique_ptr<SourceFile> file) : file_(std::move(file)) {
  if (!IsTable(*file_)) {
    file_->Refuse("does not end as TensorFlow's tables do: it is no checkpoint, or cut off. Fetch it anew.");
  }
  std::string footer(kFooterBytes, '\0');
  file_->ReadAt(file_->size() - kFooterBytes, kFooterBytes, footer.data());
  WireFields bytes(footer);
  Handle metaindex, index;
  if (!TakeHandle(&bytes, &metaindex) || !TakeHandle(&bytes, &index)) {
    file_->Refuse(
        fmt::format("the footer at byte {} has no handle of the index. It is damaged: fetch it anew.",
                    file_->size() - kFooterBytes));
  }
  ReadBlock(index, [&](std::string_view /*last key*/, std::string_view value) {
    WireFields fields(value);
    Handle block;
    if (!TakeHandle(&fields, &block))
      file_->Refuse(fmt::format("the index at byte {} is damaged. Fetch the file anew.", index.offset));
    blocks_.push_back(block);
  });
}

void SortedTable::ReadBlock(
    const Handle& block,
    const std::function<void(std::string_view key, std::string_view value)>& on_entry) const {
  const auto refuse = [&](const char* what) {
    file_->Refuse(fmt::format("the block at byte {} {}. Fetch the file anew.", block.offset, what));
  };
  if (!file_->Holds(block.offset, block.size) ||
      !file_->Holds(block.offset + block.size, kTrailerBytes + kFooterBytes) || block.size < 4) {
    refuse("does not lie within the file");
  }
  std::string bytes(block.size + kTrailerBytes, '\0');
  file_->ReadAt(block.offset, bytes.size(), bytes.data());
  if (MaskedCrc({bytes.data(), block.size + 1}) != FixedAt(bytes, block.size + 1)) {
    refuse("is damaged: its checksum is wrong");
  }
  if (bytes[block.size] != 0) refuse("is compressed, as TensorFlow never writes one, and is not read");
  const uint64_t restarts = FixedAt(bytes, block.size - 4);
  if (restarts > (block.size - 4) / 4) refuse("has more restarts than it can hold");
  std::string key;
  WireFields entries({bytes.data(), block.size - 4 - 4 * restarts});
  while (!entries.at_end()) {
    uint64_t shared = 0, unshared = 0, size = 0;
    if (!entries.ReadVarint(&shared) || !entries.ReadVarint(&unshared) || !entries.ReadVarint(&size) ||
        shared > key.size() || unshared > entries.rest().size() || size > entries.rest().size() - unshared) {
      refuse("has an entry that does not lie within it");
    }
    key.resize(shared);
    key.append(entries.rest().substr(0, unshared));
    entries.Skip(unshared);
    on_entry(key, entries.rest().substr(0, size));
    entries.Skip(size);
  }
}

void SortedTableBuilder::Block::Add(std::string_view key, std::string_view value) {
  restarts.push_back(static_cast<uint32_t>(entries.size()));  // keys share no bytes
  AppendVarint(0, &entries);
  AppendVarint(key.size(), &entries);
  AppendVarint(value.size(), &entries);
  entries.append(key);
  entries.append(value);
}

void SortedTableBuilder::Add(std::string_view key, std::string_view value) {
  constexpr size_t kBlockBytes = 256 << 10;
  if (data_.entries.size() >= kBlockBytes) {
    std::string handle;
    End(&data_, &handle);
    index_.Add(last_key_, handle);
  }
  data_.Add(key, value);
  last_key_ = key;
}

// Appends a block to the file, and where it lies to `handle`.
void SortedTableBuilder::End(Block* block, std::string* handle) {
  std::string bytes = std::move(block->entries);
  if (block->restarts.empty()) block->restarts.push_back(0);
  for (const uint32_t restart : block->restarts) AppendFixed(restart, &bytes);
  AppendFixed(static_cast<uint32_t>(block->restarts.size()), &bytes);
  AppendVarint(file_.size(), handle);
  AppendVarint(bytes.size(), handle);
  bytes += '\0';  // not compressed
  AppendFixed(MaskedCrc(bytes), &bytes);
  file_ += bytes;
  *block = Block();
}

std::string SortedTableBuilder::Finish() {
  std::string last, footer;
  if (!data_.restarts.empty()) {
    End(&data_, &last);
    index_.Add(last_key_, last);
  }
  Block metaindex;
  End(&metaindex, &footer);
  End(&index_, &footer);
  footer.resize(kFooterBytes - (sizeof kMagic - 1));
  footer.append(kMagic, sizeof kMagic - 1);
  return file_ + footer;
}

}  // namespace dtrain
