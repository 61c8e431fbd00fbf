#include "trainer/summary/graph_builder.h"

namespace dtrain {
namespace {

// The version of the format in which all kinds of nodes used here are known.
constexpr int kProducer = 22;

void SetShape(const Shape& sizes, event::TensorShape* shape) {
  for (const int64_t size : sizes) shape->add_dim()->set_size(size);
}

}  // namespace

GraphBuilder::GraphBuilder() { graph_.mutable_versions()->set_producer(kProducer); }

event::NodeDef& GraphBuilder::AddNode(const std::string& name, const std::string& op,
                                      const std::vector<std::string>& inputs, const Output& output) {
  event::NodeDef& node = *graph_.add_node();
  node.set_name(name);
  node.set_op(op);
  node.set_device(device_);
  for (const std::string& input : inputs) node.add_input(input);
  SetShape(output.shape, (*node.mutable_attr())["_output_shapes"].mutable_list()->add_shape());
  return node;
}

std::string GraphBuilder::Add(const std::string& name, const std::string& op,
                              const std::vector<std::string>& inputs, const Output& output) {
  (*AddNode(name, op, inputs, output).mutable_attr())["T"].set_type(output.type);
  return name;
}

std::string GraphBuilder::Placeholder(const std::string& name, const Output& output) {
  auto& attributes = *AddNode(name, "Placeholder", {}, output).mutable_attr();
  attributes["dtype"].set_type(output.type);
  SetShape(output.shape, attributes["shape"].mutable_shape());
  return name;
}

std::string GraphBuilder::Variable(const std::string& name, const Output& output) {
  auto& attributes = *AddNode(name, "VariableV2", {}, output).mutable_attr();
  attributes["dtype"].set_type(output.type);
  SetShape(output.shape, attributes["shape"].mutable_shape());
  return name;
}

std::string GraphBuilder::Constant(const std::string& name, float value) {
  auto& attributes = *AddNode(name, "Const", {}, {}).mutable_attr();
  attributes["dtype"].set_type(event::DT_FLOAT);
  event::Tensor& tensor = *attributes["value"].mutable_tensor();
  tensor.set_dtype(event::DT_FLOAT);
  tensor.mutable_tensor_shape();
  tensor.add_float_val(value);
  return name;
}

std::string GraphBuilder::MatMul(const std::string& name, const std::string& a, bool transpose_a,
                                 const std::string& b, bool transpose_b, const Shape& shape) {
  auto& attributes = *AddNode(name, "MatMul", {a, b}, {shape}).mutable_attr();
  attributes["T"].set_type(event::DT_FLOAT);
  attributes["transpose_a"].set_b(transpose_a);
  attributes["transpose_b"].set_b(transpose_b);
  return name;
}

std::string GraphBuilder::Serialise() const { return graph_.SerializeAsString(); }

}  // namespace dtrain
