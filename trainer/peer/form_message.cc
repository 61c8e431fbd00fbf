#include "trainer/peer/form_message.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

using Texts = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

// The overhead of a text: its length, its end, its alignment, and the offset to it.
constexpr size_t kTextBytes = 12;

// That of a column: the offset to it and to its fields, and its numbers.
constexpr size_t kColumnBytes = 80;

// Counts the bytes before it copies: a hostile message may refer to one long text many times.
bool Take(const Texts* said, size_t* left, std::vector<std::string>* texts) {
  if (said == nullptr) return true;
  for (const flatbuffers::String* text : *said) {
    const size_t bytes = kTextBytes + text->size();
    if (bytes > *left) return false;
    *left -= bytes;
    texts->push_back(text->str());
  }
  return true;
}

using Columns = flatbuffers::Vector<flatbuffers::Offset<wire::InputColumn>>;

bool Take(const Columns* said, size_t* left, std::vector<InputColumn>* columns) {
  if (said == nullptr) return true;
  for (const wire::InputColumn* from : *said) {
    InputColumn column;
    column.column = from->column();
    const size_t bytes = kColumnBytes + (from->name() == nullptr ? 0 : from->name()->size());
    if (bytes > *left) return false;
    *left -= bytes;
    if (from->name() != nullptr) column.name = from->name()->str();
    if (!Take(from->categories(), left, &column.categories)) return false;
    column.is_category = from->category();
    column.has_other = from->other();
    if (from->fills()) column.fill = from->fill();
    column.has_indicator = from->indicator();
    column.is_date = from->date();
    columns->push_back(std::move(column));
  }
  return true;
}

flatbuffers::Offset<wire::InputColumn> Encode(const InputColumn& column,
                                              flatbuffers::FlatBufferBuilder& builder) {
  const auto name = column.name.empty() ? 0 : builder.CreateString(column.name);
  const auto categories = column.categories.empty() ? 0 : builder.CreateVectorOfStrings(column.categories);
  return wire::CreateInputColumn(builder, column.column, name, column.is_category, categories,
                                 column.has_other, column.fill.has_value(), column.fill.value_or(0),
                                 column.has_indicator, column.is_date);
}

void Take(const flatbuffers::Vector<double>* said, std::vector<double>* numbers) {
  if (said != nullptr) numbers->assign(said->begin(), said->end());
}

}  // namespace

size_t FormBytes(const InputForm& form) {
  size_t bytes = (form.scale.shift.size() + form.scale.factor.size()) * sizeof(double);
  for (const auto* names : {&form.features, &form.classes}) {
    for (const std::string& name : *names) bytes += kTextBytes + name.size();
  }
  for (const InputColumn& column : form.columns) {
    bytes += kColumnBytes + column.name.size();
    for (const std::string& category : column.categories) bytes += kTextBytes + category.size();
  }
  return bytes;
}

flatbuffers::Offset<wire::InputForm> EncodeForm(const InputForm& form,
                                                flatbuffers::FlatBufferBuilder& builder) {
  if (FormBytes(form) > kMaxFormBytes) return 0;
  const auto features = builder.CreateVectorOfStrings(form.features);
  const auto classes = builder.CreateVectorOfStrings(form.classes);
  const auto shift = builder.CreateVector(form.scale.shift);
  const auto factor = builder.CreateVector(form.scale.factor);
  std::vector<flatbuffers::Offset<wire::InputColumn>> columns;
  for (const InputColumn& column : form.columns) columns.push_back(Encode(column, builder));
  const auto all_columns = columns.empty() ? 0 : builder.CreateVector(columns);
  return wire::CreateInputForm(builder, features, classes, shift, factor, form.label_column, all_columns,
                               form.table_columns);
}

std::optional<InputForm> DecodeForm(const wire::InputForm& said) {
  InputForm form;
  size_t left = kMaxFormBytes;
  if (!Take(said.features(), &left, &form.features) || !Take(said.classes(), &left, &form.classes) ||
      !Take(said.columns(), &left, &form.columns)) {
    return std::nullopt;
  }
  Take(said.shift(), &form.scale.shift);
  Take(said.factor(), &form.scale.factor);
  form.label_column = said.label_column();
  form.table_columns = said.table_columns();
  if (FormProblem(form)) return std::nullopt;
  return form;
}

InputForm FitOf(const InputForm& form) {
  InputForm fit;
  fit.scale = form.scale;
  fit.columns = form.columns;
  fit.classes = form.classes;
  if (!form.columns.empty()) fit.features = form.features;
  if (HasHashedColumns(form)) fit.table_columns = form.table_columns;  // without it no such form is sound
  return fit;
}

uint64_t ScaleChecksum(const FittedScale& scale) {
  if (scale.shift.empty()) return 0;
  std::vector<double> numbers = scale.shift;
  numbers.insert(numbers.end(), scale.factor.begin(), scale.factor.end());
  return net::PayloadChecksum(numbers.data(), numbers.size() * sizeof(double));
}

flatbuffers::Offset<wire::DataFacts> EncodeFacts(const DataFacts& facts,
                                                 flatbuffers::FlatBufferBuilder& builder) {
  const auto inputs = facts.form ? EncodeForm(*facts.form, builder) : 0;
  return wire::CreateDataFacts(builder, inputs, facts.scale, facts.rows.value_or(-1), facts.read,
                               facts.labels, facts.has_test, facts.has_validation, facts.features);
}

DataFacts DecodeFacts(const wire::DataFacts& said) {
  DataFacts facts;
  if (said.inputs() != nullptr) facts.form = DecodeForm(*said.inputs());
  facts.scale = said.scale();
  if (said.rows() >= 0) facts.rows = std::min(said.rows(), kMaxCount);
  facts.read = said.read();
  facts.labels = said.labels();
  facts.has_test = said.has_test();
  facts.has_validation = said.has_validation();
  facts.features = said.features();
  return facts;
}

}  // namespace dtrain
