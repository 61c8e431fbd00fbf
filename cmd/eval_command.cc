#include "cmd/eval_command.h"

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/plural.h"
#include "cmd/checkpoint_argument.h"
#include "cmd/load_config.h"
#include "cmd/result_file.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/data/source.h"
#include "trainer/device/choice.h"
#include "trainer/device/make_model.h"
#include "trainer/task/memory_need.h"
#include "trainer/task/run_task.h"
#include "trainer/worker/evaluate.h"

namespace dtrain {
namespace {

struct Outcome {
  Evaluation evaluation;
  std::string model_crc;
};

// The weights in the order of `layout`, and their checksum.
std::vector<float> ReadWeights(const Layout& layout, CheckpointReader* checkpoint, std::string* model_crc) {
  std::vector<float> weights(static_cast<size_t>(layout.size));
  std::vector<ModelPart> parts;
  for (const Variable& variable : layout.variables) {
    float* values = weights.data() + variable.offset;
    checkpoint->Read(variable.name, CheckpointReader::kWeights, 0, variable.size(), values);
    const size_t bytes = static_cast<size_t>(variable.size()) * sizeof(float);
    parts.push_back({variable.name, 0, bytes, Crc32cExtend(0, values, bytes)});
  }
  *model_crc = ModelChecksum(std::move(parts));
  return weights;
}

Outcome Evaluate(Config config, const DeviceChoice& devices, CheckpointReader* checkpoint) {
  ResolveModelShape(PeekShape(config), &config);
  config.placement = PlacementConfig();  // all in one place
  const Layout layout = MakeLayout(config, 1);
  checkpoint->CheckFits(layout, checkpoint->manifest().slots);  // whatever the optimizer
  CheckFits(DataNeed(EstimateDataSize(config), "dtrain eval, which reads the data,"));
  PrepareProcess(config);
  const LoadedData data = LoadData(config);
  const std::unique_ptr<BatchSource> source = EvaluationSource(config, data);
  if (source == nullptr) {
    throw UserError(
        "there is nothing to evaluate on (no data.test). Set data.test, or eval.on to validation and "
        "data.validation.");
  }
  Outcome outcome;
  const std::vector<float> weights = ReadWeights(layout, checkpoint, &outcome.model_crc);
  const int64_t test_rows = data.test == nullptr ? 0 : data.test->rows().value_or(0);
  const int64_t most_rows = MaxBatchRows(config, data.train->rows(), test_rows);
  const auto model = MakeModelOn(devices, config, layout, most_rows, nullptr);
  model->Arrived(weights.data(), {0, layout.size});
  outcome.evaluation = EvaluateAll(*model, weights.data(), *source, [] {});
  return outcome;
}

void Print(const Config& config, const std::string& path, int64_t step, const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  fmt::print("{}: global step {}, model crc {}\n", path, step, outcome.model_crc);
  fmt::print("{} loss {:.6g}{} of {}\n", config.eval.on == EvalOn::kTest ? "test" : "validation",
             evaluation.loss(),
             evaluation.classifies ? fmt::format(", accuracy {:.4f},", evaluation.accuracy()) : "",
             Plural(evaluation.rows, "row"));
}

int Run(const EvalArguments& arguments, NewRuntime new_runtime, const ErrorLines& errors,
        ResultFile* result) {
  CheckpointReader checkpoint(FindCheckpoint(arguments.path, errors));
  ConfigArguments from = arguments.config;
  if (from.path.empty()) {
    checkpoint.Config();  // verified
    from.path = checkpoint.path() + "/" + kConfigName;
  }
  LoadOptions options;
  options.cluster_optional = true;
  if (from.dump) return DumpEffectiveConfig(from, options);
  const Config config = LoadConfig(from.path, from.sets, options);
  const std::unique_ptr<gpu::cuda::Runtime> runtime = new_runtime();
  const DeviceChoice devices = ChooseDevices(config.device, *runtime);
  if (devices.warn) errors.Print(devices.why_cpu);
  const Outcome outcome = Evaluate(config, devices, &checkpoint);
  const int64_t step = checkpoint.manifest().step;
  Print(config, checkpoint.path(), step, outcome);
  RunSummary summary;
  summary.status = "done";
  summary.global_step = step;
  summary.test_loss = outcome.evaluation.loss();
  if (outcome.evaluation.classifies) summary.test_accuracy = outcome.evaluation.accuracy();
  summary.model_crc = outcome.model_crc;
  summary.device = DevicesName(devices);
  summary.checkpoint = checkpoint.path();
  summary.wall_s = SecondsSinceStart();
  result->Write(summary);
  return 0;
}

}  // namespace

int RunEvalCommand(const EvalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors) {
  ResultFile result(arguments.result, errors);
  try {
    return Run(arguments, new_runtime, errors, &result);
  } catch (const Failure& failure) {
    result.WriteEnding(StatusOf(failure.code()));
    throw;
  }
}

}  // namespace dtrain
