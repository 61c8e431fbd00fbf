// Checkpoints: a damaged one is refused, whatever its checksums say; no file is read beyond its end.
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTrailer = sizeof(uint64_t);

// A good checkpoint: its files' names and contents.
const std::vector<std::pair<std::string, std::string>>& GoodFiles() {
  static const auto files = [] {
    const std::string made = testing::NewDirectory();
    CheckpointDirectory directory(made);
    const std::string path = testing::SaveSmall(&directory, {});
    std::vector<std::pair<std::string, std::string>> found;
    for (const std::string& name : testing::NamesIn(path)) {
      found.emplace_back(name, testing::FileContent(path + "/" + name));
    }
    fs::remove_all(made);
    return found;
  }();
  return files;
}

std::string WithChecksum(std::string body) {
  const uint64_t checksum = Checksum(body.data(), body.size());
  return body.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
}

// Reads all that the manifest promises.
void ReadAll(const std::string& path) {
  CheckpointReader reader(path);
  reader.Verify();
  reader.Config();
  for (const StoredTensor& tensor : reader.manifest().tensors) {
    std::vector<float> values(static_cast<size_t>(tensor.size()));
    reader.Read(tensor.name, CheckpointReader::kWeights, 0, tensor.size(), values.data());
    for (const std::string& slot : reader.manifest().slots) {
      reader.Read(tensor.name, slot, 0, tensor.size(), values.data());
    }
  }
}

// Changes bytes of the files as the input says. A manifest gets a fitting checksum unless the input says no.
std::vector<std::pair<std::string, std::string>> Damaged(Input input) {
  auto files = GoodFiles();
  const bool fits = !input.Flag();
  while (!input.empty()) {
    std::string& content = files[input.Below(files.size())].second;
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
  for (auto& [name, content] : files) {
    if (name != kManifestName || !fits) continue;
    content = WithChecksum(content.substr(0, content.size() - std::min(content.size(), kTrailer)));
  }
  return files;
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  auto files = GoodFiles();
  if (input.Flag()) {
    files = Damaged(input);
  } else {
    const std::string manifest = WithChecksum(input.Rest());
    dtrain::Manifest read;
    if (FromBytes(manifest, &read)) return 0;
    Require(!ManifestProblem(read), "a manifest that was read keeps the rules");
    for (auto& [name, content] : files) {
      if (name == kManifestName) content = manifest;
    }
  }
  for (const auto& [name, content] : files) {
    std::ofstream(ScratchDirectory() + "/" + name, std::ios::binary | std::ios::trunc) << content;
  }
  try {
    ReadAll(ScratchDirectory());
  } catch (const UserError&) {
  }
  return 0;
}

const AddTarget added("checkpoint", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
