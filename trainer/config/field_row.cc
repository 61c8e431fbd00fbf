#include "trainer/config/field_row.h"

namespace dtrain {

FieldRow&& FieldRow::Unit(std::string_view text) && {
  unit = text;
  return std::move(*this);
}

FieldRow&& FieldRow::Try(std::string_view text) && {
  example = text;
  return std::move(*this);
}

FieldRow&& FieldRow::Unset(std::string_view meaning) && {
  unset = meaning;
  return std::move(*this);
}

FieldRow&& FieldRow::AliasOf(std::string_view other_key) && {
  alias_of = other_key;
  return std::move(*this);
}

FieldRow&& FieldRow::Required() && {
  required = true;
  return std::move(*this);
}

FieldRow&& FieldRow::OrWord(std::string_view word) && {
  choices = {std::string(word)};
  return std::move(*this);
}

FieldRow&& FieldRow::Within(Limits allowed) && {
  limits = allowed;
  return std::move(*this);
}

FieldRow&& FieldRow::OtherNames(std::initializer_list<std::pair<const char*, const char*>> names) && {
  other_names = {names.begin(), names.end()};
  return std::move(*this);
}

FieldRow&& FieldRow::OnlyWith(std::string_view other_key, std::initializer_list<const char*> values) && {
  only_key = other_key;
  only_values = {values.begin(), values.end()};
  return std::move(*this);
}

FieldRow RowOf(std::string_view key, FieldType type, Scope scope, std::string_view help) {
  FieldRow row;
  row.key = key;
  row.type = type;
  row.scope = scope;
  row.help = help;
  return row;
}

std::vector<Field> Joined(const std::vector<std::vector<Field>>& parts) {
  std::vector<Field> all;
  for (const std::vector<Field>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace dtrain
