// Checkpoints that TensorFlow 2.21 wrote (testdata/tensorflow/write.py), and the same damaged.
#include "trainer/tf/tf_checkpoint.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/testing/files.h"
#include "trainer/tf/tf_names.h"
#include "trainer/tf/tf_stream.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

std::string Path(const std::string& name) { return "testdata/tensorflow/" + name; }

TfCheckpoint Open(const std::string& path) {
  const std::optional<TfPaths> paths = FindTfCheckpoint(path);
  REQUIRE(paths);
  return TfCheckpoint(*paths);
}

std::vector<std::string> NamesOf(const TfCheckpoint& checkpoint) {
  std::vector<std::string> names;
  for (const TfTensor& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}

const TfTensor& Tensor(const TfCheckpoint& checkpoint, const std::string& name) {
  const TfTensor* const tensor = checkpoint.Find(name);
  REQUIRE_MESSAGE(tensor != nullptr, name);
  return *tensor;
}

std::vector<float> ValuesOf(const TfCheckpoint& checkpoint, const std::string& name) {
  const TfTensor& tensor = Tensor(checkpoint, name);
  std::vector<float> values(static_cast<size_t>(tensor.size()), -1);
  TfStream(checkpoint, tensor).Read(tensor.size(), values.data());
  return values;
}

std::vector<float> Ramp(int64_t size) {
  std::vector<float> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(static_cast<float>(i));
  return values;
}

// Writes a copy of a checkpoint's files, and `damage` changes the bytes of one; returns the error of
// reading all of it.
template <typename Damage>
std::string ErrorWith(const std::string& prefix, const std::string& suffix, const Damage& damage) {
  const std::string directory = testing::NewDirectory();
  for (const std::string& end : {".index"s, ".data-00000-of-00001"s}) {
    std::string bytes = testing::FileContent(Path(prefix + end));
    if (end == suffix) damage(&bytes);
    WriteFileAtomically(directory + "/x" + end, bytes);
  }
  std::string error;
  try {
    const TfCheckpoint checkpoint = Open(directory + "/x");
    for (const TfTensor& tensor : checkpoint.tensors()) {
      if (!tensor.unreadable.empty()) error = tensor.unreadable;
      checkpoint.Verify(tensor);
    }
  } catch (const UserError& thrown) {
    error = thrown.what();
  }
  fs::remove_all(directory);
  return error;
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST_CASE("tf: a checkpoint of objects has its variables under their paths, and its counter") {
  const TfCheckpoint checkpoint = Open(Path("c-1"));
  CHECK(NamesOf(checkpoint) == std::vector<std::string>{"_CHECKPOINTABLE_OBJECT_GRAPH",
                                                        "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
                                                        "w/.ATTRIBUTES/VARIABLE_VALUE"});
  CHECK(ValuesOf(checkpoint, "w/.ATTRIBUTES/VARIABLE_VALUE") == std::vector<float>{1, 2});
  CHECK(checkpoint.ReadInteger(Tensor(checkpoint, "save_counter/.ATTRIBUTES/VARIABLE_VALUE")) == 1);
  for (const TfTensor& tensor : checkpoint.tensors()) checkpoint.Verify(tensor);
}

TEST_CASE("tf: slices by rows and by columns, of several types and in several files, are whole tensors") {
  const TfCheckpoint slices = Open(Path("slices"));
  CHECK(Tensor(slices, "w").shape == std::vector<int64_t>{5, 3});
  CHECK(Tensor(slices, "w").pieces.size() == 2);
  CHECK(ValuesOf(slices, "w") == Ramp(15));
  CHECK(ValuesOf(slices, "b") == Ramp(14));
  CHECK(Tensor(slices, "c").pieces.size() == 3);
  CHECK(ValuesOf(slices, "c") == Ramp(600));
  for (const char* const path : {"run/model.ckpt-1", "run", "run/model.ckpt-1.index",
                                 "run/model.ckpt-1.data-00001-of-00002", "old_parts",
                                 "old_parts-"
                                 "?????"
                                 "-of-00002"}) {
    CAPTURE(path);
    const TfCheckpoint sharded = Open(Path(path));
    CHECK(sharded.files() == 2);
    std::vector<float> expected = Ramp(28);
    for (float& value : expected) value -= 0.5f / std::sqrt(1.1f);  // adagrad's first step of a gradient of 1
    const std::vector<float> values = ValuesOf(sharded, "emb");
    for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == doctest::Approx(expected[i]).epsilon(1e-6));
    CHECK(ValuesOf(sharded, "emb/Adagrad") == std::vector<float>(28, 1.1f));
    CHECK(sharded.ReadInteger(Tensor(sharded, "global_step")) == 1);
    const std::vector<TfMeaning> meanings = MeaningsOf(sharded);
    CHECK(meanings[1].role == TfRole::kSlot);
    CHECK(meanings[1].of == "emb");
    CHECK(meanings[1].slot == "Adagrad");
    CHECK(meanings[2].role == TfRole::kStep);
  }
}

TEST_CASE(
    "tf: what ParameterServerStrategy and MaxShardSizePolicy cut is whole again, and 300 variables are "
    "found") {
  const std::string value = "/.ATTRIBUTES/VARIABLE_VALUE";
  CHECK(ValuesOf(Open(Path("server_shards")), "table" + value) == Ramp(28));
  const TfCheckpoint uneven = Open(Path("max_shard_size"));
  CHECK(uneven.files() == 3);
  const TfTensor& tensor = Tensor(uneven, "w" + value);
  CHECK(tensor.pieces.size() > 2);
  CHECK(tensor.pieces.front().size() != tensor.pieces[1].size());
  CHECK(ValuesOf(uneven, "w" + value) == Ramp(1000));
  const TfCheckpoint many = Open(Path("many"));
  REQUIRE(many.tensors().size() == 300);
  for (int i = 0; i < 300; ++i)
    CHECK(ValuesOf(many, fmt::format("v{:03}", i)) == std::vector<float>{static_cast<float>(i)});
}

TEST_CASE("tf: the types of values are read, or named") {
  const TfCheckpoint types = Open(Path("types"));
  CHECK(ValuesOf(types, "bf") == Ramp(4));
  CHECK(ValuesOf(types, "scalar") == std::vector<float>{2.5f});
  CHECK(ValuesOf(types, "none").empty());
  const std::vector<float> odd = ValuesOf(types, "odd");
  CHECK(std::isnan(odd[0]));
  CHECK((odd[1] == 0 && std::signbit(odd[1])));
  CHECK(std::isinf(odd[2]));
  CHECK(types.ReadInteger(Tensor(types, "n")) == -3);
  for (const char* const none : {"scalar", "i", "flag", "odd", "text"})
    CHECK_THROWS_AS(types.ReadInteger(Tensor(types, none)), UserError);
  for (const auto& [name, type] : std::vector<std::pair<std::string, std::string>>{
           {"i", "int32"}, {"flag", "bool"}, {"u8", "uint8"}, {"c64", "complex64"}, {"texts", "string"}}) {
    CHECK(NameOf(Tensor(types, name).type) == type);
    CHECK_THROWS_WITH_AS(
        ValuesOf(types, name),
        fmt::format("testdata/tensorflow/types: {}: its type is {}, and weights are real numbers.", name,
                    type)
            .c_str(),
        UserError);
  }
  for (const TfTensor& tensor : types.tensors()) types.Verify(tensor);
}

TEST_CASE("tf: V1 has values of all types, whole and in slices") {
  const TfCheckpoint old = Open(Path("old"));
  CHECK(old.is_v1());
  CHECK(ValuesOf(old, "w") == Ramp(15));
  CHECK(ValuesOf(old, "d") == Ramp(14));
  CHECK(ValuesOf(old, "h") == Ramp(6));
  CHECK(old.ReadInteger(Tensor(old, "n")) == -3);
  CHECK(NamesOf(old) == std::vector<std::string>{"d", "flag", "h", "i", "n", "w"});
}

TEST_CASE("tf: a name may have any bytes, also where it is in slices") {
  const TfCheckpoint names = Open(Path("names"));
  const std::string any = "a\xff\x00 \xc3\xa9\n/part"s;
  CHECK(NamesOf(names) == std::vector<std::string>{any, "one blank"});
  CHECK(ValuesOf(names, any) == Ramp(6));
  CHECK(ValuesOf(names, "one blank") == std::vector<float>{1.5f});
}

TEST_CASE("tf: names of Keras tell the slots and the step of its optimizer") {
  const TfCheckpoint keras = Open(Path("keras"));
  const std::vector<TfMeaning> meanings = MeaningsOf(keras);
  int64_t slots = 0;
  for (size_t i = 0; i < meanings.size(); ++i) {
    if (meanings[i].role == TfRole::kStep) CHECK(keras.ReadInteger(keras.tensors()[i]) == 1);
    slots += meanings[i].role == TfRole::kSlot ? 1 : 0;
  }
  CHECK(slots == 4);  // m and v of kernel and bias
  CHECK(meanings[0].role == TfRole::kBookkeeping);
}

TEST_CASE(
    "tf: Estimator's names tell the slots, the step and what no model needs, of both its kinds of "
    "optimizers") {
  const auto roles = [](const std::string& name) {
    const TfCheckpoint checkpoint = Open(Path("estimator/" + name));
    const std::vector<TfMeaning> meanings = MeaningsOf(checkpoint);
    std::vector<std::string> weights, slots;
    for (size_t i = 0; i < meanings.size(); ++i) {
      const std::string& tensor = checkpoint.tensors()[i].name;
      if (meanings[i].role == TfRole::kWeights) weights.push_back(tensor);
      if (meanings[i].role == TfRole::kSlot) slots.push_back(meanings[i].of + " " + meanings[i].slot);
    }
    return std::pair(weights, slots);
  };
  const std::vector<std::string> linear = {
      "linear/linear_model/age/weights", "linear/linear_model/bias_weights",
      "linear/linear_model/color/weights", "linear/linear_model/size/weights"};
  std::vector<std::string> slots;
  for (const std::string& name : linear) {
    slots.push_back(name + " accumulator");
    slots.push_back(name + " linear");
  }
  CHECK(roles("linear") == std::pair(linear, slots));
  const auto [both, both_slots] = roles("both");
  const auto [both_v1, both_v1_slots] = roles("both_v1");
  CHECK(both.size() == 7);
  CHECK(both == both_v1);
  CHECK(both_slots.size() == 9);  // of 5 variables one, of 2 two
  CHECK(both_v1_slots.size() == 9);
}

TEST_CASE("tf: slots are those of a variable, whatever scope their optimizer was made in") {
  SortedTableBuilder index;
  index.Add("", "\x08\x01");
  for (const char* const name : {"net/w", "net/w/Adagrad", "net/w/part_0/ProximalAdagrad",
                                 "train/net/net/w/Adam", "train/net/w/Adam_1", "x/Adam", "x/part_0/Adam"})
    index.Add(name, "\x08\x01\x12\x04\x12\x02\x08\x00\x28\x00"s);
  const std::string directory = testing::NewDirectory();
  WriteFileAtomically(directory + "/m.index", index.Finish());
  const TfCheckpoint checkpoint = Open(directory + "/m");
  const std::vector<TfMeaning> meanings = MeaningsOf(checkpoint);
  REQUIRE(meanings.size() == 7);
  for (size_t i = 1; i < 5; ++i) CHECK(meanings[i].of == "net/w");
  CHECK(meanings[2].slot == "ProximalAdagrad");
  CHECK(meanings[4].slot == "Adam_1");
  for (const size_t i : {5, 6}) CHECK(meanings[i].role == TfRole::kWeights);
  fs::remove_all(directory);
}

TEST_CASE(
    "tf: the second of a list of Keras is a rate or a slot, and _all_variables are known by other names") {
  SortedTableBuilder index;
  index.Add("", "\x08\x01");
  const std::string vector = "\x08\x01\x12\x04\x12\x02\x08\x02\x28\x08"s, rate = "\x08\x01\x12\x00\x28\x04"s,
                    count = "\x08\x09\x12\x00\x28\x08"s;
  for (const auto& [name, entry] : {std::pair("_all_variables/0", vector), std::pair("a/_variables/0", count),
                                    std::pair("a/_variables/1", rate), std::pair("a/_variables/2", vector),
                                    std::pair("b/_iterations", count), std::pair("b/_variables/1", vector)})
    index.Add(name + "/.ATTRIBUTES/VARIABLE_VALUE"s, entry);
  const std::string directory = testing::NewDirectory();
  WriteFileAtomically(directory + "/m.index", index.Finish());
  std::vector<TfRole> roles;
  for (const TfMeaning& meaning : MeaningsOf(Open(directory + "/m"))) roles.push_back(meaning.role);
  CHECK(roles == std::vector<TfRole>{TfRole::kTwin, TfRole::kStep, TfRole::kBookkeeping, TfRole::kSlot,
                                     TfRole::kStep, TfRole::kSlot});
  fs::remove_all(directory);
}

TEST_CASE("tf: powers of one Adam or several are no weights, and a name that is like them is") {
  SortedTableBuilder index;
  index.Add("", "\x08\x01");
  for (const char* const name : {"beta1_power", "beta2_power_1", "power", "train/beta1_power"})
    index.Add(name, "\x08\x01\x12\x00\x28\x04"s);
  const std::string directory = testing::NewDirectory();
  WriteFileAtomically(directory + "/m.index", index.Finish());
  const std::vector<TfMeaning> meanings = MeaningsOf(Open(directory + "/m"));
  REQUIRE(meanings.size() == 4);
  for (const size_t i : {0, 1, 3}) CHECK(meanings[i].role == TfRole::kBookkeeping);
  CHECK(meanings[2].role == TfRole::kWeights);
  fs::remove_all(directory);
}

TEST_CASE("tf: parts of V1 are of one set, and a path is no pattern") {
  const std::string directory = testing::NewDirectory() + "/a[1]";
  fs::create_directories(directory);
  for (const std::string part : {"-00000-of-00002", "-00001-of-00002"}) {
    fs::copy(Path("old_parts" + part), directory + "/y" + part);
    if (part[5] == '0') CHECK_THROWS_AS(FindTfCheckpoint(directory + "/y"), UserError);
  }
  CHECK(FindTfCheckpoint(directory + "/y")->tables.size() == 2);
  fs::copy(Path("old_parts-00000-of-00002"), directory + "/y-00000-of-00003");
  CHECK_THROWS_AS(FindTfCheckpoint(directory + "/y"), UserError);
  fs::remove_all(fs::path(directory).parent_path());
}

TEST_CASE("tf: the file checkpoint is text of protobuf, and may be written in any of its ways") {
  CHECK(LatestCheckpoint("model_checkpoint_path: \"m-7\"\nall_model_checkpoint_paths: \"m-3\"\n") == "m-7");
  CHECK(LatestCheckpoint("# \"x\"\nmodel_checkpoint_path:'c' \"-1\"") == "c-1");
  CHECK(LatestCheckpoint("model_checkpoint_path : \"m\\0557\\x2e\\\"\\n\"") == "m-7.\"\n");
  CHECK(LatestCheckpoint("all_model_checkpoint_paths: \"m-3\"").empty());
  CHECK(LatestCheckpoint("model_checkpoint_path: \"m").size() == 1);
  const std::string directory = testing::NewDirectory();
  WriteFileAtomically(directory + "/checkpoint", "model_checkpoint_path: \"/old/place/m-1\"");
  CHECK_THROWS_WITH_AS(
      FindTfCheckpoint(directory),
      (directory + "/checkpoint: names \"/old/place/m-1\", which is not there. Name the checkpoint itself.")
          .c_str(),
      UserError);
  WriteFileAtomically(directory + "/m-1.index", "");  // the directory has been moved
  CHECK(FindTfCheckpoint(directory)->prefix == directory + "/m-1");
  WriteFileAtomically(directory + "/m-2.index", "");
  fs::remove(directory + "/checkpoint");
  CHECK_THROWS_AS(FindTfCheckpoint(directory), UserError);  // which of the two?
  fs::remove(directory + "/m-1.index");
  CHECK(FindTfCheckpoint(directory)->prefix == directory + "/m-2");
  CHECK_FALSE(FindTfCheckpoint("testdata/tensorflow/nothing"));
  CHECK_FALSE(FindTfCheckpoint("testdata/tensorflow/c-1.data"));
  fs::remove_all(directory);
}

TEST_CASE("tf: damage is refused with file, tensor and byte") {
  const std::string data = ".data-00000-of-00001", index = ".index";
  const auto none = [](std::string* /*bytes*/) {};
  CHECK(ErrorWith("c-1", index, none).empty());
  const std::string changed = ErrorWith("c-1", data, [](std::string* bytes) { bytes->back() ^= 1; });
  CHECK(Has(changed, "x.data-00000-of-00001: "));
  CHECK(Has(changed, "_CHECKPOINTABLE_OBJECT_GRAPH: its "));
  CHECK(Has(changed, " on are damaged: the checksum is wrong."));
  const std::string cut = ErrorWith("c-1", data, [](std::string* bytes) { bytes->pop_back(); });
  CHECK(Has(cut, "on are not there: the file ends at byte 195. Fetch it anew."));
  const std::string texts = ErrorWith("types", data, [](std::string* bytes) {
    const size_t at = bytes->find("hello");
    (*bytes)[at] = 'j';
  });
  CHECK(Has(texts, "text: its "));
  CHECK(Has(ErrorWith("c-1", index, [](std::string* bytes) { bytes->pop_back(); }),
            "x.index: does not end as TensorFlow's tables do"));
  CHECK(Has(ErrorWith("c-1", index, [](std::string* bytes) { (*bytes)[20] ^= 1; }),
            "x.index: the block at byte 0 is damaged: its checksum is wrong."));
  const std::string content = testing::FileContent(Path("slices.index"));
  for (size_t size = 0; size < content.size(); ++size) {
    CHECK_FALSE(ErrorWith("slices", index, [&](std::string* bytes) { bytes->resize(size); }).empty());
  }
  // A flipped bit of the index is found by a checksum, or changes nothing that is read.
  for (size_t bit = 0; bit < 8 * content.size(); bit += 3) {
    ErrorWith("slices", index,
              [&](std::string* bytes) { (*bytes)[bit / 8] ^= static_cast<char>(1 << bit % 8); });
  }
}

}  // namespace
}  // namespace dtrain
