#include "trainer/config/model_fields.h"

#include <string>

#include "trainer/config/field_row.h"

namespace dtrain {
namespace {

constexpr Scope kRun = Scope::kRun;
constexpr Scope kTask = Scope::kTask;
constexpr Limits kFromZero = {0};
constexpr Limits kFromOne = {1};

// The keys of data.train and data.test. `at` leads from a Config to the source.
template <typename At>
std::vector<Field> SourceFields(const std::string& section, At at) {
  const std::string format = section + ".format";
  const bool train = section == "data.train";
  const Field kind = Choice(
      format, [at](auto& config) -> auto& { return at(config).format; }, kRun,
      {{"idx", DataFormat::kIdx}, {"csv", DataFormat::kCsv}, {"synthetic", DataFormat::kSynthetic}},
      train ? "What workers train on. idx: MNIST's form, plain or gzip, bytes / 255; csv: numbers and a "
              "label, separated by commas; synthetic: made here."
            : "What is evaluated on; as for data.train.");
  return {
      train ? kind.Required() : kind.Unset("no test set"),
      Row(
          section + ".path", [at](auto& config) -> auto& { return at(config).path; }, FieldType::kInputPath,
          kTask, "The CSV file, plain or gzip.")
          .Try("table.csv")
          .Required()
          .OnlyWith(format, "csv"),
      Row(
          section + ".label", [at](auto& config) -> auto& { return at(config).label; }, FieldType::kText,
          kRun,
          "The column of labels: its name in the header, or its number; the first is 0. All others are "
          "features. Labels are numbers, or for classes names: these count from 0 in their sorted order.")
          .Unit("a column's name, or its number")
          .Try("0")
          .Required()
          .OnlyWith(format, "csv"),
      Flag(
          section + ".header", [at](auto& config) -> auto& { return at(config).header; }, kRun,
          "Whether the first line names the columns.")
          .OnlyWith(format, "csv"),
      Row(
          section + ".images", [at](auto& config) -> auto& { return at(config).images; },
          FieldType::kInputPath, kTask, "The IDX file of images.")
          .Try("train-images-idx3-ubyte.gz")
          .Required()
          .OnlyWith(format, "idx"),
      Row(
          section + ".labels", [at](auto& config) -> auto& { return at(config).labels; },
          FieldType::kInputPath, kTask, "The IDX file of labels.")
          .Try("train-labels-idx1-ubyte.gz")
          .Required()
          .OnlyWith(format, "idx"),
      Choice(
          section + ".name", [at](auto& config) -> auto& { return at(config).name; }, kRun,
          {{"linear", SyntheticName::kLinear}, {"digits", SyntheticName::kDigits}},
          "linear: y = 2 x + 10 and noise; digits: drawn digits of 28 x 28 pixels with noise, 10 classes.")
          .Required()
          .OnlyWith(format, "synthetic"),
      Number(
          section + ".rows", [at](auto& config) -> auto& { return at(config).rows; }, kRun, {1, 1e12},
          "How many rows are made.")
          .Unit("rows")
          .Try("10000")
          .Unset(train ? "linear: without end; digits: the drawing's own number"
                       : "digits: the drawing's own number")
          .OnlyWith(format, "synthetic"),
  };
}

std::vector<Field> CommonDataFields() {
  return {
      Number(DT_KEY(data.validation), kRun, kFromZero, "The first N training rows are held out.")
          .Unit("rows held out: their number, no fraction")
          .Try("100"),
      Choice(
          DT_KEY(data.split), kRun,
          {{"shard", Split::kShard}, {"full", Split::kFull}, {"feed", Split::kFeed}},
          "shard: each worker trains on its own 1/n of the rows; full: each on all of them; feed: as shard, "
          "but worker 0 alone reads data and sends the others their batches."),
      Flag(DT_KEY(data.shuffle), kRun, "Another order of the rows in each epoch."),
      Number(DT_KEY(data.seed), kRun, kFromZero, "Seed of the order and of synthetic data."),
      Choice(DT_KEY(data.last_batch), kRun, {{"keep", LastBatch::kKeep}, {"drop", LastBatch::kDrop}},
             "What happens to the short batch at the end of an epoch."),
      Choice(DT_KEY(data.scale), kRun,
             {{"none", FeatureScale::kNone},
              {"unit", FeatureScale::kUnit},
              {"standard", FeatureScale::kStandard}},
             "How features are scaled, fitted on the training rows without those held out. unit: least to "
             "greatest become 0 to 1; standard: mean 0, standard deviation 1.")
          .OnlyWith("data.train.format", "csv"),
      Choice(DT_KEY(data.cache), kTask, {{"memory", DataCache::kMemory}, {"device", DataCache::kDevice}},
             "Where a worker keeps its training rows. device: in the memory of its GPU too, if they fit; a "
             "step then sends the numbers of its rows and not the rows. Without a GPU it is memory."),
  };
}
}  // namespace

std::vector<Field> ModelFields() {
  return {
      Choice(DT_KEY(model.kind), kRun,
             {{"linear", ModelKind::kLinear},
              {"logistic", ModelKind::kLogistic},
              {"softmax", ModelKind::kSoftmax},
              {"mlp", ModelKind::kMlp}},
             "linear: mean squared error; logistic: labels 0 and 1; softmax: labels 0 to outputs - 1; mlp: "
             "softmax behind hidden layers.")
          .Required(),
      Number(DT_KEY(model.inputs), kRun, {1, 1e12}, "Features of one row.")
          .Unit("features of one row")
          .Try("784")
          .Unset("as the data says"),
      Number(DT_KEY(model.outputs), kRun, {1, 1e6},
             "Outputs; the number of classes for softmax and mlp. With CSV it must be given.")
          .Unit("outputs")
          .Try("10")
          .Unset("1; 10 for softmax and mlp"),
      Numbers(DT_KEY(model.hidden), kRun, {1, 1e6}, "Units of each hidden layer, from the inputs on.")
          .Unit("units")
          .Try("[100]")
          .Required()
          .OnlyWith("model.kind", "mlp"),
      Choice(DT_KEY(model.activation), kRun,
             {{"sigmoid", Activation::kSigmoid}, {"tanh", Activation::kTanh}, {"relu", Activation::kRelu}},
             "What hidden layers apply to their outputs.")
          .OnlyWith("model.kind", "mlp"),
      Choice(DT_KEY(model.init.kind), kRun,
             {{"zeros", InitKind::kZeros},
              {"constant", InitKind::kConstant},
              {"normal", InitKind::kNormal},
              {"glorot", InitKind::kGlorot}},
             "Initial weights. normal: mean 0; glorot: uniform, by the numbers of inputs and outputs.")
          .Unset("zeros; glorot for mlp"),
      Number(DT_KEY(model.init.value), kRun, {-1e30, 1e30}, "The initial weight of constant.")
          .Try("0.5")
          .Required()
          .OnlyWith("model.init.kind", "constant"),
      Number(DT_KEY(model.init.stddev), kRun, {0, 1e30, true}, "Standard deviation of normal.")
          .OnlyWith("model.init.kind", "normal"),
      Number(DT_KEY(model.init.seed), kRun, kFromZero,
             "Seed of the initial weights: the same seed gives the same weights, however they are placed."),
      Choice(DT_KEY(model.init.bias), kRun, {{"same", BiasInit::kSame}, {"zeros", BiasInit::kZeros}},
             "Initial biases. same: drawn as the weights are."),
  };
}

std::vector<Field> DataFields() {
  std::vector<Field> all = SourceFields(
      "data.train", [](auto& config) -> auto& { return config.data.train; });
  for (const auto& part : {SourceFields(
                               "data.test", [](auto& config) -> auto& { return config.data.test; }),
                           CommonDataFields()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace dtrain
