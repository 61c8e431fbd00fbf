#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/onnx_graph.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

// The versions of the operators and of the file: those of onnxruntime and others from 2021 on, and from 2024
// on for the operators on texts that dates take.
constexpr int kOpset = 13, kOpsetOfDates = 20, kOpsetOfTexts = 2;
constexpr int kIrVersion = 7, kIrVersionOfDates = 9;
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
// float32, scales in double. OpenVINO computes double as float32, and makes x * factor - shift * factor of
// (x - shift) * factor, which leaves no digits of a large number that varies little. So the shift is
// subtracted in two parts: its nearest float32, which costs a number near it no digits, and the rest. Between
// them stands what changes nothing and is not folded into them, not even for NaN.
std::string AddScale(const ExportedModel& model, std::string inputs, OnnxGraph* graph) {
  if (model.pixels) {
    return graph->Add("Mul", {inputs, graph->Constant("scale/factor", std::vector<float>{1.0f / 255})});
  }
  const FittedScale& scale = model.form.scale;
  if (scale.shift.empty()) return inputs;
  std::vector<double> near, rest;
  for (const double shift : scale.shift) {
    const double rounded = static_cast<float>(shift);
    near.push_back(std::isfinite(rounded) ? rounded : 0);
    rest.push_back(shift - near.back());
  }
  inputs = graph->Add("Cast", {inputs}, {{"to", onnx::DOUBLE}});
  inputs = graph->Add("Sub", {inputs, graph->Constant("scale/shift", near)});
  const std::string size = graph->Add("Abs", {inputs}), sign = graph->Add("Sign", {inputs});
  inputs = graph->Add("Mul", {size, sign});
  inputs = graph->Add("Sub", {inputs, graph->Constant("scale/shift_rest", rest)});
  inputs = graph->Add("Mul", {inputs, graph->Constant("scale/factor", scale.factor)});
  return graph->Add("Cast", {inputs}, {{"to", onnx::FLOAT}});
}

std::string AddTensor(const ExportedModel& model, const Variable& variable, OnnxGraph* graph) {
  onnx::Tensor* const tensor = graph->Constant(variable.name, onnx::FLOAT, ExportedModel::ShapeOf(variable));
  std::string* const bytes = tensor->mutable_raw_data();
  bytes->reserve(static_cast<size_t>(variable.size()) * sizeof(float));
  model.ForEachBlock(variable, [&](const float* values, int64_t count) {
    bytes->append(reinterpret_cast<const char*>(values), static_cast<size_t>(count) * sizeof(float));
  });
  return tensor->name();
}

// Returns what makes the answer of a row NaN where one of its features is no finite number, and else changes
// nothing: 0 or NaN, [batch, 1]. Relu alone would make 0 of NaN.
std::string AddCheck(const std::string& features, OnnxGraph* graph) {
  const std::string zero = graph->Constant("zero", std::vector<float>{0});
  const std::string axis = graph->Constant("axis", std::vector<int64_t>{1});
  return graph->Add("ReduceSum", {graph->Add("Mul", {features, zero}), axis});
}

// Returns the outputs of the last layer. `check`: AddCheck(), the offset of rows, or both, which are added to
// them; empty: there is neither.
std::string AddLayers(const ExportedModel& model, std::string inputs, const std::string& check,
                      OnnxGraph* graph) {
  const ModelConfig& of = model.config.model;
  const std::string name = HasClasses(of) || HasLogLink(of) ? "" : "prediction";
  for (size_t i = 0; i + 1 < model.variables.size(); i += 2) {
    const std::string weights = AddTensor(model, model.variables[i], graph);
    const std::string biases = AddTensor(model, model.variables[i + 1], graph);
    const bool last = i + 2 == model.variables.size();
    inputs = graph->Add("Gemm", {inputs, weights, biases}, {}, last && check.empty() ? name : "");
    if (!last) inputs = graph->Add(OperatorOf(model.config.model.activation), {inputs});
  }
  return check.empty() ? inputs : graph->Add("Add", {inputs, check}, {}, name);
}

// Adds the number of each row's class, [batch]. The class of a logistic model is 1 if the logit is above 0:
// exactly the class that dtrain predict gives.
std::string AddClass(const ExportedModel& model, const std::string& logits, const std::string& output,
                     OnnxGraph* graph) {
  if (HeadOf(model.config.model) == ModelHead::kSoftmax) {
    return graph->Add("ArgMax", {logits}, {{"axis", 1}, {"keepdims", 0}}, output);
  }
  const std::string zero = graph->Constant("zero", std::vector<float>{0});
  const std::string column = graph->Constant("column", std::vector<int64_t>{1});
  const std::string above = graph->Add("Greater", {logits, zero});
  const std::string number = graph->Add("Cast", {above}, {{"to", onnx::INT64}});
  return graph->Add("Squeeze", {number, column}, {}, output);
}

void AddProbabilities(const ExportedModel& model, const std::string& logits, OnnxGraph* graph) {
  if (HeadOf(model.config.model) == ModelHead::kSoftmax) {
    graph->Add("Softmax", {logits}, {{"axis", 1}}, "probabilities");
    return;
  }
  const std::string ours = graph->Add("Sigmoid", {logits});
  const std::string others = graph->Add("Sigmoid", {graph->Add("Neg", {logits})});
  graph->Add("Concat", {others, ours}, {{"axis", 1}}, "probabilities");
}

// Makes -1 of the class of a row without an answer.
void AddRefusal(const std::string& classes, const std::string& check, OnnxGraph* graph) {
  const std::string axis = graph->Constant("axis", std::vector<int64_t>{1});
  const std::string none = graph->Constant("no_class", std::vector<int64_t>{-1});
  const std::string refused = graph->Add("Squeeze", {graph->Add("IsNaN", {check}), axis});
  graph->Add("Where", {refused, none, classes}, {}, "prediction");
}

// Adds the names of classes; that of -1 is empty.
void AddLabels(const ExportedModel& model, OnnxGraph* graph) {
  if (model.form.classes.empty()) return;
  std::vector<std::string> names = model.form.classes;
  names.emplace_back();
  graph->Add("Gather", {graph->Constant("classes", names), "prediction"}, {}, "label");
  graph->Output("label", onnx::STRING, 0);
}

void AddPrediction(const ExportedModel& model, const std::string& logits, const std::string& check,
                   OnnxGraph* graph) {
  if (HasLogLink(model.config.model)) graph->Add("Exp", {logits}, {}, "prediction");
  if (!HasClasses(model.config.model)) return graph->Output("prediction", onnx::FLOAT, 1);
  const int64_t outputs = *model.config.model.outputs;
  const bool scores = HasScores(model.config.model);
  scores ? void(graph->Add("Identity", {logits}, {}, "score")) : AddProbabilities(model, logits, graph);
  const std::string classes = AddClass(model, logits, check.empty() ? "prediction" : "", graph);
  graph->Output("prediction", onnx::INT64, 0);
  graph->Output(scores ? "score" : "probabilities", onnx::FLOAT, scores ? 1 : outputs == 1 ? 2 : outputs);
  if (!check.empty()) AddRefusal(classes, check, graph);
  AddLabels(model, graph);
}

[[noreturn]] void RefuseSize(const ExportedModel& model) {
  throw UserError("{}: {} bytes of weights; an ONNX file holds at most 2 GiB. Use --to safetensors.",
                  model.checkpoint.path(), model.bytes());
}

// Returns what the graph takes, and what it leaves to its user.
std::string DocText(const ExportedModel& model) {
  const char* const scales = model.form.scale.shift.empty() ? "" : " The graph scales features (data.scale).";
  if (model.from_columns) {
    return fmt::format(
        "From the columns of a table, [batch, 1] each, to predictions. Texts are as in the file, without "
        "blanks around them; a missing number is NaN, a missing text is empty or written as in the file.{} A "
        "row that dtrain predict refuses gets NaN, and class -1.",
        scales);
  }
  const std::string encodings = model.EncodingsText();
  if (encodings.empty()) return "";
  return fmt::format("From features, as the metadata names them, to predictions.{} Not in the graph: {}.",
                     scales, encodings);
}

void AddVersions(const ExportedModel& model, onnx::Model* onnx) {
  const std::vector<InputColumn>& columns = model.form.columns;
  const bool dates = model.from_columns &&
                     std::any_of(columns.begin(), columns.end(), [](const auto& c) { return c.is_date; });
  onnx->set_ir_version(dates ? kIrVersionOfDates : kIrVersion);
  onnx->add_opset_import()->set_version(dates ? kOpsetOfDates : kOpset);
  if (!model.from_columns) return;
  onnx::OperatorSet* const texts = onnx->add_opset_import();
  texts->set_domain(kTextDomain);
  texts->set_version(kOpsetOfTexts);
}

void FillGraph(const ExportedModel& model, OnnxGraph* graph) {
  for (const char* output : {"prediction", "probabilities", "score", "label"}) graph->Reserve(output);
  const bool columns = model.from_columns;
  const std::string features =
      columns ? AddColumns(model, graph) : graph->Input("features", onnx::FLOAT, *model.config.model.inputs);
  std::string check = columns ? AddCheck(features, graph) : "";
  if (!model.config.data.offset.empty()) {
    const std::string offset = graph->Input("offset", onnx::FLOAT, 1, "is added to the output of its row");
    check = columns ? graph->Add("Add", {check, offset}) : offset;
  }
  const std::string logits = AddLayers(model, AddScale(model, features, graph), check, graph);
  AddPrediction(model, logits, check, graph);
}

}  // namespace

void WriteOnnx(const ExportedModel& model, OutputFile* file) {
  if (model.bytes() > kMaxBytes) RefuseSize(model);
  onnx::Model onnx;
  AddVersions(model, &onnx);
  onnx.set_producer_name("dtrain");
  onnx.set_producer_version(kVersion);
  if (const std::string text = DocText(model); !text.empty()) onnx.set_doc_string(text);
  onnx.mutable_graph()->set_name(KindName(model.config.model.kind));
  for (const auto& [name, text] : model.Metadata()) {
    onnx::Entry* const entry = onnx.add_metadata_props();
    entry->set_key(name);
    entry->set_value(text);
  }
  OnnxGraph graph(onnx.mutable_graph());
  FillGraph(model, &graph);
  std::string bytes;
  if (!onnx.SerializeToString(&bytes)) RefuseSize(model);  // names and scale count too
  file->Write(bytes);
}

}  // namespace dtrain
