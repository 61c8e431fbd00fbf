// ExportedModel: the common source of all formats: a checkpoint's tensors, read a block at a time, and the
// metadata of the model. Owner: the command. Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/export/output_file.h"
#include "trainer/export/tensor_file.h"
#include "trainer/model/layout.h"

namespace dtrain {

// The prefix of the metadata's producer, before the version.
constexpr char kProducer[] = "dtrain ";

// Returns names as a JSON list; bytes that are not UTF-8 become U+FFFD.
std::string NamesText(const std::vector<std::string>& names);

// Returns the name of a column of the table; without one, its place in a row, counted from 1: "column 4".
std::string InputName(const InputColumn& column);

// Returns how the dates of a column are written, one of DateForms(); empty: it has none.
std::string DateFormOf(const InputColumn& column, const DataConfig& data);
// Returns what stands for a missing value of the column beside what IsMissing() knows (data.missing_values).
std::vector<std::string> MarkersOf(const InputColumn& column, const DataConfig& data);

struct ExportedModel {
  const Config& config;  // inputs and outputs are set
  const InputForm& form;
  bool pixels = false;  // raw inputs are 0 to 255 and become 0 to 1
  CheckpointReader& checkpoint;
  std::vector<Variable> variables;    // weights and biases of each layer in turn
  std::vector<float> table = {};      // of a table's model all of their values in turn; else they are read
  bool from_columns = false;          // of ONNX: the graph takes form.columns and makes features of them
  CheckpointReader* since = nullptr;  // of a table: an older checkpoint of the model, whose rows are there
                                      // already; null: all rows are exported
  // With `since`: its own, as `config`. Rows of features begin alike in both, the bias need not.
  const Config* since_config = nullptr;

  // Returns the shape for other programs, in which a vector has one dimension.
  static std::vector<int64_t> ShapeOf(const Variable& variable);
  int64_t bytes() const;
  // Calls `take(values, count)` for all elements of a variable, a block at a time.
  template <typename Take>
  void ForEachBlock(const Variable& variable, Take take) const;
  // Returns how rows become the features of a graph that begins with features: each encoding of
  // data.categories, data.dates and data.missing with its columns; empty: features are the columns. The scale
  // is none of them.
  std::string EncodingsText() const;
  // Returns the metadata as names and texts, for formats with room for it. Lists are JSON. MeaningOf() reads
  // it.
  std::vector<std::pair<std::string, std::string>> Metadata() const;
};

template <typename Take>
void ExportedModel::ForEachBlock(const Variable& variable, Take take) const {
  constexpr int64_t kBlock = 1 << 18;  // 1 MiB, as the pieces of checkpoints
  if (!table.empty()) {
    const float* values = table.data();
    for (size_t i = 0; variables[i].name != variable.name; ++i) values += variables[i].size();
    return take(values, variable.size());
  }
  std::vector<float> values(static_cast<size_t>(std::min(kBlock, variable.size())));
  for (int64_t first = 0; first < variable.size(); first += kBlock) {
    const int64_t count = std::min(kBlock, variable.size() - first);
    checkpoint.Read(variable.name, CheckpointReader::kWeights, first, count, values.data());
    take(values.data(), count);
  }
}

// The formats of dtrain export. Each function writes to `file`, which the caller finishes. Memory is bounded,
// except for ONNX. docs/models.md describes the content.

// An entry of a safetensors header.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};
// Returns what a safetensors file begins with; the entries follow in this order.
std::string SafetensorsHeader(const std::vector<std::pair<std::string, std::string>>& metadata,
                              const std::vector<SafetensorsEntry>& entries);

// https://huggingface.co/docs/safetensors: 8 bytes with the length of a JSON header, the header, the tensors.
void WriteSafetensors(const ExportedModel& model, OutputFile* file);

// numpy.savez: a zip archive of .npy files, stored and not compressed.
void WriteNpz(const ExportedModel& model, OutputFile* file);

// Writes one message (onnx.proto) from raw inputs to predictions, built in memory. Throws UserError for a
// model of more than 2 GiB, the limit of a protobuf message.
void WriteOnnx(const ExportedModel& model, OutputFile* file);

// FileMeaning: what the metadata of a file that `dtrain export` wrote says about the model whose weights it
// holds (ExportedModel::Metadata). Thread: any; free functions.
struct FileMeaning {
  Config config;  // model.kind, model.activation, model.head, data.train.format and data.scale; the rest is
                  // unknown
  InputForm form;
  // An older export has the scale but not its kind; config then has either kind.
  bool any_scale = false;
};

// Returns the metadata; nothing if the file is from another program or has none. Throws UserError if ours
// cannot be read. `path` is that of the file.
std::optional<FileMeaning> MeaningOf(const TensorFile& file, const std::string& path);

// Throws UserError with the first key, feature or class in which `config` and its data (`form`) differ from
// the weights' training, as CheckMeaning() for checkpoints does. The weights must have the config's shapes.
void CheckMeaning(const std::string& path, const FileMeaning& saved, const Config& config,
                  const InputForm& form);

// Returns the names of the classes in the order of the weights' outputs. `here`: those of the data, which
// CheckMeaning() has taken.
std::vector<std::string> ClassesOf(const FileMeaning& saved, const std::vector<std::string>& here);

}  // namespace dtrain
