#include "trainer/export/onnx_graph.h"

namespace dtrain {
namespace {

void SetType(onnx::ValueInfo* value, onnx::DataType type, int64_t columns) {
  onnx::TensorType* const tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape()->add_dim()->set_dim_param("batch");
  if (columns > 0) tensor->mutable_shape()->add_dim()->set_dim_value(columns);
}

onnx::Attribute* AddAttribute(onnx::Node* node, const char* name, onnx::Attribute::Type type) {
  onnx::Attribute* const attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(type);
  return attribute;
}

}  // namespace

std::string OnnxGraph::NewName(const std::string& name) {
  std::string free = name;
  for (int i = 2; !names_.insert(free).second; ++i) free = name + "_" + std::to_string(i);
  return free;
}

std::string OnnxGraph::Input(const std::string& name, onnx::DataType type, int64_t columns,
                             const std::string& text) {
  onnx::ValueInfo* const value = graph_.add_input();
  value->set_name(NewName(name));
  if (!text.empty()) value->set_doc_string(text);
  SetType(value, type, columns);
  return value->name();
}

void OnnxGraph::Output(const std::string& name, onnx::DataType type, int64_t columns) {
  onnx::ValueInfo* const value = graph_.add_output();
  value->set_name(name);
  SetType(value, type, columns);
}

std::string OnnxGraph::Add(const char* op, const std::vector<std::string>& inputs,
                           const std::vector<Attribute>& attributes, std::string output) {
  onnx::Node* const node = graph_.add_node();
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  if (output.empty()) output = NewName(op + std::to_string(graph_.node_size()));
  node->set_name(output);
  node->add_output(output);
  for (const auto& [name, value] : attributes) {
    if (const auto* const number = std::get_if<int64_t>(&value)) {
      AddAttribute(node, name, onnx::Attribute::INT)->set_i(*number);
    } else {
      AddAttribute(node, name, onnx::Attribute::STRING)->set_s(std::get<std::string>(value));
    }
  }
  return output;
}

std::string OnnxGraph::Split(const std::string& texts, const std::string& separator) {
  const std::string parts = Add("StringSplit", {texts}, {{"delimiter", separator}});
  graph_.mutable_node(graph_.node_size() - 1)->add_output(NewName(parts + "/counts"));
  return parts;
}

std::string OnnxGraph::Lookup(const std::string& texts, const std::vector<std::string>& keys,
                              const std::vector<float>& numbers, float other) {
  std::string output = Add("LabelEncoder", {texts});
  onnx::Node* const node = graph_.mutable_node(graph_.node_size() - 1);
  node->set_domain(kTextDomain);
  AddAttribute(node, "keys_strings", onnx::Attribute::STRINGS)
      ->mutable_strings()
      ->Add(keys.begin(), keys.end());
  AddAttribute(node, "values_floats", onnx::Attribute::FLOATS)
      ->mutable_floats()
      ->Add(numbers.begin(), numbers.end());
  AddAttribute(node, "default_float", onnx::Attribute::FLOAT)->set_f(other);
  return output;
}

onnx::Tensor* OnnxGraph::Constant(const std::string& name, onnx::DataType type,
                                  const std::vector<int64_t>& shape) {
  onnx::Tensor* const tensor = graph_.add_initializer();
  tensor->set_name(NewName(name));
  tensor->set_data_type(type);
  for (const int64_t side : shape) tensor->add_dims(side);
  return tensor;
}

}  // namespace dtrain
