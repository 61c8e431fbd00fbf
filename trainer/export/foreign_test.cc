// What stands in a file of tensors beside those of a model stops nobody, unless it is asked for.
#include <doctest/doctest.h>
#include <zlib.h>

#include "trainer/export/export_test_util.h"
#include "trainer/export/zip.h"

namespace dtrain::testing {
namespace {

template <typename T>
void Append(const T& record, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&record), sizeof record);
}

// A zip archive of stored members.
std::string Zip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string bytes, directory;
  for (const auto& [name, content] : members) {
    const auto size = static_cast<uint32_t>(content.size()), at = static_cast<uint32_t>(bytes.size());
    const auto crc = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(content.data()), size));
    zip::Local local;
    zip::Central central;
    local.crc = central.crc = crc;
    local.size = local.compressed = central.size = central.compressed = size;
    local.name = central.name = static_cast<uint16_t>(name.size());
    central.offset = at;
    Append(local, &bytes);
    bytes += name + content;
    Append(central, &directory);
    directory += name;
  }
  zip::End end;
  end.entries_here = end.entries = static_cast<uint16_t>(members.size());
  end.directory = static_cast<uint32_t>(bytes.size());
  end.directory_bytes = static_cast<uint32_t>(directory.size());
  bytes += directory;
  Append(end, &bytes);
  return bytes;
}

std::string Npy(const std::string& descr, const std::string& shape, const std::string& values) {
  const std::string header =
      fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}\n", descr, shape);
  std::string bytes("\x93NUMPY\x01\x00", 8);
  Append(static_cast<uint16_t>(header.size()), &bytes);
  return bytes + header + values;
}

using Texts = std::vector<std::string>;

TEST_CASE("import: an npz file may have arrays of other types, other members and directories beside") {
  const std::string path = NewDirectory() + "/model.npz";
  std::vector<std::pair<std::string, std::string>> members = {
      {"big.npy", Npy("'>f4'", "(2,)", std::string(8, '\0'))},
      {"biases/b1.npy", Npy("'<f4'", "(3,)", std::string(12, '\0'))},
      {"count.npy", Npy("'<i8'", "()", std::string(8, '\0'))},
      {"mixed.npy", Npy("[('a', '<f4'), ('b', '<i8')]", "(1,)", std::string(12, '\0'))},
      {"names.npy", Npy("'<U3'", "(2,)", std::string(24, '\0'))},
      {"weights/W1.npy", Npy("'<f4'", "(5, 3)", std::string(60, '\0'))},
      {"weights/", ""},
      {"notes.txt", "made by hand"}};
  WriteBytes(path, Zip(members));
  const TakenTensors taken = TakeAll(path);
  CHECK(taken.unused == Texts{"big", "count", "mixed", "names", "weights/", "notes.txt"});
  const std::string error = ErrorOf([&] { TakeAll(path, {{"count=biases/b1"}}); });
  CHECK(error.find(path + ": count: dtype <i8; must be float32, float64 or float16, little-endian.") == 0);
  members[5].second.resize(members[5].second.size() - 4);
  WriteBytes(path, Zip(members));
  CHECK(ErrorOf([&] { TakeAll(path); }).find("take another number of bytes") != std::string::npos);
}

TEST_CASE("import: a float64 beyond float32 has its row and column also where the array lies by columns") {
  const std::string path = NewDirectory() + "/model.npz";
  std::vector<double> values(15);
  values[7] = 1e39;  // row 2 of column 1
  std::string weights =
      Npy("'<f8'", "(5, 3)", std::string(reinterpret_cast<const char*>(values.data()), 120));
  weights.replace(weights.find("False"), 5, "True ");
  WriteBytes(path, Zip({{"biases/b1.npy", Npy("'<f8'", "(3,)", std::string(24, '\0'))},
                        {"weights/W1.npy", weights}}));
  CHECK(ErrorOf([&] { TakeAll(path); }).find(path + ": weights/W1[2, 1] is 1e+39 in the file; ") == 0);
}

TEST_CASE("import: a safetensors file may have tensors of other types beside, as PyTorch writes them") {
  const std::string path = NewDirectory() + "/model.safetensors";
  const char* const header = R"({"weights/W1":{"dtype":"F32","shape":[5,3],"data_offsets":[0,60]},)"
                             R"("biases/b1":{"dtype":"F32","shape":[3],"data_offsets":[60,72]},)"
                             R"("num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[72,80]},)"
                             R"("scale":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[80,84]}})";
  WriteBytes(path, Safetensors(header, std::string(84, '\0')));
  CHECK(TakeAll(path).unused == Texts{"num_batches_tracked", "scale"});
  const std::string error = ErrorOf([&] { TakeAll(path, {{"num_batches_tracked=biases/b1"}}); });
  CHECK(error == path + ": num_batches_tracked: dtype I64; must be F32, F64, F16 or BF16.");
}

}  // namespace
}  // namespace dtrain::testing
