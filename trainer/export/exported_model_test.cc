// What an exported file says of its weights is held against the config that they are imported for.
#include "trainer/export/exported_model.h"

#include <doctest/doctest.h>

#include <map>

#include "base/json.h"
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

// What the files of a model say of it.
std::map<std::string, std::string> MetadataOf(const Config& config, const InputForm& form) {
  CheckpointDirectory directory(NewDirectory() + "/ckpt");
  directory.Prepare();
  CheckpointReader checkpoint(SaveSmall(&directory, SmallCheckpoint()));
  const ExportedModel model{config, form, TakesPixels(config), checkpoint, {}};
  const auto all = model.Metadata();
  return {all.begin(), all.end()};
}

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

// A category with gaps and others, and a number whose gaps are told: five features.
InputForm ColumnsForm(bool named) {
  InputColumn plan, age;
  plan.column = 3;
  plan.is_category = plan.has_other = true;
  plan.categories = {"", "missing"};  // the features of both are called "plan=missing"
  age.column = 1;
  age.fill = 1.0 / 3;
  age.has_indicator = true;
  if (named) plan.name = "plan", age.name = "age";
  InputForm form;
  form.columns = {plan, age};
  for (const InputColumn& column : form.columns) {
    for (const std::string& name : FeatureNamesOf(column)) form.features.push_back(name);
  }
  return form;
}

TEST_CASE("file meaning: how columns become features comes back, with names and without") {
  for (const bool named : {true, false}) {
    CAPTURE(named);
    Config config = SmallConfig();
    config.data.categories = {named ? "plan" : "3"};
    config.data.missing = MissingValues::kIndicator;
    config.data.missing_values = {"unknown"};
    const InputForm form = ColumnsForm(named);
    const std::optional<FileMeaning> meaning = Exported(config, form);
    REQUIRE(meaning);
    CHECK(meaning->form.columns == form.columns);
    CHECK(RefusalOf(*meaning, config, form) == "");
    Config other = config;
    other.data.missing = MissingValues::kZero;
    CHECK(RefusalOf(*meaning, other, form).find("data.missing = zero; must be indicator") !=
          std::string::npos);
    other = config;
    other.data.categories.clear();
    CHECK(RefusalOf(*meaning, other, form).find("data.categories = ") != std::string::npos);
  }
}

TEST_CASE("file meaning: columns are data of their own also where their names are alike") {
  InputForm form;
  form.features = {"a", "a"};
  CHECK(Json::Parse(MetadataOf(SmallConfig(), form).at("table_columns")) ==
        Json::Parse(R"([{"kind":"number","name":"a"},{"kind":"number","name":"a"}])"));
}

TEST_CASE("file meaning: every kind of model has its head") {
  Config config = SmallConfig();
  const std::pair<ModelKind, const char*> heads[] = {
      {ModelKind::kLinear, "linear"}, {ModelKind::kLogistic, "logistic"}, {ModelKind::kSoftmax, "softmax"}};
  for (const auto& [kind, head] : heads) {
    config.model.kind = kind;
    CHECK(MetadataOf(config, InputForm()).at("model.head") == head);
  }
  for (const ModelKind kind : {ModelKind::kMlp, ModelKind::kFm, ModelKind::kWideDeep}) {
    config.model.kind = kind;
    config.model.head = ModelHead::kLinear;
    CHECK(MetadataOf(config, InputForm()).at("model.head") == "linear");
  }
}

TEST_CASE("file meaning: the first index of libsvm's rows is said of dense models too") {
  Config config = SmallConfig();
  config.data.train.format = DataFormat::kLibsvm;
  config.data.index_base = 0;
  for (const ModelKind kind : {ModelKind::kLogistic, ModelKind::kMlp}) {
    config.model.kind = kind;
    const auto said = MetadataOf(config, InputForm());
    CHECK(said.at("data.train.format") == "libsvm");
    CHECK(said.at("data.index_base") == "0");
  }
  CHECK(MetadataOf(SmallConfig(), InputForm()).count("data.index_base") == 0);
}

TEST_CASE(
    "file meaning: of a table with hashed columns each has its kind, what fills its gaps, and its seed") {
  Config config = SmallConfig();
  config.model.kind = ModelKind::kLogistic;
  config.data.hash = {"town"};
  config.data.dates = {"since=DD.MM.YYYY"};
  config.data.missing = MissingValues::kZero;
  config.data.missing_values = {"town=nowhere"};
  InputForm form;
  form.table_columns = 4;
  const char* const names[] = {"size", "since", "town"};
  for (int64_t i = 0; i < 3; ++i) form.columns.emplace_back().column = i, form.columns.back().name = names[i];
  const auto said = MetadataOf(config, form);
  CHECK(said.at("data.hash_bits") == "18");
  const Json columns = Json::Parse(said.at("table_columns"));
  CHECK(columns[0] ==
        Json({{"column", 0}, {"name", "size"}, {"kind", "number"}, {"seed", "size"}, {"missing", 0}}));
  CHECK(columns[1].at("kind") == "date");
  CHECK(columns[1].at("form") == "DD.MM.YYYY");
  CHECK(columns[2] == Json({{"column", 2},
                            {"name", "town"},
                            {"kind", "hashed"},
                            {"seed", "town"},
                            {"missing_values", {"nowhere"}}}));
  config.data.hash = {"2"};
  form.columns[2].name.clear();
  const Json nameless = Json::Parse(MetadataOf(config, form).at("table_columns"));
  CHECK(nameless[2].at("kind") == "hashed");
  CHECK(nameless[2].at("seed") == "2");
}

TEST_CASE("file meaning: another kind of scale, feature or class is refused as a checkpoint's is") {
  Config config = SmallConfig();
  config.data.scale = FeatureScale::kStandard;
  const InputForm form = SmallForm();
  const FileMeaning saved = *Exported(config, form);
  const auto has = [](const std::string& error, const char* text) {
    CAPTURE(error);
    CHECK(error.find(kPath + ": another model: ") == 0);
    CHECK(error.find("or take the weights alone, from an npz file") != std::string::npos);
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
  turned.classes[1] = "pine";
  has(RefusalOf(saved, config, turned), "class 1 is \"oak\" in the file and \"pine\" in data.train");
}

TEST_CASE("file meaning: the order of classes is the file's, where the rows would give another") {
  InputForm form;
  form.classes = {"elm", "oak\xff", "10"};  // the second is no UTF-8
  const FileMeaning saved = *Exported(SmallConfig(), form);
  CHECK(ClassesOf(saved, form.classes) == form.classes);
  InputForm turned = form;
  turned.classes = {"10.0", "elm", "oak\xff"};
  CHECK(RefusalOf(saved, SmallConfig(), turned) == "");
  CHECK(ClassesOf(saved, turned.classes) == form.classes);
  turned.classes = {"oak\xff", "elm"};  // rows of now may lack classes
  CHECK(ClassesOf(saved, turned.classes) == form.classes);
  CHECK(ClassesOf(*Exported(SmallConfig(), InputForm()), turned.classes) == turned.classes);
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
