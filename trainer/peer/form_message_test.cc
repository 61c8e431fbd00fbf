#include "trainer/peer/form_message.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace dtrain {
namespace {

// `form` as ps 0 decodes it.
std::optional<InputForm> Sent(const InputForm& form) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(EncodeForm(form, builder));
  return DecodeForm(*flatbuffers::GetRoot<wire::InputForm>(builder.GetBufferPointer()));
}

TEST_CASE("form message: names, classes, scale and label's column come back to the last bit") {
  const InputForm form{
      {"width", "", "H\xc3\xb6he"}, {"elm", "oak"}, {{0.1, 1e-300, -3}, {1, 1.0 / 3, 7e300}}, 2};
  const std::optional<InputForm> got = Sent(form);
  REQUIRE(got.has_value());
  CHECK(got->features == form.features);
  CHECK(got->classes == form.classes);
  CHECK(got->scale.shift == form.scale.shift);
  CHECK(got->scale.factor == form.scale.factor);
  CHECK(got->label_column == 2);
  CHECK(Sent(InputForm()).has_value());
}

// A category, and a number with gaps.
InputForm WithColumns() {
  InputForm form;
  form.columns = {{3, "plan", true, {"", "pro"}, true, {}, false}, {0, "", false, {}, false, 2.5, true}};
  form.features = {"plan=missing", "plan=pro", "plan=other", "column 1", "column 1=missing"};
  form.table_columns = 7;
  return form;
}

TEST_CASE("form message: how columns become features comes back, and columns that break its rules do not") {
  const InputForm form = WithColumns();
  const std::optional<InputForm> got = Sent(form);
  REQUIRE(got.has_value());
  CHECK(got->columns == form.columns);
  CHECK(got->table_columns == 7);
  InputForm bad = form;
  bad.features.pop_back();
  CHECK_FALSE(Sent(bad).has_value());
  bad = form;
  bad.columns[0].categories = {"pro", ""};
  CHECK_FALSE(Sent(bad).has_value());
  bad = form;
  bad.columns[1].fill.reset();
  CHECK_FALSE(Sent(bad).has_value());
}

TEST_CASE("form message: the scale of a table with hashed columns comes back with what rows are read with") {
  InputForm form;
  form.columns.resize(2);
  form.columns[0].name = "x";
  form.columns[1].column = 3;
  form.columns[1].name = "city";
  form.table_columns = 5;
  form.scale = {{0.5}, {2}};
  const std::optional<InputForm> got = Sent(FitOf(form));
  REQUIRE(got.has_value());
  CHECK(got->scale == form.scale);
  CHECK(got->columns == form.columns);
}

TEST_CASE("form message: one that a checkpoint could not be read with is refused") {
  CHECK_FALSE(Sent({{}, {}, {{1, 2}, {1}}}).has_value());
  CHECK_FALSE(Sent({{"a"}, {}, {{1, 2}, {1, 2}}}).has_value());
  CHECK_FALSE(Sent({{"a"}, {}, {}, -2}).has_value());
  CHECK_FALSE(Sent({{}, {}, {{std::numeric_limits<double>::infinity()}, {1}}}).has_value());
}

TEST_CASE("form message: one long name that is referred to many times is refused, not copied") {
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString(std::string(100000, 'x'));
  const std::vector<flatbuffers::Offset<flatbuffers::String>> names(100000, name);
  builder.Finish(wire::CreateInputForm(builder, builder.CreateVector(names)));
  CHECK_FALSE(DecodeForm(*flatbuffers::GetRoot<wire::InputForm>(builder.GetBufferPointer())).has_value());
}

TEST_CASE("form message: what a form comes to is not less than its bytes in a message") {
  InputForm form;
  for (int i = 0; i < 1000; ++i) form.features.push_back("f" + std::to_string(i));
  form.scale = {std::vector<double>(1000, 1), std::vector<double>(1000, 1)};
  for (int i = 0; i < 100; ++i) form.columns.push_back({i, "c", true, {"a", "b"}, true, {}, false});
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(EncodeForm(form, builder));
  CHECK(FormBytes(form) + 256 >= builder.GetSize());
}

TEST_CASE("data facts: what a worker knows of its data comes back, and a form that is too long is left out") {
  DataFacts facts;
  facts.form = InputForm{{"a", "b"}, {}, {{1, 2}, {3, 4}}, 0};
  facts.scale = ScaleChecksum(facts.form->scale);
  facts.rows = 60;
  facts.read = true;
  facts.labels = 7;
  facts.features = 0x1234567890abcd02;
  facts.has_test = true;
  const auto sent = [](const DataFacts& said) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(EncodeFacts(said, builder));
    return DecodeFacts(*flatbuffers::GetRoot<wire::DataFacts>(builder.GetBufferPointer()));
  };
  const DataFacts got = sent(facts);
  REQUIRE(got.form.has_value());
  CHECK(got.form->features == facts.form->features);
  CHECK(got.scale == facts.scale);
  CHECK(got.rows == 60);
  CHECK(got.read);
  CHECK(got.labels == 7);
  CHECK(got.has_test);
  CHECK_FALSE(got.has_validation);
  CHECK(got.features == facts.features);
  facts.form->features.assign(kMaxFormBytes / 4, "a column");
  facts.rows.reset();
  CHECK_FALSE(sent(facts).form.has_value());
  CHECK_FALSE(sent(facts).rows.has_value());
}

TEST_CASE("data facts: the checksum of a scale tells it from another one, and is 0 of none") {
  CHECK(ScaleChecksum({}) == 0);
  CHECK(ScaleChecksum({{1, 2}, {3, 4}}) != ScaleChecksum({{1, 2}, {3, 5}}));
  CHECK(ScaleChecksum({{1, 2}, {3, 4}}) == ScaleChecksum({{1, 2}, {3, 4}}));
}

}  // namespace
}  // namespace dtrain
