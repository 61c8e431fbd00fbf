// OnnxGraph: a graph of ONNX, node by node: each node's output is the next one's input unless said otherwise.
// Owner: WriteOnnx. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/export/onnx.pb.h"

namespace dtrain {

class OnnxGraph {
 public:
  explicit OnnxGraph(onnx::Graph* graph) : graph_(*graph) {}

  // [batch, columns], or [batch] where `columns` is 0; float32 or int64.
  void Input(const std::string& name, int64_t columns);
  void Output(const std::string& name, onnx::DataType type, int64_t columns);

  // Adds a node and returns its output's name, `op` and a number where none is given.
  std::string Add(const char* op, const std::vector<std::string>& inputs,
                  const std::vector<std::pair<const char*, int64_t>>& attributes = {},
                  std::string output = "");
  // An empty constant tensor, to be filled by its raw data. Returns its name.
  onnx::Tensor* Constant(const std::string& name, onnx::DataType type, const std::vector<int64_t>& shape);
  template <typename T>
  std::string Constant(const std::string& name, onnx::DataType type, const std::vector<T>& values) {
    Constant(name, type, {static_cast<int64_t>(values.size())})
        ->set_raw_data(values.data(), values.size() * sizeof(T));
    return name;
  }

 private:
  static void SetType(onnx::ValueInfo* value, onnx::DataType type, int64_t columns);

  onnx::Graph& graph_;
};

}  // namespace dtrain
