#include "trainer/rows/example_fields.h"

#include <utility>

namespace dtrain {

const char* ListKindName(ListKind kind) {
  switch (kind) {
    case ListKind::kBytes:
      return "a bytes_list";
    case ListKind::kFloat:
      return "a float_list";
    case ListKind::kInt64:
      return "an int64_list";
    default:
      return "no list";
  }
}

bool ExampleFeatures::NextAny(ExampleFeature* feature) {
  constexpr const char* kNoExample = "the data is no tf.train.Example";
  do {
    while (map_.at_end()) {
      if (example_.at_end()) return false;
      if (!example_.Next()) return Fail(kNoExample);
      const bool is_message = example_.type == WireFields::kBytes;
      if (example_.number == 2 && is_message) {
        return Fail(
            "a tf.train.SequenceExample, whose feature_lists are not read; it must be a tf.train.Example");
      }
      if (example_.number != 1) continue;
      if (!is_message) return Fail(kNoExample);
      map_ = WireFields(example_.bytes);
    }
    if (!map_.Next()) return Fail(kNoExample);
  } while (map_.number != 1);
  if (map_.type != WireFields::kBytes) return Fail(kNoExample);
  bool has_key = false, has_value = false;
  for (WireFields entry(map_.bytes); !entry.at_end();) {
    if (!entry.Next()) return Fail(kNoExample);
    if (entry.number > 2) continue;
    if (entry.type != WireFields::kBytes) return Fail(kNoExample);
    if (std::exchange(entry.number == 1 ? has_key : has_value, true))
      return Fail("an entry of the map has two keys or two values");
    if (entry.number == 1) {
      feature->key = entry.bytes;
    } else if (!ReadFeature(entry.bytes, feature)) {
      return false;
    }
  }
  return (has_key && has_value) || Fail("an entry of the map has no key or no value");
}

bool ExampleFeatures::ReadFeature(std::string_view message, ExampleFeature* feature) {
  feature->kind = ListKind::kNone;
  feature->list = {};
  for (WireFields fields(message); !fields.at_end();) {
    if (!fields.Next()) return Fail("the data is no tf.train.Example");
    if (fields.number > 3) continue;
    if (fields.type != WireFields::kBytes) return Fail("the data is no tf.train.Example");
    if (feature->kind != ListKind::kNone)
      return Fail("a Feature has two lists, which readers take differently");
    feature->kind = static_cast<ListKind>(fields.number);
    feature->list = fields.bytes;
  }
  return true;
}

namespace {

void AppendField(uint32_t number, std::string_view bytes, std::string* out) {
  AppendVarint(number << 3 | WireFields::kBytes, out);
  AppendVarint(bytes.size(), out);
  *out += bytes;
}

}  // namespace

void ExampleWriter::Add(std::string_view key, ListKind kind, std::string_view list) {
  std::string feature, entry;
  AppendField(static_cast<uint32_t>(kind), list, &feature);
  AppendField(1, key, &entry);
  AppendField(2, feature, &entry);
  AppendField(1, entry, &map_);
}

void ExampleWriter::AddInts(std::string_view key, const std::vector<int64_t>& values) {
  std::string packed, list;
  for (const int64_t value : values) AppendVarint(static_cast<uint64_t>(value), &packed);
  AppendField(1, packed, &list);
  Add(key, ListKind::kInt64, list);
}

void ExampleWriter::AddFloats(std::string_view key, const std::vector<float>& values) {
  std::string list;
  const std::string_view packed(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  AppendField(1, packed, &list);
  Add(key, ListKind::kFloat, list);
}

void ExampleWriter::AddTexts(std::string_view key, const std::vector<std::string_view>& values) {
  std::string list;
  for (const std::string_view value : values) AppendField(1, value, &list);
  Add(key, ListKind::kBytes, list);
}

std::string ExampleWriter::Take() {
  std::string example;
  AppendField(1, map_, &example);
  map_.clear();
  return example;
}

}  // namespace dtrain
