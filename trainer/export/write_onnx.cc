#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/onnx.pb.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

// OnnxGraph: builds an ONNX graph node by node. By default each node's output is the input of the next.
class OnnxGraph {
 public:
  explicit OnnxGraph(onnx::Graph* graph) : graph_(*graph) {}

  // Adds an input: [batch, columns], or [batch] if `columns` is 0; float32 or int64.
  void Input(const std::string& name, int64_t columns);
  void Output(const std::string& name, onnx::DataType type, int64_t columns);

  // Adds a node and returns its output's name; if none is given, it is `op` and a number.
  std::string Add(const char* op, const std::vector<std::string>& inputs,
                  const std::vector<std::pair<const char*, int64_t>>& attributes = {},
                  std::string output = "");
  // Adds an empty constant tensor, to be filled by its raw data.
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

// The version of onnxruntime and others from 2021 on; Gemm, Softmax and Cast have not changed since.
constexpr int kOpset = 13;
constexpr int kIrVersion = 7;
constexpr int64_t kMaxBytes = (int64_t{1} << 31) - (int64_t{1} << 22);  // with room for all but the tensors

const char* OperatorOf(Activation activation) {
  switch (activation) {
    case Activation::kSigmoid:
      return "Sigmoid";
    case Activation::kTanh:
      return "Tanh";
    case Activation::kRelu:
      break;
  }
  return "Relu";
}

// Adds the conversion of raw inputs for the first layer, with the same roundings as dtrain: pixels in
// float32, scales in double.
std::string AddScale(const ExportedModel& model, std::string inputs, OnnxGraph* graph) {
  if (model.pixels) {
    graph->Constant<float>("scale/factor", onnx::FLOAT, std::vector<float>{1.0f / 255});
    return graph->Add("Mul", {inputs, "scale/factor"});
  }
  const FittedScale& scale = model.form.scale;
  if (scale.shift.empty()) return inputs;
  graph->Constant<double>("scale/shift", onnx::DOUBLE, scale.shift);
  graph->Constant<double>("scale/factor", onnx::DOUBLE, scale.factor);
  inputs = graph->Add("Cast", {inputs}, {{"to", onnx::DOUBLE}});
  inputs = graph->Add("Sub", {inputs, "scale/shift"});
  inputs = graph->Add("Mul", {inputs, "scale/factor"});
  return graph->Add("Cast", {inputs}, {{"to", onnx::FLOAT}});
}

void AddTensor(const ExportedModel& model, const Variable& variable, OnnxGraph* graph) {
  onnx::Tensor* const tensor = graph->Constant(variable.name, onnx::FLOAT, ExportedModel::ShapeOf(variable));
  std::string* const bytes = tensor->mutable_raw_data();
  bytes->reserve(static_cast<size_t>(variable.size()) * sizeof(float));
  model.ForEachBlock(variable, [&](const float* values, int64_t count) {
    bytes->append(reinterpret_cast<const char*>(values), static_cast<size_t>(count) * sizeof(float));
  });
}

void AddLayers(const ExportedModel& model, std::string inputs, OnnxGraph* graph, std::string* logits) {
  for (size_t i = 0; i + 1 < model.variables.size(); i += 2) {
    AddTensor(model, model.variables[i], graph);
    AddTensor(model, model.variables[i + 1], graph);
    const bool last = i + 2 == model.variables.size();
    const bool value = last && !HasClasses(model.config.model);
    inputs = graph->Add("Gemm", {inputs, model.variables[i].name, model.variables[i + 1].name}, {},
                        value ? "prediction" : "");
    if (!last) inputs = graph->Add(OperatorOf(model.config.model.activation), {inputs});
  }
  *logits = inputs;
}

// The class is 1 if the logit is above 0: exactly the class that dtrain predict gives.
void AddLogistic(const std::string& logits, OnnxGraph* graph) {
  const std::string ours = graph->Add("Sigmoid", {logits});
  const std::string others = graph->Add("Sigmoid", {graph->Add("Neg", {logits})});
  graph->Add("Concat", {others, ours}, {{"axis", 1}}, "probabilities");
  graph->Constant<float>("zero", onnx::FLOAT, std::vector<float>{0});
  graph->Constant<int64_t>("column", onnx::INT64, std::vector<int64_t>{1});
  const std::string above = graph->Add("Greater", {logits, "zero"});
  const std::string number = graph->Add("Cast", {above}, {{"to", onnx::INT64}});
  graph->Add("Squeeze", {number, "column"}, {}, "prediction");
}

void AddPrediction(const ExportedModel& model, const std::string& logits, OnnxGraph* graph) {
  const int64_t outputs = *model.config.model.outputs;
  switch (HeadOf(model.config.model)) {
    case ModelHead::kLinear:
      return graph->Output("prediction", onnx::FLOAT, 1);
    case ModelHead::kLogistic:
      AddLogistic(logits, graph);
      break;
    case ModelHead::kSoftmax:
      graph->Add("Softmax", {logits}, {{"axis", 1}}, "probabilities");
      graph->Add("ArgMax", {logits}, {{"axis", 1}, {"keepdims", 0}}, "prediction");
      break;
  }
  graph->Output("prediction", onnx::INT64, 0);
  graph->Output("probabilities", onnx::FLOAT, outputs == 1 ? 2 : outputs);
}

[[noreturn]] void RefuseSize(const ExportedModel& model) {
  throw UserError("{}: {} bytes of weights; an ONNX file holds at most 2 GiB. Use --to safetensors.",
                  model.checkpoint.path(), model.bytes());
}

// Returns what the graph leaves to its user; empty: nothing.
std::string DocText(const ExportedModel& model) {
  const std::string encodings = model.EncodingsText();
  if (encodings.empty()) return "";
  return fmt::format("From features, as the metadata names them, to predictions.{} Not in the graph: {}.",
                     model.form.scale.shift.empty() ? "" : " The graph scales features (data.scale).",
                     encodings);
}

}  // namespace

void WriteOnnx(const ExportedModel& model, OutputFile* file) {
  if (model.bytes() > kMaxBytes) RefuseSize(model);
  onnx::Model onnx;
  onnx.set_ir_version(kIrVersion);
  onnx.set_producer_name("dtrain");
  onnx.set_producer_version(kVersion);
  if (const std::string text = DocText(model); !text.empty()) onnx.set_doc_string(text);
  onnx.add_opset_import()->set_version(kOpset);
  onnx.mutable_graph()->set_name(KindName(model.config.model.kind));
  for (const auto& [name, text] : model.Metadata()) {
    onnx::Entry* const entry = onnx.add_metadata_props();
    entry->set_key(name);
    entry->set_value(text);
  }
  OnnxGraph graph(onnx.mutable_graph());
  graph.Input("features", *model.config.model.inputs);
  std::string logits;
  AddLayers(model, AddScale(model, "features", &graph), &graph, &logits);
  AddPrediction(model, logits, &graph);
  std::string bytes;
  if (!onnx.SerializeToString(&bytes)) RefuseSize(model);  // names and scale count too
  file->Write(bytes);
}

}  // namespace dtrain
