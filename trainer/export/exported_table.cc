#include "trainer/export/exported_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "trainer/config/user_text.h"
#include "trainer/model/model.h"

namespace dtrain {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

bool IsNotZero(float value) { return value != 0; }

TableLayout LayoutOf(const CheckpointReader& checkpoint, int64_t parts = 1) {
  const StoredTable& table = *checkpoint.manifest().table;
  return {table.features, table.width, parts};
}

// TextBlock: text on its way to a file.
class TextBlock {
 public:
  explicit TextBlock(OutputFile* file) : file_(*file) {}

  void Add(std::string_view text) {
    text_ += text;
    if (text_.size() >= kBlockBytes) Flush();
  }
  template <typename Number>
  void AddNumber(Number number) {
    fmt::format_to(std::back_inserter(text_), "{}", number);
  }
  void Flush() {
    file_.Write(text_);
    text_.clear();
  }

 private:
  OutputFile& file_;
  std::string text_;
};

// What the values of a row are called.
std::vector<std::string> ValueNames(const ExportedTable& table) {
  std::vector<std::string> names;
  const std::vector<std::string>& classes = table.model().form.classes;
  const bool by_class = table.model().config.model.outputs == table.width() && table.width() > 1;
  for (int64_t i = 0; i < table.width(); ++i) {
    const auto at = static_cast<size_t>(i);
    names.push_back(by_class ? "weight_" + (at < classes.size() ? Shown(classes[at]) : fmt::format("{}", i))
                    : i == 0 ? "weight"
                             : fmt::format("factor_{}", i));
  }
  return names;
}

void AddWeights(const float* weights, int64_t width, const char* before, const char* between,
                TextBlock* text) {
  for (int64_t i = 0; i < width; ++i) {
    text->Add(i == 0 ? before : between);
    text->AddNumber(weights[i]);
  }
}

}  // namespace

ExportedTable::ExportedTable(const ExportedModel& model, const Part& part)
    : model_(model), part_(part), table_(LayoutOf(model.checkpoint, part.parts)) {
  const int64_t width = table_.width();
  const RowWeights initial(model.config.model, table_);
  std::vector<float> row(static_cast<size_t>(width));
  initial.Write(0, row.data());
  leaves_out_ = std::any_of(row.begin(), row.end(), IsNotZero);
  bias_.resize(static_cast<size_t>(width));
  initial.Write(static_cast<uint64_t>(features()), bias_.data());
  model.checkpoint.ReadRows(table_.PartOf(part.number), [&](uint64_t number, const float* weights) {
    if (number == table_.bias_row()) {
      std::copy_n(weights, width, bias_.data());
    } else if (table_.IsUsed(number) && std::any_of(weights, weights + width, IsNotZero)) {
      order_.push_back({table_.FeatureOf(number), values_.size()});
      values_.insert(values_.end(), weights, weights + width);
    }
  });
  std::sort(order_.begin(), order_.end(),
            [](const Place& a, const Place& b) { return a.feature < b.feature; });
}

std::vector<float> DenseRows(const Config& config, CheckpointReader* checkpoint) {
  const TableLayout table = LayoutOf(*checkpoint);
  const auto width = static_cast<size_t>(table.width());
  const auto features = static_cast<uint64_t>(table.features());
  std::vector<float> values((features + 1) * width);
  const RowWeights initial(config.model, table);
  for (uint64_t feature = 0; feature <= features; ++feature) {
    initial.Write(feature, values.data() + feature * width);
  }
  checkpoint->ReadRows({0, table.rows()}, [&](uint64_t row, const float* weights) {
    if (table.IsUsed(row)) std::copy_n(weights, width, values.data() + table.FeatureOf(row) * width);
  });
  return values;
}

void WriteTableText(const ExportedTable& table, OutputFile* file) {
  const DataConfig& data = table.model().config.data;
  const bool indexed = data.train.format == DataFormat::kLibsvm;
  TextBlock text(file);
  text.Add(fmt::format("feature\tname\t{}\n", fmt::join(ValueNames(table), "\t")));
  for (size_t i = 0; i < table.count(); ++i) {
    text.AddNumber(table.feature(i));
    text.Add("\t");
    if (indexed) text.AddNumber(table.feature(i) + static_cast<uint64_t>(data.index_base));
    AddWeights(table.weights(i), table.width(), "\t", "\t", &text);
    text.Add("\n");
  }
  table.hashed() ? text.Add("-") : text.AddNumber(table.features());
  text.Add("\tbias");
  AddWeights(table.bias().data(), table.width(), "\t", "\t", &text);
  text.Add("\n");
  text.Flush();
}

void WriteTableTensors(const ExportedTable& table, const std::vector<Variable>& tensors, OutputFile* file) {
  const auto count = static_cast<int64_t>(table.count()), width = table.width();
  const auto row_bytes = static_cast<size_t>(width) * sizeof(float);
  std::vector<SafetensorsEntry> entries = {{"table.keys", table.hashed() ? "U64" : "I64", {count}, 8 * count},
                                           {"table.rows", "F32", {count, width}, 4 * count * width}};
  const ExportedTable::Part& part = table.part();
  if (part.is_last()) entries.push_back({"bias", "F32", {width}, 4 * width});
  for (const Variable& tensor : tensors) {
    if (!part.is_last()) break;
    entries.push_back({tensor.name, "F32", ExportedModel::ShapeOf(tensor), 4 * tensor.size()});
  }
  auto metadata = table.model().Metadata();
  if (part.parts > 1) {
    metadata.emplace_back("part", fmt::format("{}", part.number + 1));
    metadata.emplace_back("parts", fmt::format("{}", part.parts));
  }
  file->Write(SafetensorsHeader(metadata, entries));
  std::vector<int64_t> keys;
  for (size_t first = 0; first < table.count(); first += keys.size()) {
    keys.clear();
    for (size_t i = first; i < table.count() && keys.size() < kBlockBytes / sizeof(int64_t); ++i) {
      keys.push_back(static_cast<int64_t>(table.feature(i)));
    }
    file->Write(keys.data(), keys.size() * sizeof(int64_t));
  }
  TextBlock rows(file);
  for (size_t i = 0; i < table.count(); ++i) {
    rows.Add({reinterpret_cast<const char*>(table.weights(i)), row_bytes});
  }
  if (part.is_last()) rows.Add({reinterpret_cast<const char*>(table.bias().data()), row_bytes});
  rows.Flush();
  for (const Variable& tensor : tensors) {
    if (!part.is_last()) break;
    table.model().ForEachBlock(tensor, [&](const float* values, int64_t size) {
      file->Write(values, static_cast<size_t>(size) * sizeof(float));
    });
  }
}

// LIBLINEAR numbers features from 1, has a line for each up to the last, then one for the bias, and reads the
// weights of two classes as those of the first. Of several classes it predicts that of the largest sum by
// whatever solver; MCSVM_CS is one that promises no probabilities, which would be others than a softmax's.
void WriteLiblinear(const ExportedTable& table, const std::vector<std::string>& labels, OutputFile* file) {
  const ModelKind kind = table.model().config.model.kind;
  const char* const solver = kind == ModelKind::kSoftmax    ? "MCSVM_CS"
                             : kind == ModelKind::kLogistic ? "L2R_LR"
                                                            : "L2R_L2LOSS_SVR";
  std::vector<std::string> order = labels;
  if (kind == ModelKind::kLogistic) std::reverse(order.begin(), order.end());
  const uint64_t lines = table.count() == 0 ? 1 : table.feature(table.count() - 1) + 1;
  TextBlock text(file);
  text.Add(fmt::format("solver_type {}\nnr_class {}\n", solver, std::max<size_t>(2, labels.size())));
  if (!order.empty()) text.Add(fmt::format("label {}\n", fmt::join(order, " ")));
  text.Add(fmt::format("nr_feature {}\nbias 1\nw\n", lines));
  std::string zeros;
  for (int64_t i = 0; i < table.width(); ++i) zeros += "0 ";
  zeros += '\n';
  uint64_t line = 0;
  for (size_t i = 0; i < table.count(); ++i, ++line) {
    for (; line < table.feature(i); ++line) text.Add(zeros);
    AddWeights(table.weights(i), table.width(), "", " ", &text);
    text.Add(" \n");
  }
  for (; line < lines; ++line) text.Add(zeros);
  AddWeights(table.bias().data(), table.width(), "", " ", &text);
  text.Add(" \n");
  text.Flush();
}

}  // namespace dtrain
