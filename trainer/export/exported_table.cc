#include "trainer/export/exported_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "trainer/config/user_text.h"
#include "trainer/model/model.h"
#include "trainer/table/row_optimizer.h"

namespace dtrain {
namespace {

constexpr size_t kBlockBytes = 1 << 20;

bool IsNotZero(float value) { return value != 0; }

TableLayout LayoutOf(const CheckpointReader& checkpoint, int64_t parts = 1) {
  const StoredTable& table = *checkpoint.manifest().table;
  return {table.features, table.width, parts};
}

// Returns the rows of `part`, cut where the pieces of the checkpoint and of its base begin: a range has the
// rows of one piece of each.
std::vector<RowRange> CutAtPieces(const CheckpointReader& checkpoint, RowRange part) {
  std::vector<uint64_t> cuts = {part.begin, part.end};
  const auto add = [&](const Manifest& manifest) {
    for (const StoredShard& shard : manifest.shards) {
      for (const StoredPiece& piece : shard.pieces) {
        const auto first = static_cast<uint64_t>(piece.first);
        const bool of_part = first > part.begin && first < part.end;
        if (of_part && piece.tensor == manifest.table_tensor()) cuts.push_back(first);
      }
    }
  };
  const Manifest& manifest = checkpoint.manifest();
  add(manifest);
  if (manifest.base) add(FindBase(checkpoint.path(), *manifest.base).manifest);
  std::sort(cuts.begin(), cuts.end());
  std::vector<RowRange> ranges;
  for (size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i - 1] < cuts[i]) ranges.push_back({cuts[i - 1], cuts[i]});
  }
  return ranges;
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
  const RowWeights initial(model.config.model, table_);
  const RowRange rows = table_.PartOf(part.number);
  model.since == nullptr ? ReadAll(rows, initial) : ReadChanges(rows, initial);
  std::sort(order_.begin(), order_.end(),
            [](const Place& a, const Place& b) { return a.feature < b.feature; });
  std::sort(left_.begin(), left_.end());
}

void ExportedTable::ReadAll(RowRange rows, const RowWeights& initial) {
  const int64_t width = table_.width();
  std::vector<float> row(static_cast<size_t>(width));
  initial.Write(0, row.data());
  leaves_out_ = std::any_of(row.begin(), row.end(), IsNotZero);
  if (part_.is_last()) {
    bias_.resize(static_cast<size_t>(width));
    initial.Write(static_cast<uint64_t>(features()), bias_.data());
  }
  model_.checkpoint.ReadRows(rows, [&](uint64_t number, const float* weights) {
    const bool is_bias = number == table_.bias_row();
    if (is_bias || std::any_of(weights, weights + width, IsNotZero)) Add(number, weights);
  });
}

void ExportedTable::ReadChanges(RowRange rows, const RowWeights& initial) {
  const auto width = static_cast<size_t>(table_.width());
  // Rows of features begin alike in both; the biases need not (model.init.output_bias).
  std::vector<float> bias_then(width), bias_now(width);
  RowWeights(model_.since_config->model, table_).Write(static_cast<uint64_t>(features()), bias_then.data());
  initial.Write(static_cast<uint64_t>(features()), bias_now.data());
  std::vector<uint64_t> numbers;  // of a range of rows as they were
  std::vector<float> values;
  for (const RowRange& range : CutAtPieces(*model_.since, rows)) {
    numbers.clear();
    values.clear();
    model_.since->ReadRows(range, [&](uint64_t number, const float* weights) {
      if (number == table_.bias_row()) return bias_then.assign(weights, weights + width);
      numbers.push_back(number);
      values.insert(values.end(), weights, weights + width);
    });
    size_t at = 0;
    const auto take_gone = [&](uint64_t end) {
      for (; at < numbers.size() && numbers[at] < end; ++at) {
        TakeChange(numbers[at], values.data() + at * width, nullptr, initial);
      }
    };
    model_.checkpoint.ReadRows(range, [&](uint64_t number, const float* weights) {
      take_gone(number);
      if (number == table_.bias_row()) return bias_now.assign(weights, weights + width);
      const bool was_there = at < numbers.size() && numbers[at] == number;
      TakeChange(number, was_there ? values.data() + at++ * width : nullptr, weights, initial);
    });
    take_gone(range.end);
  }
  const bool differ = std::memcmp(bias_then.data(), bias_now.data(), width * sizeof(float)) != 0;
  if (part_.is_last() && differ) bias_ = bias_now;
}

// `row`: not that of the bias. `then`, `now`: null: the checkpoint does not have the row, whose weights are
// the initial ones, or which is no row of a hash table.
void ExportedTable::TakeChange(uint64_t row, const float* then, const float* now, const RowWeights& initial) {
  const auto width = static_cast<size_t>(table_.width());
  if (!table_.IsUsed(row)) return;
  if (now == nullptr && hashed()) return left_.push_back(table_.FeatureOf(row));
  std::vector<float> first;
  if (then == nullptr || now == nullptr) {
    first.resize(width);
    initial.Write(table_.FeatureOf(row), first.data());
  }
  // An export of all rows has this one now, and had none then.
  const bool appears = then == nullptr && std::any_of(now, now + width, IsNotZero);
  const float* const before = then == nullptr ? first.data() : then;
  const float* const after = now == nullptr ? first.data() : now;
  if (appears || std::memcmp(before, after, width * sizeof(float)) != 0) Add(row, after);
}

void ExportedTable::Add(uint64_t row, const float* weights) {
  const int64_t width = table_.width();
  if (row == table_.bias_row()) {
    bias_.assign(weights, weights + width);
  } else if (table_.IsUsed(row)) {
    order_.push_back({table_.FeatureOf(row), values_.size()});
    values_.insert(values_.end(), weights, weights + width);
  }
}

std::vector<float> DenseRows(const Config& config, CheckpointReader* checkpoint, bool with_slots) {
  const TableLayout table = LayoutOf(*checkpoint);
  const auto values = static_cast<size_t>(with_slots ? RowValues(config, table.width()) : table.width());
  const auto features = static_cast<uint64_t>(table.features());
  std::vector<float> rows((features + 1) * values);
  const RowWeights initial(config.model, table);
  const std::function<void(float*)> first_slots = FirstSlots(config, table.width());
  for (uint64_t feature = 0; feature <= features; ++feature) {
    initial.Write(feature, rows.data() + feature * values);
    if (with_slots) first_slots(rows.data() + feature * values);
  }
  checkpoint->ReadRows({0, table.rows()}, [&](uint64_t row, const float* stored) {
    if (table.IsUsed(row)) std::copy_n(stored, values, rows.data() + table.FeatureOf(row) * values);
  });
  return rows;
}

void WriteTableText(const ExportedTable& table, OutputFile* file) {
  const DataConfig& data = table.model().config.data;
  const bool indexed = data.train.format == DataFormat::kLibsvm;
  TextBlock text(file);
  text.Add(fmt::format("feature\tname\t{}\n", fmt::join(ValueNames(table), "\t")));
  const auto add_feature = [&](uint64_t feature) {
    text.AddNumber(feature);
    text.Add("\t");
    if (indexed) text.AddNumber(feature + static_cast<uint64_t>(data.index_base));
  };
  const std::string no_weights(static_cast<size_t>(table.width()), '\t');
  auto left = table.left().begin();
  const auto add_left = [&](uint64_t end) {
    for (; left != table.left().end() && *left < end; ++left) {
      add_feature(*left);
      text.Add(no_weights + "\n");
    }
  };
  for (size_t i = 0; i < table.count(); ++i) {
    add_left(table.feature(i));
    add_feature(table.feature(i));
    AddWeights(table.weights(i), table.width(), "\t", "\t", &text);
    text.Add("\n");
  }
  add_left(~uint64_t{0});
  if (!table.bias().empty()) {
    table.hashed() ? text.Add("-") : text.AddNumber(table.features());
    text.Add("\tbias");
    AddWeights(table.bias().data(), table.width(), "\t", "\t", &text);
    text.Add("\n");
  }
  text.Flush();
}

void WriteTableTensors(const ExportedTable& table, const std::vector<Variable>& tensors, OutputFile* file) {
  const auto count = static_cast<int64_t>(table.count()), width = table.width();
  const auto left = static_cast<int64_t>(table.left().size());
  const char* const key_type = table.hashed() ? "U64" : "I64";
  std::vector<SafetensorsEntry> entries = {{"table.keys", key_type, {count}, 8 * count}};
  if (table.model().since != nullptr) entries.push_back({"table.left", key_type, {left}, 8 * left});
  entries.push_back({"table.rows", "F32", {count, width}, 4 * count * width});
  if (!table.bias().empty()) entries.push_back({"bias", "F32", {width}, 4 * width});
  const ExportedTable::Part& part = table.part();
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
  TextBlock bytes(file);
  const auto add = [&](const auto* values, size_t size) {
    bytes.Add({reinterpret_cast<const char*>(values), size * sizeof *values});
  };
  for (size_t i = 0; i < table.count(); ++i) {
    const uint64_t key = table.feature(i);
    add(&key, 1);
  }
  add(table.left().data(), table.left().size());
  for (size_t i = 0; i < table.count(); ++i) add(table.weights(i), static_cast<size_t>(width));
  add(table.bias().data(), table.bias().size());
  bytes.Flush();
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
  const std::optional<gpu::LossKind> loss = table.model().config.model.loss;
  const char* const solver = loss == gpu::LossKind::kHinge          ? "L2R_L1LOSS_SVC_DUAL"
                             : loss == gpu::LossKind::kSquaredHinge ? "L2R_L2LOSS_SVC"
                             : kind == ModelKind::kSoftmax          ? "MCSVM_CS"
                             : kind == ModelKind::kLogistic         ? "L2R_LR"
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
