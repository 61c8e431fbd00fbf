#include "trainer/peer/form_message.h"

#include <algorithm>
#include <string>
#include <vector>

#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

using Texts = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

// The overhead of a text: its length, its end, its alignment, and the offset to it.
constexpr size_t kTextBytes = 12;

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

void Take(const flatbuffers::Vector<double>* said, std::vector<double>* numbers) {
  if (said != nullptr) numbers->assign(said->begin(), said->end());
}

}  // namespace

size_t FormBytes(const InputForm& form) {
  size_t bytes = (form.scale.shift.size() + form.scale.factor.size()) * sizeof(double);
  for (const auto* names : {&form.features, &form.classes}) {
    for (const std::string& name : *names) bytes += kTextBytes + name.size();
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
  return wire::CreateInputForm(builder, features, classes, shift, factor, form.label_column);
}

std::optional<InputForm> DecodeForm(const wire::InputForm& said) {
  InputForm form;
  size_t left = kMaxFormBytes;
  if (!Take(said.features(), &left, &form.features) || !Take(said.classes(), &left, &form.classes)) {
    return std::nullopt;
  }
  Take(said.shift(), &form.scale.shift);
  Take(said.factor(), &form.scale.factor);
  form.label_column = said.label_column();
  if (FormProblem(form)) return std::nullopt;
  return form;
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
                               facts.labels, facts.has_test, facts.has_validation);
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
  return facts;
}

}  // namespace dtrain
