#include "trainer/tf/tf_vocabulary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/item_text.h"
#include "trainer/config/user_text.h"
#include "trainer/export/tensor_maps.h"
#include "trainer/input/csv_field.h"
#include "trainer/model/model.h"
#include "trainer/rows/hashed_feature.h"
#include "trainer/table/row_optimizer.h"

namespace dtrain {

void InputOrder::Apply(bool to_ours, float* values, int64_t cols) const {
  std::vector<float> from(values, values + static_cast<int64_t>(ours.size()) * cols);
  for (size_t i = 0; i < ours.size(); ++i) {
    const auto theirs = static_cast<int64_t>(i);
    std::copy_n(from.data() + (to_ours ? theirs : ours[i]) * cols, cols,
                values + (to_ours ? ours[i] : theirs) * cols);
  }
}

namespace {

// A column, and what it makes of its texts.
struct Hashed {
  std::string name;
  HashedColumn hash;
  bool is_number = false;
  bool knows_gaps = false;  // NA and the like are a missing value
};

bool Names(const std::string& item, const InputColumn& column) {
  const std::optional<int64_t> number = ColumnNumber(item);
  return (!column.name.empty() && ColumnNameIn(item) == column.name) || (number && *number == column.column);
}

// As rows are read (trainer/rows/hashed_csv.cc, criteo_line.cc).
std::vector<Hashed> HashedColumns(const DataConfig& data, const std::vector<InputColumn>& inputs) {
  std::vector<Hashed> all;
  const int64_t bits = *HashBits(data);
  int64_t texts = 0;
  const auto add_texts = [&](const std::string& name, bool knows_gaps) {
    const uint64_t first = data.by_column ? FirstOfColumn(texts++, bits) : 0;
    all.push_back({name, HashedColumn(name, bits, first), false, knows_gaps});
  };
  if (data.train.format == DataFormat::kCriteo) {
    for (int64_t i = 0; i < kCriteoCategories; ++i) add_texts(fmt::format("C{}", i + 1), false);
    for (int64_t i = 0; i < kCriteoNumbers && data.by_column; ++i)
      all.push_back({fmt::format("I{}", i + 1), HashedColumn("", bits), true});
    return all;
  }
  for (const InputColumn& input : inputs) {
    const auto is_it = [&](const std::string& item) { return Names(item, input); };
    const auto is_bag = [&](const std::string& item) { return is_it(ParseBag(item).column); };
    const auto is_weights = [&](const std::string& item) {
      const std::string weights = ParseBag(item).weights;
      return !weights.empty() && is_it(weights);
    };
    const std::string name = input.name.empty() ? fmt::format("{}", input.column) : input.name;
    if (std::any_of(data.bags.begin(), data.bags.end(), is_weights)) continue;
    const bool bag = std::any_of(data.bags.begin(), data.bags.end(), is_bag);
    if (bag || std::any_of(data.hash.begin(), data.hash.end(), is_it)) {
      add_texts(name, !bag);
    } else {
      all.push_back({name, HashedColumn(name, bits), true});
    }
  }
  return all;
}

std::vector<std::string> ReadLines(const std::string& option, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw UserError("--vocabulary {}: cannot read {}.{} Name the file with a text in each line.", option,
                    path, SimilarPathHint(path));
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (lines.empty() && line.rfind("\xEF\xBB\xBF", 0) == 0) line.erase(0, 3);  // a byte order mark
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string PlaceOf(const VocabularyColumn& column, size_t line) {
  if (column.path.empty()) return fmt::format("the numbers of {}", Shown(column.name));
  return fmt::format("{} ({}:{})", Quoted(Shown(column.texts[line])), column.path, line + 1);
}

// Returns the files of "COLUMN=FILE" by column.
std::map<std::string, std::string> PathsOf(const std::vector<std::string>& vocabularies,
                                           const std::vector<std::string>& names, const char* what) {
  std::map<std::string, std::string> paths;
  for (const std::string& option : vocabularies) {
    const size_t equals = option.rfind('=');
    const std::string name = option.substr(0, equals);
    if (names.empty())
      throw UserError("--vocabulary {}: no column is one of {}. Leave it out.", option, what);
    if (equals == option.npos || std::count(names.begin(), names.end(), name) == 0) {
      throw UserError("--vocabulary {}: must be COLUMN=FILE with a column of {}: {}.{}", option, what,
                      ListShown(names), NearestName(name, names));
    }
    if (!paths.emplace(name, option.substr(equals + 1)).second)
      throw UserError("--vocabulary {}: the column has one already. Leave out one of the two.", option);
  }
  return paths;
}

void CheckAllNamed(const std::vector<std::string>& without) {
  if (without.empty()) return;
  throw UserError(
      "--vocabulary: is missing for {}. Name the file with the texts of its rows, a line each: --vocabulary "
      "{}=FILE; or take none of its rows: --vocabulary {}=.",
      ListShown(without), without[0], without[0]);
}

void CheckKeys(const DataConfig& data, const std::vector<VocabularyColumn>& columns) {
  struct Place {
    uint64_t key;
    size_t column, line;
    bool operator<(const Place& other) const {
      return std::tie(key, column, line) < std::tie(other.key, other.column, other.line);
    }
  };
  std::vector<Place> places;
  for (size_t i = 0; i < columns.size(); ++i) {
    for (size_t line = 0; line < columns[i].keys.size(); ++line)
      places.push_back({columns[i].keys[line], i, line});
  }
  std::sort(places.begin(), places.end());
  const auto same = [](const Place& a, const Place& b) { return a.key == b.key; };
  const auto pair = std::adjacent_find(places.begin(), places.end(), same);
  if (pair == places.end()) return;
  int64_t more = -1;
  for (auto at = pair; at + 1 != places.end(); ++at) more += same(*at, at[1]) ? 1 : 0;
  const bool equal = pair->column == pair[1].column &&
                     columns[pair->column].texts[pair->line] == columns[pair->column].texts[pair[1].line];
  throw UserError(
      "--vocabulary: {} and {} are one feature here, number {}{}. {}",
      PlaceOf(columns[pair->column], pair->line), PlaceOf(columns[pair[1].column], pair[1].line), pair->key,
      more == 0 ? "" : fmt::format(", and so are {}", Plural(more, "other pair")),
      equal || data.whole_keys
          ? "Of texts that mean the same, as those of a missing value, keep one line and its row."
          : fmt::format("Set data.hash_bits higher than {}, or model.table: hash.", *HashBits(data)));
}

// Returns the rows of the lines of a column whose rows are from `first` on; kNoRow: no row has the text.
std::vector<uint64_t> RowsOfLines(const InputColumn& input, const VocabularyColumn& column, uint64_t first) {
  std::map<std::string_view, size_t> lines;
  std::vector<uint64_t> rows;
  const std::vector<std::string>& all = input.categories;
  const auto find = [&](std::string_view text) { return std::find(all.begin(), all.end(), text); };
  for (size_t line = 0; line < column.texts.size(); ++line) {
    const std::string_view text = column.texts[line];
    if (const auto [same, is_new] = lines.emplace(text, line); !is_new) {
      throw UserError("--vocabulary: {} is that of line {} too. Keep one of the two, and its row.",
                      PlaceOf(column, line), same->second + 1);
    }
    const std::string_view trimmed = text.substr(0, text.find_last_not_of(" \t") + 1);
    auto found = find(text);
    if (found == all.end() && find(trimmed) != all.end()) {
      throw UserError("--vocabulary: {} ends with blanks, and the text of the rows does not. Leave them out.",
                      PlaceOf(column, line));
    }
    rows.push_back(found == all.end() ? kNoRow : first + static_cast<uint64_t>(found - all.begin()));
  }
  return rows;
}

// The rows of a column in a first layer.
struct Block {
  std::string name, sorted_by;
  std::vector<int64_t> rows;
};

// Appends a block whose rows are behind those of the others. A list x of TFRecord is x[0], x[1] and so on
// here, and one column there.
void AddBlock(const Config& config, const std::string& name, const char* ending, int64_t count, int64_t* end,
              std::vector<Block>* blocks) {
  const bool is_item = config.data.train.format == DataFormat::kTfrecord && EndsWith(name, "]");
  blocks->push_back({name, (is_item ? name.substr(0, name.rfind('[')) : name) + ending,
                     std::vector<int64_t>(static_cast<size_t>(count))});
  std::iota(blocks->back().rows.begin(), blocks->back().rows.end(), *end);
  *end += count;
}

std::vector<Block> HashedBlocks(const Config& config, const std::vector<InputColumn>& inputs) {
  std::vector<Hashed> columns = HashedColumns(config.data, inputs);
  std::stable_partition(columns.begin(), columns.end(), [](const Hashed& each) { return !each.is_number; });
  std::vector<Block> blocks;
  int64_t end = 0;
  for (const Hashed& column : columns) {
    AddBlock(config, column.name, column.is_number ? "" : "_embedding",
             column.is_number ? 1 : config.model.embedding, &end, &blocks);
  }
  return blocks;
}

// Of texts the rows are in the order of their vocabulary, and behind them that of all others, if it has one.
std::vector<Block> DenseBlocks(const Config& config, const InputForm& form,
                               const std::vector<std::string>& vocabularies) {
  const std::vector<VocabularyColumn> read = ReadDenseVocabularies(vocabularies, form, /*all=*/false);
  const std::vector<std::string> names = ColumnNames(form);
  std::vector<std::string> without;
  std::vector<Block> blocks;
  int64_t end = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const InputColumn input = form.columns.empty() ? InputColumn() : form.columns[i];
    AddBlock(config, names[i], input.is_category ? "_indicator" : "", input.features(), &end, &blocks);
    if (!input.is_category) continue;
    const auto column = std::find_if(read.begin(), read.end(),
                                     [&](const VocabularyColumn& each) { return each.name == names[i]; });
    if (column == read.end()) {
      without.push_back(names[i]);
      continue;
    }
    if (column->keys.size() != input.categories.size() ||
        std::count(column->keys.begin(), column->keys.end(), kNoRow) > 0) {
      throw UserError("--vocabulary {}={}: must have the texts of the rows, {}, and no others.", names[i],
                      column->path, ListShown(input.categories));
    }
    std::copy(column->keys.begin(), column->keys.end(), blocks.back().rows.begin());
  }
  if (without.empty()) return blocks;
  throw UserError(
      "--vocabulary: is missing for {}, whose rows TensorFlow has in the order of the texts. Name the file "
      "with them, a line each: --vocabulary {}=FILE.",
      ListShown(without), without[0]);
}

}  // namespace

bool HasTextColumns(const DataConfig& data) {
  return data.train.format == DataFormat::kCriteo || (IsTable(data.train.format) && HashesColumns(data));
}

std::vector<VocabularyColumn> ReadVocabularies(const std::vector<std::string>& vocabularies,
                                               const Config& config, const std::vector<InputColumn>& inputs,
                                               bool all) {
  const std::vector<Hashed> hashed = HashedColumns(config.data, inputs);
  std::vector<std::string> names, without;
  for (const Hashed& column : hashed) {
    if (!column.is_number) names.push_back(column.name);
  }
  const std::map<std::string, std::string> paths = PathsOf(vocabularies, names, "texts that are hashed");
  std::vector<VocabularyColumn> columns;
  for (const Hashed& column : hashed) {
    VocabularyColumn one{column.name, "", {}, {}};
    if (column.is_number) {
      if (config.data.by_column) continue;  // it has no row
      one.texts = {""};
    } else if (const auto path = paths.find(column.name); path == paths.end()) {
      without.push_back(column.name);
      continue;
    } else if (path->second.empty()) {
      continue;
    } else {
      one.path = path->second;
      one.texts = ReadLines(path->first + "=" + path->second, path->second);
    }
    for (const std::string& text : one.texts)
      one.keys.push_back(column.hash.NumberOf(column.knows_gaps && IsMissing(text) ? "" : text));
    columns.push_back(std::move(one));
  }
  if (all) CheckAllNamed(without);
  if (columns.empty())
    throw UserError("--vocabulary: none has a file. Name that of one column: COLUMN=FILE.");
  CheckKeys(config.data, columns);
  int64_t rows = 0;
  for (const VocabularyColumn& column : columns) rows += static_cast<int64_t>(column.keys.size());
  if (all && rows > config.model.max_rows.value_or(rows)) {
    throw UserError("--vocabulary: {} would be more than model.max_rows = {}. Set it higher.",
                    Plural(rows, "row"), *config.model.max_rows);
  }
  return columns;
}

std::vector<VocabularyColumn> ReadDenseVocabularies(const std::vector<std::string>& vocabularies,
                                                    const InputForm& form, bool all) {
  std::vector<std::string> names, without;
  for (const InputColumn& column : form.columns) {
    if (column.is_category) names.push_back(column.name);
  }
  const std::map<std::string, std::string> paths = PathsOf(vocabularies, names, "categories");
  std::vector<VocabularyColumn> columns;
  uint64_t row = 0;
  for (const std::string& name : ColumnNames(form)) {
    columns.push_back({name, "", {""}, {row}});
    if (form.columns.empty()) {
      ++row;
      continue;
    }
    const InputColumn& input = form.columns[columns.size() - 1];
    if (input.is_category) {
      VocabularyColumn& column = columns.back();
      const auto path = paths.find(name);
      if (path == paths.end()) without.push_back(name);
      column.path = path == paths.end() ? "" : path->second;
      column.texts =
          column.path.empty() ? std::vector<std::string>() : ReadLines(name + "=" + column.path, column.path);
      column.keys = RowsOfLines(input, column, row);
    }
    row += static_cast<uint64_t>(input.features());
  }
  if (all) CheckAllNamed(without);
  columns.erase(std::remove_if(columns.begin(), columns.end(),
                               [](const VocabularyColumn& column) { return column.texts.empty(); }),
                columns.end());
  return columns;
}

std::vector<Variable> ColumnVariables(const std::vector<Variable>& of_table,
                                      const std::vector<VocabularyColumn>& columns) {
  std::vector<Variable> variables, biases;
  for (const Variable& variable : of_table) {
    if (variable.bias) {
      biases.push_back(variable);
      continue;
    }
    for (const VocabularyColumn& column : columns) {
      variables.push_back(variable);
      variables.back().name = column.NameOf(variable.name);
      variables.back().rows = static_cast<int64_t>(column.texts.size());
    }
  }
  variables.insert(variables.end(), biases.begin(), biases.end());
  return variables;
}

void CheckLines(const TfCheckpoint& checkpoint, const std::vector<std::string>& maps,
                const std::vector<VocabularyColumn>& columns) {
  std::vector<std::string> problems;
  for (const std::string& map : maps) {
    const size_t equals = map.rfind('='), bracket = map.find('[', equals);
    if (equals == map.npos || bracket == map.npos) continue;
    const TfTensor* const tensor = checkpoint.Find(map.substr(0, equals));
    if (tensor == nullptr || tensor->shape.empty()) continue;
    for (const VocabularyColumn& column : columns) {
      if (map.compare(bracket, map.npos, "[" + column.name + "]") != 0) continue;
      const int64_t rows = tensor->shape[0], lines = static_cast<int64_t>(column.texts.size());
      if (rows == lines) continue;
      problems.push_back(
          column.path.empty()
              ? fmt::format("{}: {} has {}, and {} is a column of numbers, which has 1.", checkpoint.prefix(),
                            Shown(tensor->name), Plural(rows, "row"), Shown(column.name))
              : fmt::format(
                    "{}: {} has {}, and {} {}: {} no {}. Name the vocabulary that it was trained with.",
                    checkpoint.prefix(), Shown(tensor->name), Plural(rows, "row"), column.path,
                    Plural(lines, "line"),
                    rows > lines ? Plural(rows - lines, "row") + " would have"
                                 : Plural(lines - rows, "line") + " would have",
                    rows > lines ? "line" : "row"));
    }
  }
  if (!problems.empty()) throw UserError(fmt::format("{}", fmt::join(problems, "\n")));
}

std::string FirstLayerOf(const Config& config) {
  const ModelConfig& model = config.model;
  if (model.kind == ModelKind::kMlp && IsTable(config.data.train.format) && !HashesColumns(config.data))
    return "weights/W1";
  const bool joins = model.kind == ModelKind::kWideDeep && model.combine == Combine::kJoin;
  return joins && HasTextColumns(config.data) ? "deep/W1" : "";
}

std::optional<InputOrder> OrderOfInputs(const Config& config, const InputForm& form,
                                        const std::vector<std::string>& vocabularies,
                                        const std::string& given, const std::string& theirs) {
  InputOrder result;
  result.layer = FirstLayerOf(config);
  const bool dense = config.model.kind == ModelKind::kMlp;
  if ((result.layer.empty() || (dense && ColumnNames(form).empty())) && !given.empty()) {
    throw UserError(
        "--inputs {}: is for columns with names, of an mlp or a wide_deep model that joins them. Leave it "
        "out.",
        given);
  }
  const bool sorts = theirs.find("hiddenlayer_0/") != theirs.npos;  // Estimator's input_layer()
  if (result.layer.empty() || (dense && !sorts && given.empty() && vocabularies.empty())) return std::nullopt;
  std::vector<Block> blocks =
      dense ? DenseBlocks(config, form, vocabularies) : HashedBlocks(config, form.columns);
  std::vector<std::string> names, order;
  for (const Block& block : blocks) names.push_back(block.name);
  if (names.empty()) {
    result.said =
        fmt::format("inputs of {} there: as in the data, for its columns have no names", result.layer);
    return result;
  }
  for (size_t at = 0; at < given.size(); at = std::min(given.find(',', at), given.size() - 1) + 1)
    order.push_back(given.substr(at, given.find(',', at) - at));
  if (!given.empty() && !std::is_permutation(order.begin(), order.end(), names.begin(), names.end())) {
    throw UserError("--inputs {}: must have each of {} once, in the order of TensorFlow's first layer.",
                    given, ListShown(names));
  }
  if (!order.empty()) {
    std::sort(blocks.begin(), blocks.end(), [&](const Block& a, const Block& b) {
      return std::find(order.begin(), order.end(), a.name) < std::find(order.begin(), order.end(), b.name);
    });
  } else if (sorts) {
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const Block& a, const Block& b) { return a.sorted_by < b.sorted_by; });
  }
  names.clear();
  for (const Block& block : blocks) {
    names.push_back(block.name);
    result.ours.insert(result.ours.end(), block.rows.begin(), block.rows.end());
  }
  result.said =
      fmt::format("inputs of {} there: {} (--inputs for another order)", result.layer, ListShown(names));
  return result;
}

void ThrowNoTexts(const char* whose) {
  throw UserError(
      "--vocabulary and --inputs: are for rows of texts in columns (data.hash, data.bags), and for columns "
      "of CSV or TFRecord in front of layers; {} model has neither. Leave them out.",
      whose);
}

ColumnRows ReadColumns(const Config& config, const std::vector<VocabularyColumn>& columns,
                       CheckpointReader* checkpoint, bool with_slots) {
  struct Text {
    uint64_t row, feature;
    size_t column, at;  // the number of the row in the result
    bool operator<(const Text& other) const { return row < other.row; }
  };
  const StoredTable& stored = *checkpoint->manifest().table;
  const TableLayout table(stored.features, stored.width, 1);
  std::vector<Text> texts;
  for (size_t i = 0; i < columns.size(); ++i) {
    for (const uint64_t key : columns[i].keys) texts.push_back({table.RowOf(key), key, i, texts.size()});
  }
  const auto bias = static_cast<uint64_t>(stored.features);
  texts.push_back({table.bias_row(), bias, columns.size(), texts.size()});
  std::sort(texts.begin(), texts.end());
  const auto values = static_cast<size_t>(with_slots ? RowValues(config, table.width()) : table.width());
  const RowWeights initial(config.model, table);
  const std::function<void(float*)> first_slots = FirstSlots(config, table.width());
  ColumnRows result;
  result.rows.resize(texts.size() * values);
  std::vector<int64_t> without(columns.size() + 1);
  const auto begin_row = [&](const Text& text) {
    float* const row = result.rows.data() + text.at * values;
    initial.Write(text.feature, row);
    if (with_slots) first_slots(row);
    ++without[text.column];
  };
  auto next = texts.begin();
  int64_t left = 0;
  checkpoint->ReadRows({0, table.rows()}, [&](uint64_t number, const float* row) {
    for (; next != texts.end() && next->row < number; ++next) begin_row(*next);
    if (next != texts.end() && next->row == number) {
      std::copy_n(row, values, result.rows.data() + next++->at * values);
    } else if (table.IsUsed(number)) {
      left += std::any_of(row, row + table.width(), [](float value) { return value != 0; }) ? 1 : 0;
    }
  });
  for (; next != texts.end(); ++next) begin_row(*next);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (without[i] == 0) continue;
    result.said.push_back(fmt::format("{}: {} of {} texts have no row, and get what a row begins with",
                                      Shown(columns[i].name), without[i], columns[i].texts.size()));
  }
  if (left > 0)
    result.said.push_back(fmt::format("left out: {} of texts that no vocabulary has", Plural(left, "row")));
  return result;
}

}  // namespace dtrain
