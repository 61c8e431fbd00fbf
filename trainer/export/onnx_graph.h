// OnnxGraph: builds an ONNX graph node by node; and the parts of a model's graph that are not layers. Names
// are given once: who asks for one that is taken gets another. Owner: WriteOnnx(). Thread: one.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/export/exported_model.h"
#include "trainer/export/onnx.pb.h"

namespace dtrain {

// The operators that look up texts.
constexpr char kTextDomain[] = "ai.onnx.ml";

class OnnxGraph {
 public:
  using Attribute = std::pair<const char*, std::variant<int64_t, std::string>>;

  explicit OnnxGraph(onnx::Graph* graph) : graph_(*graph) {}

  // Keeps a name for an output that comes later.
  void Reserve(const std::string& name) { names_.insert(name); }
  // Adds an input: [batch, columns]. Returns its name.
  std::string Input(const std::string& name, onnx::DataType type, int64_t columns,
                    const std::string& text = "");
  // Adds an output: [batch, columns], or [batch] if `columns` is 0.
  void Output(const std::string& name, onnx::DataType type, int64_t columns);

  // Adds a node and returns its output's name; if none is given, it is `op` and a number.
  std::string Add(const char* op, const std::vector<std::string>& inputs,
                  const std::vector<Attribute>& attributes = {}, std::string output = "");
  // Adds the parts of texts, along a new last dimension.
  std::string Split(const std::string& texts, const std::string& separator);
  // Adds the number of each text, in the place of its key; `other` for all texts that are no key.
  std::string Lookup(const std::string& texts, const std::vector<std::string>& keys,
                     const std::vector<float>& numbers, float other);

  // Adds an empty constant tensor, to be filled by its raw data.
  onnx::Tensor* Constant(const std::string& name, onnx::DataType type, const std::vector<int64_t>& shape);
  // Adds a vector of float, double, int64_t or std::string.
  template <typename T>
  std::string Constant(const std::string& name, const std::vector<T>& values);

 private:
  std::string NewName(const std::string& name);

  onnx::Graph& graph_;
  std::set<std::string> names_;
};

template <typename T>
std::string OnnxGraph::Constant(const std::string& name, const std::vector<T>& values) {
  constexpr auto kType = std::is_same_v<T, float>     ? onnx::FLOAT
                         : std::is_same_v<T, double>  ? onnx::DOUBLE
                         : std::is_same_v<T, int64_t> ? onnx::INT64
                                                      : onnx::STRING;
  onnx::Tensor* const tensor = Constant(name, kType, {static_cast<int64_t>(values.size())});
  if constexpr (kType == onnx::STRING) {
    for (const std::string& value : values) tensor->add_string_data(value);
  } else {
    tensor->set_raw_data(values.data(), values.size() * sizeof(T));
  }
  return tensor->name();
}

// Adds an input for each column of the table, and what makes features of them as CsvRows does. Returns the
// features, [batch, inputs]. A value that CsvRows refuses gives NaN. (onnx_columns.cc)
std::string AddColumns(const ExportedModel& model, OnnxGraph* graph);

}  // namespace dtrain
