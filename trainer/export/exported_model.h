// ExportedModel: what all formats are written from: a checkpoint's tensors, read some at a time, and what
// else there is to say of the model. Owner: the command. Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/export/output_file.h"
#include "trainer/export/tensor_file.h"
#include "trainer/model/layout.h"

namespace dtrain {

// What the metadata's producer begins with, before the version.
constexpr char kProducer[] = "dtrain ";

// As a list of JSON; what is no UTF-8 is U+FFFD there.
std::string NamesText(const std::vector<std::string>& names);

struct ExportedModel {
  const Config& config;  // inputs and outputs are set
  const InputForm& form;
  bool pixels = false;  // raw inputs are 0 to 255 and become 0 to 1
  CheckpointReader& checkpoint;
  std::vector<Variable> variables;  // weights and biases of each layer in turn

  // The shape as other programs have it: a vector has one side.
  static std::vector<int64_t> ShapeOf(const Variable& variable);
  int64_t bytes() const;
  // Calls `take(values, count)` with all elements of a variable, a block at a time.
  template <typename Take>
  void ForEachBlock(const Variable& variable, Take take) const;
  // Names with texts that say what the model is, for formats with room for them. Lists are JSON.
  // file_meaning.h reads them.
  std::vector<std::pair<std::string, std::string>> Metadata() const;
};

template <typename Take>
void ExportedModel::ForEachBlock(const Variable& variable, Take take) const {
  constexpr int64_t kBlock = 1 << 18;  // 1 MiB, as pieces of checkpoints
  std::vector<float> values(static_cast<size_t>(std::min(kBlock, variable.size())));
  for (int64_t first = 0; first < variable.size(); first += kBlock) {
    const int64_t count = std::min(kBlock, variable.size() - first);
    checkpoint.Read(variable.name, CheckpointReader::kWeights, first, count, values.data());
    take(values.data(), count);
  }
}

// The formats that a model is exported to. Each is written to `file`, which the caller finishes, in bounded
// memory but for ONNX. docs/models.md describes what is in them.

// https://huggingface.co/docs/safetensors: 8 bytes with the length of a JSON header, the header, the tensors.
void WriteSafetensors(const ExportedModel& model, OutputFile* file);

// numpy.savez: a zip archive of .npy files, stored and not compressed.
void WriteNpz(const ExportedModel& model, OutputFile* file);

// One message (onnx.proto) from raw inputs to predictions, made in memory. UserError for a model of more than
// 2 GiB, the most that a protobuf message can be.
void WriteOnnx(const ExportedModel& model, OutputFile* file);

// What the metadata of a file that `dtrain export` wrote says of the model whose weights it has
// (ExportedModel::Metadata). Thread: any; free functions.
struct FileMeaning {
  Config config;  // model.kind, model.activation, data.train.format and data.scale; the rest is not known
  InputForm form;
  // An older export has the scale, and not which of the two kinds it is: config has one of them.
  bool any_scale = false;
};

// Unset: the file is of another program, or has no metadata. UserError where ours cannot be read. `path`: of
// the file.
std::optional<FileMeaning> MeaningOf(const TensorFile& file, const std::string& path);

// UserError naming the first key, feature or class of `config` and its data, `form`, that is another than the
// weights were trained with; as CheckMeaning() of a checkpoint does. The weights must be of the config's
// shapes.
void CheckMeaning(const std::string& path, const FileMeaning& saved, const Config& config,
                  const InputForm& form);

}  // namespace dtrain
