// What an exported file says of its weights is held against the config that they are imported for.
#include "trainer/export/exported_model.h"

#include <doctest/doctest.h>

#include "trainer/config/config.h"
#include "trainer/export/export_test_util.h"
#include "trainer/model/model.h"

namespace dtrain::testing {
namespace {

Config SmallConfig() {
  Config config;
  config.model.kind = ModelKind::kSoftmax;
  config.model.inputs = 5;
  config.model.outputs = 3;
  config.data.train.format = DataFormat::kCsv;
  return config;
}

const std::string kPath = "model.safetensors";

// The meaning of a file that a model of `config` and `form` is exported to.
std::optional<FileMeaning> Exported(const Config& config, const InputForm& form) {
  const std::string root = NewDirectory();
  CheckpointDirectory directory(root + "/ckpt");
  directory.Prepare();
  CheckpointReader checkpoint(SaveSmall(&directory, SmallCheckpoint()));
  const ExportedModel model{config, form, TakesPixels(config), checkpoint, ModelVariables(config.model)};
  OutputFile file(root + "/" + kPath);
  WriteSafetensors(model, &file);
  file.Finish();
  return MeaningOf(*OpenTensorFile(root + "/" + kPath), kPath);
}

// The meaning of a file with `metadata`, the members of a JSON object, and nothing else.
std::optional<FileMeaning> WithMetadata(const std::string& metadata) {
  const std::string path = NewDirectory() + "/" + kPath;
  WriteBytes(path, Safetensors("{\"__metadata__\":" + metadata + "}", ""));
  return MeaningOf(*OpenTensorFile(path), kPath);
}

std::string RefusalOf(const FileMeaning& saved, const Config& config, const InputForm& form) {
  return ErrorOf([&] { CheckMeaning(kPath, saved, config, form); });
}

InputForm SmallForm() {
  InputForm form;
  form.features = {"a", "b \"quoted\"", "c\xff", "d", "e"};  // the third is no UTF-8
  form.classes = {"elm", "oak", "yew"};
  form.scale = {{0.1, 1e-300, -5, 1.0 / 3, 0}, {1, 2, 1e300, 0.7, 0}};
  return form;
}

TEST_CASE("file meaning: what was exported comes back, and is the same model") {
  Config config = SmallConfig();
  const InputForm form = SmallForm();
  for (const FeatureScale kind : {FeatureScale::kUnit, FeatureScale::kStandard}) {
    config.data.scale = kind;
    const std::optional<FileMeaning> meaning = Exported(config, form);
    REQUIRE(meaning);
    CHECK(meaning->form.classes == form.classes);
    CHECK(meaning->form.scale == form.scale);
    CHECK(meaning->config.data.scale == kind);
    CHECK(RefusalOf(*meaning, config, form) == "");
  }
  for (const DataFormat format : {DataFormat::kCsv, DataFormat::kIdx}) {
    Config plain = SmallConfig();
    plain.data.train.format = format;
    const std::optional<FileMeaning> meaning = Exported(plain, InputForm());
    REQUIRE(meaning);
    CHECK(RefusalOf(*meaning, plain, InputForm()) == "");
  }
}

TEST_CASE("file meaning: another kind of scale, feature or class is refused as a checkpoint's is") {
  Config config = SmallConfig();
  config.data.scale = FeatureScale::kStandard;
  const InputForm form = SmallForm();
  const FileMeaning saved = *Exported(config, form);
  const auto has = [](const std::string& error, const char* text) {
    CAPTURE(error);
    CHECK(error.find(kPath + ": another model: ") == 0);
    CHECK(error.find("or take the weights alone, as an npz file") != std::string::npos);
    CHECK(error.find(text) != std::string::npos);
  };
  Config other = config;
  other.data.scale = FeatureScale::kNone;
  has(RefusalOf(saved, other, form), "data.scale = none; must be standard, as its weights were trained with");
  other.data.scale = FeatureScale::kUnit;
  has(RefusalOf(saved, other, form), "data.scale = unit; must be standard");
  other = config;
  other.model.kind = ModelKind::kMlp;
  has(RefusalOf(saved, other, form), "model.kind = mlp; must be softmax");
  Config tanh = config;
  tanh.model.kind = ModelKind::kMlp;
  tanh.model.hidden = {2};
  tanh.model.activation = Activation::kTanh;
  const FileMeaning of_relu =
      *WithMetadata(R"({"producer":"dtrain 1","model.kind":"mlp","model.activation":"relu"})");
  has(RefusalOf(of_relu, tanh, InputForm()), "model.activation = tanh; must be relu");
  InputForm turned = form;
  std::swap(turned.features[0], turned.features[1]);
  has(RefusalOf(saved, config, turned),
      "feature 0 is \"a\" in the file and \"b \\\"quoted\\\"\" in data.train");
  turned = form;
  std::swap(turned.classes[1], turned.classes[2]);
  has(RefusalOf(saved, config, turned), "class 1 is \"oak\" in the file and \"yew\" in data.train");
}

TEST_CASE("file meaning: bytes that are divided by 255 are no features of a CSV file, and the reverse") {
  Config images = SmallConfig();
  images.data.train.format = DataFormat::kIdx;
  const FileMeaning of_images = *Exported(images, InputForm());
  const FileMeaning of_rows = *Exported(SmallConfig(), InputForm());
  CHECK(RefusalOf(of_images, SmallConfig(), InputForm()).find("its features are bytes divided by 255, and") !=
        std::string::npos);
  CHECK(RefusalOf(of_rows, images, InputForm()).find("its features are not bytes divided by 255, as") !=
        std::string::npos);
}

TEST_CASE("file meaning: columns without names are told apart by where the label stands") {
  InputForm form;
  form.label_column = 5;
  const FileMeaning saved = *Exported(SmallConfig(), form);
  CHECK(RefusalOf(saved, SmallConfig(), form) == "");
  form.label_column = 0;
  CHECK(RefusalOf(saved, SmallConfig(), form)
            .find("the label is column 5 in the file and column 0 in data.train") != std::string::npos);
}

TEST_CASE("file meaning: an older export, which has the scale and not its kind, is of either") {
  const FileMeaning saved = *WithMetadata(R"({"producer":"dtrain 0.1.0","model.kind":"softmax",)"
                                          R"("scale":"{\"factor\":[1,1,1,1,1],\"shift\":[0,0,0,0,0]}"})");
  Config config = SmallConfig();
  CHECK(RefusalOf(saved, config, InputForm()).find("data.scale = none; must be standard") !=
        std::string::npos);
  for (const FeatureScale kind : {FeatureScale::kUnit, FeatureScale::kStandard}) {
    config.data.scale = kind;
    CHECK(RefusalOf(saved, config, InputForm()) == "");
  }
}

TEST_CASE("file meaning: what other programs say of their files stops nobody") {
  for (const char* metadata :
       {R"({"format":"pt"})", "{}", "[]", "null", "7", R"({"producer":"pytorch","model.kind":"resnet"})",
        R"({"scale":"2","features":"many","model.kind":"softmax"})",
        R"({"format":{"version":[1]},"n":null})"}) {
    CAPTURE(metadata);
    CHECK_FALSE(WithMetadata(metadata));
  }
}

TEST_CASE("file meaning: metadata of ours that cannot be read is told by its name") {
  const std::string deep(100000, '[');
  const struct {
    std::string members, expected;
  } cases[] = {
      {"", "there is no model.kind"},
      {R"("model.kind":"tree")", "model.kind = tree; must be linear, logistic, softmax"},
      {R"("model.kind":["mlp"])", "model.kind = [\"mlp\"]; must be "},
      {R"("model.kind":"mlp")", "there is no model.activation"},
      {R"("model.kind":"linear","features":"a,b")", "features = a,b; must be a list of names"},
      {R"("model.kind":"linear","features":"[1,2]")", "must be a list of names"},
      {R"("model.kind":"linear","classes":")" + deep + '"', "must be a list of names"},
      {R"("model.kind":"linear","scale":"{\"shift\":[1]}")", "must be the lists shift and factor"},
      {R"("model.kind":"linear","scale":"{\"shift\":[[[1]]],\"factor\":[1]}")", "must be the lists"},
      {R"("model.kind":"linear","scale":"{\"shift\":[1e999],\"factor\":[1]}")", "must be the lists"},
      {R"("model.kind":"linear","scale":"{\"divide_by\":7}")", "or to divide_by 255"},
      {R"("model.kind":"linear","scale":"{\"shift\":[1],\"factor\":[]}")", "1 shifts and 0 factors"},
      {R"("model.kind":"linear","data.scale":"unit")", "data.scale = unit, and there is no scale"},
      {R"("model.kind":"linear","label_column":"-2")", "label_column = -2; must be a number from 0"},
  };
  for (const auto& [members, expected] : cases) {
    CAPTURE(members);
    const std::string metadata = R"({"producer":"dtrain 9")" + (members.empty() ? "" : "," + members) + "}";
    const std::string error = ErrorOf([&] { WithMetadata(metadata); });
    CAPTURE(error);
    CHECK(error.find(kPath + ": __metadata__: ") == 0);
    CHECK(error.find(expected) != std::string::npos);
    CHECK(error.size() < 500);
  }
  FileMeaning two = *WithMetadata(R"({"producer":"dtrain 9","model.kind":"softmax","features":"[\"a\"]"})");
  CHECK(RefusalOf(two, SmallConfig(), InputForm())
            .find("names of 1 feature, and its tensors are of 5 features") != std::string::npos);
  two.form = InputForm();
  two.form.scale = {{1, 2}, {1, 2}};
  CHECK(RefusalOf(two, SmallConfig(), InputForm()).find("a scale of 2 features, and") != std::string::npos);
}

}  // namespace
}  // namespace dtrain::testing
