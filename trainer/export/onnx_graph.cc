#include "trainer/export/onnx_graph.h"

namespace dtrain {
namespace {

void SetType(onnx::ValueInfo* value, onnx::DataType type, int64_t columns) {
  onnx::TensorType* const tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape()->add_dim()->set_dim_param("batch");
  if (columns > 0) tensor->mutable_shape()->add_dim()->set_dim_value(columns);
}

// The value of an attribute, of each kind that OnnxGraph::Attribute has, and these kinds in its order.
void Set(int64_t number, onnx::Attribute* attribute) { attribute->set_i(number); }
void Set(float number, onnx::Attribute* attribute) { attribute->set_f(number); }
void Set(const std::string& text, onnx::Attribute* attribute) { attribute->set_s(text); }
void Set(const std::vector<float>& numbers, onnx::Attribute* attribute) {
  attribute->mutable_floats()->Add(numbers.begin(), numbers.end());
}
void Set(const std::vector<std::string>& texts, onnx::Attribute* attribute) {
  attribute->mutable_strings()->Add(texts.begin(), texts.end());
}
constexpr onnx::Attribute::Type kKinds[] = {onnx::Attribute::INT, onnx::Attribute::FLOAT,
                                            onnx::Attribute::STRING, onnx::Attribute::FLOATS,
                                            onnx::Attribute::STRINGS};

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
  if (op == std::string("LabelEncoder")) node->set_domain(kTextDomain);
  for (const std::string& input : inputs) node->add_input(input);
  if (output.empty()) output = NewName(op + std::to_string(graph_.node_size()));
  node->set_name(output);
  node->add_output(output);
  for (const auto& [name, value] : attributes) {
    onnx::Attribute* const attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(kKinds[value.index()]);
    std::visit([&](const auto& of_kind) { Set(of_kind, attribute); }, value);
  }
  return output;
}

std::string OnnxGraph::Split(const std::string& texts, const std::string& separator) {
  const std::string parts = Add("StringSplit", {texts}, {{"delimiter", separator}});
  graph_.mutable_node(graph_.node_size() - 1)->add_output(NewName(parts + "/counts"));
  return parts;
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
