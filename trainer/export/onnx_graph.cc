#include "trainer/export/onnx_graph.h"

namespace dtrain {

void OnnxGraph::SetType(onnx::ValueInfo* value, onnx::DataType type, int64_t columns) {
  onnx::TensorType* const tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape()->add_dim()->set_dim_param("batch");
  if (columns > 0) tensor->mutable_shape()->add_dim()->set_dim_value(columns);
}

void OnnxGraph::Input(const std::string& name, int64_t columns) {
  onnx::ValueInfo* const value = graph_.add_input();
  value->set_name(name);
  SetType(value, onnx::FLOAT, columns);
}

void OnnxGraph::Output(const std::string& name, onnx::DataType type, int64_t columns) {
  onnx::ValueInfo* const value = graph_.add_output();
  value->set_name(name);
  SetType(value, type, columns);
}

std::string OnnxGraph::Add(const char* op, const std::vector<std::string>& inputs,
                           const std::vector<std::pair<const char*, int64_t>>& attributes,
                           std::string output) {
  onnx::Node* const node = graph_.add_node();
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  if (output.empty()) output = op + std::to_string(graph_.node_size());
  node->set_name(output);
  node->add_output(output);
  for (const auto& [name, number] : attributes) {
    onnx::Attribute* const attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::Attribute::INT);
    attribute->set_i(number);
  }
  return output;
}

onnx::Tensor* OnnxGraph::Constant(const std::string& name, onnx::DataType type,
                                  const std::vector<int64_t>& shape) {
  onnx::Tensor* const tensor = graph_.add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (const int64_t side : shape) tensor->add_dims(side);
  return tensor;
}

}  // namespace dtrain
