// What is exported comes back; what is damaged is a UserError, whatever the damage.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/export/export_test_util.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/zip.h"
#include "trainer/model/model.h"

namespace dtrain::testing {
namespace {

// A softmax of 5 inputs and 3 classes, in a checkpoint of two ps.
struct Exported {
  std::string root = NewDirectory();
  SmallCheckpoint of;
  std::string path;

  Exported() {
    CheckpointDirectory directory(root + "/ckpt");
    directory.Prepare();
    path = SaveSmall(&directory, of);
  }

  std::string Write(const std::string& name, void (*write)(const ExportedModel&, OutputFile*)) const {
    CheckpointReader checkpoint(path);
    Config config;
    config.model.kind = ModelKind::kSoftmax;
    config.model.inputs = 5;
    config.model.outputs = 3;
    InputForm form;
    form.classes = {"elm", "oak, \"red\"", "yew"};
    const ExportedModel model{config, form, false, checkpoint, ModelVariables(config.model)};
    OutputFile file(root + "/" + name);
    write(model, &file);
    file.Finish();
    return root + "/" + name;
  }
};

TEST_CASE("export: safetensors and npz come back with the same bits") {
  const Exported exported;
  for (const auto write : {WriteSafetensors, WriteNpz}) {
    const std::string path = exported.Write("model", write);
    const TakenTensors taken = TakeAll(path);
    CHECK(taken.unused.empty());
    const Layout layout = SmallLayout(1);
    for (const Variable& variable : layout.variables) {
      for (int64_t i = 0; i < variable.size(); ++i) {
        CHECK(taken.values[static_cast<size_t>(variable.offset + i)] == ValueOf(1, variable.name, 0, i));
      }
    }
  }
}

TEST_CASE("export: a file that is not finished leaves the old one as it was, and nothing else") {
  const std::string root = NewDirectory();
  WriteBytes(root + "/model", "old");
  {
    OutputFile file(root + "/model");
    file.Write("half");
  }
  CHECK(FileContent(root + "/model") == "old");
  CHECK(NamesIn(root) == std::vector<std::string>{"model"});
}

TEST_CASE("export: a pipe or a device is not replaced by a file") {
  const std::string path = NewDirectory() + "/pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  CHECK(ErrorOf([&] { OutputFile file(path); }).find(path + ": is a device or a pipe") == 0);
  CHECK(std::filesystem::is_fifo(path));
}

TEST_CASE("export: a model of more than 2 GiB is no ONNX file, and the remedy is said") {
  const Exported exported;
  CheckpointReader checkpoint(exported.path);
  const Config config;
  const InputForm form;
  Variable large;
  large.rows = 1 << 20;
  large.cols = 1 << 10;
  const ExportedModel model{config, form, false, checkpoint, {large}};
  OutputFile file(exported.root + "/model.onnx");
  CHECK(ErrorOf([&] { WriteOnnx(model, &file); }).find("Use --to safetensors.") != std::string::npos);
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// What is wrong is told by a UserError, or else the values are `good`; empty: any. Returns whether it was
// told.
bool CheckDamaged(const std::string& path, const std::string& bytes, const std::vector<float>& good) {
  WriteBytes(path, bytes);
  try {
    const TakenTensors taken = TakeAll(path);
    if (!good.empty()) CHECK(SameBits(taken.values, good));
  } catch (const UserError& error) {
    CHECK(std::string(error.what()).find(path) == 0);
    return true;
  }
  return false;
}

// Where what has no checksum begins.
size_t PlainValuesOf(const std::string& file) {
  if (file[8] != '{') return file.size();
  uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  return sizeof header + header;
}

TEST_CASE("import: every truncation, every flipped byte and random bytes are told, or change no value") {
  const Exported exported;
  for (const auto write : {WriteSafetensors, WriteNpz}) {
    const std::string path = exported.Write("model", write);
    const std::string good = FileContent(path);
    const std::vector<float> values = TakeAll(path).values;
    const size_t plain = PlainValuesOf(good);
    const std::vector<float> any;
    for (size_t size = 0; size < good.size(); size += size < 200 ? 1 : 13)
      CHECK(CheckDamaged(path, good.substr(0, size), any));
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (at % 2 == 0 ? 0xff : 1 << at / 2 % 8));
      CheckDamaged(path, bytes, at < plain ? values : any);
    }
    const CounterRandom random(7);
    uint64_t next = 0;
    for (int round = 0; round < 500; ++round) {
      std::string bytes = good;
      for (int i = 0; i < 8; ++i) {
        const auto at = static_cast<size_t>(random.Uniform(next++) * static_cast<double>(bytes.size()));
        bytes[at] = static_cast<char>(random.Uniform(next++) * 256);
      }
      CheckDamaged(path, bytes, plain == good.size() ? values : any);
    }
  }
}

TEST_CASE("import: a flipped bit of an npz file's values is found by its checksum") {
  const Exported exported;
  const std::string path = exported.Write("model.npz", WriteNpz);
  std::string bytes = FileContent(path);
  bytes[200] = static_cast<char>(bytes[200] ^ 1);
  WriteBytes(path, bytes);
  CHECK(ErrorOf([&] { TakeAll(path); }).find("expected") != std::string::npos);
}

std::string OpenError(const std::string& bytes) {
  const std::string path = NewDirectory() + "/hostile";
  WriteBytes(path, bytes);
  return ErrorOf([&] { OpenTensorFile(path); });
}

TEST_CASE("import: lengths beyond the file, overlaps and shapes that do not fit are refused") {
  const std::string data(16, '\0');
  const auto entry = [&](const char* name, const char* dtype, const char* shape, const char* offsets) {
    return fmt::format("\"{}\":{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":{}}}", name, dtype, shape,
                       offsets);
  };
  const std::string good = "{" + entry("a", "F32", "[2,2]", "[0,16]") + "}";
  CHECK(OpenError(Safetensors(good, data)) == "");
  CHECK(OpenError(Safetensors(good, "")).find("is not in the file") != std::string::npos);
  const std::string huge =
      "{" + entry("a", "F32", "[4611686018427387903,4611686018427387903]", "[0,16]") + "}";
  CHECK(OpenError(Safetensors(huge, data)).find("does not fit") != std::string::npos);
  const std::string wrapped = "{" + entry("a", "F32", "[2,2]", "[18446744073709551600,0]") + "}";
  CHECK(OpenError(Safetensors(wrapped, data)).find("cannot be read") != std::string::npos);
  const std::string overlap =
      "{" + entry("a", "F32", "[4]", "[0,16]") + "," + entry("b", "F32", "[4]", "[8,24]") + "}";
  CHECK(OpenError(Safetensors(overlap, std::string(24, '\0'))).find("overlap") != std::string::npos);
  const std::string foreign = "{" + entry("a", "I64", "[3]", "[0,16]") + "}";
  CHECK(OpenError(Safetensors(foreign, data)).find("does not fit") != std::string::npos);
  const std::string unknown = "{" + entry("a", "X7", "[3]", "[0,17]") + "}";
  CHECK(OpenError(Safetensors(unknown, data)).find("is not in the file") != std::string::npos);
  std::string length = Safetensors(good, data);
  length[7] = '\x7f';
  CHECK(OpenError(length).find("a header of") != std::string::npos);
  CHECK(OpenError(Safetensors(std::string(100000, '['), data)).find("neither") != std::string::npos);
  CHECK(OpenError(Safetensors("{\"a\":" + std::string(100000, '['), data)).find("nested more than 16") !=
        std::string::npos);
  CHECK(OpenError(Safetensors("{\"a\":", data)).find("no JSON") != std::string::npos);
  CHECK(OpenError(Safetensors(good, data + "more")).find("is in no tensor") != std::string::npos);
  const std::string twice =
      "{" + entry("a", "F32", "[4]", "[0,16]") + "," + entry("a", "F32", "[4]", "[0,16]");
  CHECK(OpenError(Safetensors(twice + "}", data)).find("\"a\" is there twice") != std::string::npos);
  // A header whose length is the letters PK.
  const std::string letters = good + std::string('P' + 256 * 'K' - good.size(), ' ');
  CHECK(OpenError(Safetensors(letters, data)) == "");
  CHECK(OpenError("short").find("too short") != std::string::npos);
}

TEST_CASE("import: what describes the tensors is at most 16 MiB") {
  const size_t most = 16 << 20;
  const std::string data(16, '\0');
  std::string header = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}";
  header.resize(most, ' ');
  CHECK(OpenError(Safetensors(header, data)) == "");
  CHECK(OpenError(Safetensors(header + " ", data))
            .find("byte 0: a header of 16777217 bytes; must be at most 16777216") != std::string::npos);
  zip::End end;
  end.directory = 0;
  end.directory_bytes = most + 1;
  std::string archive(most + 1, '\0');
  std::memcpy(archive.data(), &zip::kLocal, sizeof zip::kLocal);
  archive.append(reinterpret_cast<const char*>(&end), sizeof end);
  CHECK(OpenError(archive).find("a directory of 16777217 bytes; must be at most 16777216") !=
        std::string::npos);
}

TEST_CASE("import: other names and shapes are told with both, all at once, and what was meant") {
  const Exported exported;
  const std::string path = exported.Write("model.npz", WriteNpz);
  const Layout larger = SmallLayout(1, 7);
  const std::string shapes = ErrorOf([&] { TakeTensors(OpenTensorFile(path).get(), path, larger, {}); });
  CHECK(shapes ==
        path +
            ": weights/W1 is 5 x 3 in the file and 7 x 3 in the model. Set model.inputs, model.hidden "
            "and model.outputs as the file has them.");
  Layout renamed = SmallLayout(1);
  renamed.variables[0].name = "weights/W2";
  const std::string names = ErrorOf([&] { TakeTensors(OpenTensorFile(path).get(), path, renamed, {}); });
  CHECK(names.find("no tensor weights/W2 (5 x 3 in the model); it has") != std::string::npos);
  CHECK(names.find("Did you mean weights/W1? Rename it: --map THEIRS=weights/W2.") != std::string::npos);
  CHECK(TakeTensors(OpenTensorFile(path).get(), path, renamed, {{"weights/W1=weights/W2"}}).unused.empty());
  const std::string maps = ErrorOf([&] {
    TakeAll(path, {{"kernel=weights/W1", "biases/b1=biases/b9", "nothing"}});
  });
  CHECK(maps.find("--map kernel=weights/W1: " + path + " has no tensor kernel; it has") != std::string::npos);
  CHECK(maps.find(
            "the model has no tensor biases/b9; it has weights/W1 and biases/b1. Did you mean biases/b1?") !=
        std::string::npos);
  const std::string twice = ErrorOf([&] {
    TakeAll(path, {{"biases/b1=biases/b1", "weights/W1=biases/b1"}});
  });
  CHECK(twice ==
        "--map weights/W1=biases/b1: biases/b1 is to be biases/b1 already. Leave out one of the two.");
  CHECK(maps.find("--map nothing: must be THEIRS=OURS.") != std::string::npos);
  CHECK(ErrorOf([&] { TakeAll(path, {{}, true}); }).find("Leave out --transpose.") != std::string::npos);
}

TEST_CASE("import: [outputs, inputs] is said, and turned where it is asked for") {
  std::string data;
  for (int i = 0; i < 18; ++i) {
    const auto value = static_cast<float>(i);
    data.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const std::string path = NewDirectory() + "/torch";
  WriteBytes(path, Safetensors("{\"weights/W1\":{\"dtype\":\"F32\",\"shape\":[3,5],\"data_offsets\":[0,60]},"
                               "\"biases/b1\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[60,72]}}",
                               data));
  CHECK(ErrorOf([&] { TakeAll(path); }).find("Add --transpose.") != std::string::npos);
  const TakenTensors taken = TakeAll(path, {{}, true});
  CHECK(taken.values[1] == 5);  // [0, 1] of ours is [1, 0] of theirs
  CHECK(taken.values[3] == 1);
  CHECK(taken.values[15] == 15);  // the biases
}

// What the bits of a float16 mean (IEEE 754).
float OfFloat16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31  ? INFINITY
                     : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                     : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

float OfBfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

TEST_CASE("import: F16 and BF16 are the same numbers as float32, subnormal, the largest and infinite ones") {
  const std::vector<uint16_t> bits = {0x0000, 0x8000, 0x0001, 0x03ff, 0x8001, 0x0400, 0x3c00, 0xbc00, 0x3555,
                                      0x7bff, 0xfbff, 0x4248, 0x7800, 0x0200, 0xb266, 0x7f7f, 0x0080, 0x5640};
  for (const bool brain : {false, true}) {
    std::vector<uint16_t> values = bits;
    std::vector<float> expected;
    if (!brain) values[15] = 0x7c00, values[16] = 0xfc00;
    for (const uint16_t value : values) expected.push_back(brain ? OfBfloat16(value) : OfFloat16(value));
    const std::string header = fmt::format(
        "{{\"weights/W1\":{{\"dtype\":\"{0}\",\"shape\":[5,3],\"data_offsets\":[0,30]}},"
        "\"biases/b1\":{{\"dtype\":\"{0}\",\"shape\":[3],\"data_offsets\":[30,36]}}}}",
        brain ? "BF16" : "F16");
    const std::string path = NewDirectory() + "/half";
    WriteBytes(path, Safetensors(header, std::string(reinterpret_cast<const char*>(values.data()), 36)));
    const TakenTensors taken = TakeAll(path);
    const Layout layout = SmallLayout(1);
    for (const Variable& variable : layout.variables) {
      const size_t first = variable.name == "biases/b1" ? 15 : 0;
      CHECK(std::memcmp(taken.values.data() + variable.offset, expected.data() + first,
                        static_cast<size_t>(variable.size()) * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("import: a float64 beyond float32 is told with its own value, and one that rounds to it is taken") {
  std::vector<double> values(18);
  values[7] = -1e299;
  const auto error = [&] {
    const std::string path = NewDirectory() + "/double";
    const char* const header = R"({"weights/W1":{"dtype":"F64","shape":[5,3],"data_offsets":[0,120]},)"
                               R"("biases/b1":{"dtype":"F64","shape":[3],"data_offsets":[120,144]}})";
    WriteBytes(path, Safetensors(header, std::string(reinterpret_cast<const char*>(values.data()), 144)));
    const std::string text = ErrorOf([&] { TakeAll(path); });
    return text.substr(std::min(text.size(), path.size()));
  };
  CHECK(
      error() ==
      ": weights/W1[2, 1] is -1e+299 in the file; weights are float32, which ends at 3.40282e+38. Is it the "
      "right file?");
  values[7] = 3.4028235e38;
  CHECK(error() == "");
}

TEST_CASE("export: ONNX names each encoding that is not in its graph, with the columns") {
  const Exported exported;
  CheckpointReader checkpoint(exported.path);
  Config config;
  config.model.kind = ModelKind::kSoftmax;
  config.model.inputs = 5;
  config.model.outputs = 3;
  InputForm form;
  InputColumn plan, country, signup, age;
  plan.name = "plan";
  country.name = "country";
  plan.is_category = country.is_category = true;
  signup.name = "signup";
  signup.is_date = true;
  age.name = "age";
  age.fill = signup.fill = 40;
  age.has_indicator = true;
  form.columns = {plan, country, signup, age};
  const ExportedModel model{config, form, false, checkpoint, ModelVariables(config.model)};
  const std::string expected =
      "country: a feature for each text, 0 or 1 (data.categories); signup: days since 1970 (data.dates); "
      "signup and age: a number for a missing value (data.missing); age: a feature that says where values "
      "were missing (data.missing)";
  CHECK(model.EncodingsText() == "plan and " + expected);
  OutputFile file(exported.root + "/model.onnx");
  WriteOnnx(model, &file);
  file.Finish();
  CHECK(FileContent(exported.root + "/model.onnx").find("Not in the graph: plan and " + expected + ".") !=
        std::string::npos);
  CHECK(FileContent(exported.Write("plain.onnx", WriteOnnx)).find("Not in the graph") == std::string::npos);
}

}  // namespace
}  // namespace dtrain::testing
