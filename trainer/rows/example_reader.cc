#include "trainer/rows/example_reader.h"

#include <fmt/core.h>
#include <nmmintrin.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "base/names.h"
#include "base/tfrecord.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr size_t kMaxColumns = 1 << 20;
constexpr size_t kFirstRecords = 1000;                // that say the columns, at most
constexpr int64_t kFirstBytes = 1 << 19;              // and about so many bytes of them
constexpr std::string_view kNumberText = "a number";  // the text of a field that has none

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at *at off a text, without zeros in front.
std::string_view TakeDigits(std::string_view text, size_t* at) {
  while (*at < text.size() && text[*at] == '0') ++*at;
  const size_t begin = *at;
  while (*at < text.size() && IsDigit(text[*at])) ++*at;
  return text.substr(begin, *at - begin);
}

// The order of names: by bytes, and of numbers in them by value. A map has no order of its own.
struct NameOrder {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const {
    size_t i = 0, j = 0;
    while (i < a.size() && j < b.size()) {
      if (IsDigit(a[i]) && IsDigit(b[j])) {
        const std::string_view x = TakeDigits(a, &i), y = TakeDigits(b, &j);
        if (x != y) return x.size() != y.size() ? x.size() < y.size() : x < y;
        continue;
      }
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
    }
    return i == a.size() && j == b.size() ? a < b : i == a.size();
  }
};

// Whether a name is that of a value of a list, "x[3]": then it becomes the list's.
bool TakeIndex(std::string* name, size_t* index) {
  const size_t open = name->rfind('[');
  if (open == 0 || open == name->npos || name->back() != ']') return false;
  const char *const begin = name->data() + open + 1, *const end = name->data() + name->size() - 1;
  const auto result = std::from_chars(begin, end, *index);
  if (result.ptr != end || result.ec != std::errc() || *index >= kMaxColumns) return false;
  name->resize(open);
  return true;
}

// Writes a whole number below 10^8 in steps that do not depend on its value: it has 8 digits, and then those
// in front are taken off.
inline std::string_view WriteDigits(uint64_t number, char* text) {
  uint64_t x = number / 10000 | number % 10000 << 32;           // the first 4 digits are lowest
  const uint64_t tens = (x * 5243 >> 19) & 0x0000007f0000007f;  // of 4 digits the first 2
  x = tens | (x - tens * 100) << 16;
  const uint64_t ones = (x * 103 >> 10) & 0x000f000f000f000f;
  x = ones | (x - ones * 10) << 8;
  const auto zeros = static_cast<size_t>(__builtin_ctzll(x | uint64_t{1} << 56)) / 8;
  x = (x | 0x3030303030303030) >> 8 * zeros;
  std::memcpy(text, &x, sizeof x);
  return {text, sizeof x - zeros};
}

// The shortest text that is read as this number.
template <typename Number>
std::string_view TextOf(Number number, std::array<char, 24>* digits) {
  char* const begin = digits->data();
  char* end = begin + digits->size();
  if constexpr (std::is_same_v<Number, float>) {
    constexpr float kAllWhole = 1 << 24;  // larger ones have no fraction, and may be long
    const bool is_whole =
        std::fabs(number) < kAllWhole && number == std::trunc(number) && !std::signbit(number);
    end = is_whole ? std::to_chars(begin, end, static_cast<int64_t>(number)).ptr
                   : std::to_chars(begin, end, number).ptr;
  } else if (static_cast<uint64_t>(number) < 100'000'000) {
    return WriteDigits(static_cast<uint64_t>(number), begin);
  } else {
    end = std::to_chars(begin, end, number).ptr;
  }
  return {begin, static_cast<size_t>(end - begin)};
}

std::string Title(std::string_view name) { return Quoted(Shown(std::string(name))); }

// As TensorFlow writes an entry with a list of one value, all shorter than 128 bytes:
//   0x0a, size; 0x0a, size of the key, key; 0x12, size; number of the list << 3 | 2, size; 0x0a, size, value
constexpr size_t kKeyAt = 4, kValueHead = 6;  // bytes in front of the key, and between it and the value
constexpr uint64_t kValueHeadBits = (uint64_t{1} << 8 * kValueHead) - 1;
constexpr uint64_t kSizes = 1 << 8 | 1 << 24 | uint64_t{1} << 40;  // that grow with the value, in its head
constexpr uint64_t kNoHead = uint64_t{1} << 56;                    // as that of no value

uint64_t ValueHead(ListKind kind) {
  return 0x12 | 4 << 8 | (static_cast<uint64_t>(kind) << 3 | WireFields::kBytes) << 16 | 2 << 24 |
         uint64_t{0x0a} << 32;
}

// Reads a varint of `size` bytes, with 8 bytes from `bytes` on to look at. False: it has more bytes, or
// fewer.
bool ReadVarintOf(size_t size, const char* bytes, uint64_t* value) {
  if (size == 0 || size > sizeof *value) {
    WireFields fields({bytes, size});
    return fields.ReadVarint(value) && fields.at_end();
  }
  std::memcpy(value, bytes, sizeof *value);
  constexpr uint64_t kMore = 0x8080808080808080;
  const uint64_t bits = UINT64_MAX >> (64 - 8 * size);
  if ((*value & bits & kMore) != (kMore & bits >> 8)) return false;
  uint64_t x = *value & bits & ~kMore;  // in groups of 7 bits, 14, 28 and 56
  x = (x & 0x007f007f007f007f) | (x & 0x7f007f007f007f00) >> 1;
  x = (x & 0x00003fff00003fff) | (x & 0x3fff00003fff0000) >> 2;
  *value = (x & 0x000000000fffffff) | (x & 0x0fffffff00000000) >> 4;
  return true;
}

// As ForEachValue(), of any kind of list.
template <typename OnValue>
bool ForEachOf(ListKind kind, std::string_view list, OnValue&& on_value) {
  if (kind == ListKind::kBytes) return ForEachValue<ListKind::kBytes>(list, on_value);
  if (kind == ListKind::kFloat) return ForEachValue<ListKind::kFloat>(list, on_value);
  return kind == ListKind::kNone || ForEachValue<ListKind::kInt64>(list, on_value);
}

size_t LengthOf(const ExampleFeature& feature) {
  size_t length = 0;
  ForEachOf(feature.kind, feature.list, [&](const auto& /*value*/) { return ++length > 0; });
  return length;
}

}  // namespace

// KeyFinder: the features of the first records.
class ExampleReader::KeyFinder {
 public:
  void Note(std::string_view data) {
    ExampleFeature feature;
    for (ExampleFeatures features(data); features.Next(&feature);) {
      auto found = keys_.find(feature.key);
      if (found == keys_.end()) {
        if (keys_.size() == kMaxColumns) return;
        found = keys_.emplace(feature.key, Seen()).first;
      }
      if (feature.kind != ListKind::kNone) ++found->second[{feature.kind, LengthOf(feature)}];
    }
  }

  // Adds columns that none of the records has.
  void AddNames(const std::vector<std::string>& names) {
    std::map<std::string, size_t, NameOrder> lists;  // and how many values each has
    for (std::string name : names) {
      size_t index = 0;
      const bool is_there = name.empty() || keys_.count(name) > 0;
      if (is_there || (TakeIndex(&name, &index) && keys_.count(name) > 0)) continue;
      size_t& length = lists[name];
      length = std::max(length, index + 1);
    }
    for (const auto& [name, length] : lists) keys_[name][{ListKind::kNone, length}] = 1;
  }

  // Returns them in the order of their columns.
  std::vector<Key> Keys(const std::vector<std::string>& whole) const {
    std::vector<Key> keys;
    size_t first = 0;
    for (const auto& [name, seen] : keys_) {
      Key& key = keys.emplace_back(KeyOf(seen));
      key.name = name;
      key.begin = {0x0a, 0, 0x0a, static_cast<char>(name.size())};
      key.mask = {-1, -128, -1, -1};
      const size_t known = std::min(name.size(), key.begin.size() - kKeyAt);
      std::copy_n(name.data(), known, key.begin.data() + kKeyAt);
      std::fill_n(key.mask.data() + kKeyAt, known, -1);
      key.first = first;
      const bool is_whole = std::find(whole.begin(), whole.end(), name) != whole.end();
      key.varies |= is_whole && key.count > 1;
      const bool is_one = key.count == 1 && !key.varies && key.kind != ListKind::kNone;
      key.head = is_one ? ValueHead(key.kind) : kNoHead;
      if (key.varies || key.count == 0) key.count = 1;
      first += key.count;
    }
    return keys;
  }

 private:
  // In how many records a feature has such a list.
  using Seen = std::map<std::pair<ListKind, size_t>, int64_t>;

  // A feature is as it is in most records. Where a tenth has lists of other lengths, these vary.
  static Key KeyOf(const Seen& seen) {
    std::map<ListKind, int64_t> kinds;
    for (const auto& [list, count] : seen) kinds[list.first] += count;
    Key key;
    const auto is_less = [](const auto& a, const auto& b) { return a.second < b.second; };
    if (!kinds.empty()) key.kind = std::max_element(kinds.begin(), kinds.end(), is_less)->first;
    int64_t all = 0, most = 0;
    key.count = 0;
    for (const auto& [list, count] : seen) {
      if (list.first != key.kind || list.second == 0) continue;
      all += count;
      if (count > most) key.count = list.second;
      most = std::max(most, count);
    }
    key.varies = most * 10 < all * 9;
    return key;
  }

  std::map<std::string, Seen, NameOrder> keys_;
};

std::vector<std::string> ExampleReader::NamesIn(std::unique_ptr<InputBytes> file,
                                                const std::vector<std::string>& names) {
  std::vector<std::string> found;
  std::multimap<std::string, std::string, NameOrder> wanted;  // by the feature that it may be of
  for (const std::string& name : names) {
    wanted.emplace(name, name);
    std::string list = name;
    size_t index = 0;
    if (TakeIndex(&list, &index)) wanted.emplace(list, name);
  }
  ExampleRules rules;
  rules.waits = false;
  ExampleReader reader(std::move(file), rules);
  for (std::string_view data; !wanted.empty() && reader.FindRecord(true, &data);) {
    ExampleFeature feature;
    for (ExampleFeatures features(data); features.Next(&feature);) {
      const auto [begin, end] = wanted.equal_range(feature.key);
      for (auto of = begin; of != end; ++of) found.push_back(of->second);
      wanted.erase(begin, end);
    }
    const auto is_found = [&](const auto& name) {
      return std::find(found.begin(), found.end(), name.second) != found.end();
    };
    if (std::all_of(wanted.begin(), wanted.end(), is_found)) break;
  }
  return found;
}

ExampleReader::ExampleReader(std::unique_ptr<InputBytes> file, const ExampleRules& rules)
    : CsvReader(std::move(file), Records()), rules_(rules) {
  KeyFinder finder;
  int64_t at = 0;  // behind the records so far
  for (size_t records = 0; at < kFirstBytes && records < (rules.waits ? kFirstRecords : 1);) {
    const std::string_view bytes(begin_.next + at, static_cast<size_t>(end_ - begin_.next - at));
    const Tfrecord record = TfrecordAt(bytes, kMaxData);
    if (record.state == TfrecordState::kCut && More()) continue;
    if (record.state != TfrecordState::kWhole) break;  // it is told when it is read
    finder.Note(record.data);
    at += static_cast<int64_t>(record.size());
    ++records;
  }
  is_empty_ = begin_.next == end_;
  has_first_ = at > 0;
  finder.AddNames(rules.names);
  keys_ = finder.Keys(rules.whole);
  for (size_t i = 0; i < keys_.size(); ++i) {
    const Key& key = keys_[i];
    number_.emplace(key.name, i);
    if (names_.size() + key.count > kMaxColumns) {
      Throw(fmt::format("more than {} values in a record; dtrain reads no more columns. Leave out features.",
                        kMaxColumns));
    }
    if (key.count == 1) names_.push_back(key.name);
    for (size_t value = 0; value < key.count && key.count > 1; ++value)
      names_.push_back(fmt::format("{}[{}]", key.name, value));
  }
  taken_.assign(names_.size(), Taken::kText);
  digits_.resize(names_.size());
  for (size_t i = 0; i < keys_.size(); ++i) (i == 0 ? first_ : keys_[i - 1]).next = &keys_[i];
}

void ExampleReader::Throw(const std::string& text) const { throw FaultAt(path(), place_, text); }

// Rows are read until the column of one is missing or superfluous, and damage is told by who reads it.
void ExampleReader::ReadHeader() {
  if (names_.empty() || !has_first_) {
    std::string_view data;
    if (FindRecord(true, &data)) ReadExample(data);  // tells what is wrong with it
    Throw("no feature; a tf.train.Example must have some. Is it the right file?");
  }
  record_mark_ = mark();
  record_.fields.clear();
  for (const std::string& name : names_) {
    CsvField& field = record_.fields.emplace_back();
    field.text = name;
    field.place = place_;
  }
}

bool ExampleReader::Next() {
  if (!std::exchange(is_begun_, true)) {
    if (!is_empty_) ReadHeader();
    return !is_empty_;
  }
  std::string_view data;
  if (!FindRecord(true, &data)) return false;
  ReadExample(data);
  if (!readings_.empty() && !peeks_) MakePlain();
  return true;
}

bool ExampleReader::NextText(std::string_view* text) {
  std::string_view data;
  if (!FindRecord(false, &data)) return false;
  *text = {data.data() - kTfrecordHead, kTfrecordHead + data.size() + kTfrecordTail};
  return true;
}

bool ExampleReader::HasWholeLine() const {
  const std::string_view bytes(begin_.next, static_cast<size_t>(end_ - begin_.next));
  return TfrecordAt(bytes, kMaxData, false).state != TfrecordState::kCut;
}

// Goes behind the next record. Returns false at the end of the file.
bool ExampleReader::FindRecord(bool checks_data, std::string_view* data) {
  record_mark_ = mark();
  Tfrecord record;
  do {
    const std::string_view bytes(begin_.next, static_cast<size_t>(end_ - begin_.next));
    record = TfrecordAt(bytes, kMaxData, checks_data);
  } while (record.state == TfrecordState::kCut && More());
  place_ = {record_mark_.line, record_mark_.byte, true};
  std::string damage;
  switch (record.state) {
    case TfrecordState::kWhole:
      *data = record.data;
      begin_ = {begin_.next + record.size(), begin_.next, begin_.line + 1};
      return true;
    case TfrecordState::kCut:
      if (begin_.next == end_ || peeks_) return false;
      damage = "the file ends within the record";
      break;
    case TfrecordState::kWrongLength:
      damage = begin_.line == 1 ? "the file is no TFRecord, or damaged" : "the file is damaged";
      damage += ": the checksum of the record's length is wrong";
      break;
    case TfrecordState::kWrongData:
      place_.column += kTfrecordHead;
      damage = "the file is damaged: the checksum of the data that begin here is wrong";
      break;
    case TfrecordState::kTooLong:
      damage = fmt::format("a record of more than {} bytes, which is the limit", kMaxData);
  }
  // As a UserError, since the rows behind it cannot be found.
  throw UserError(FaultAt(path(), place_, damage + ". Fetch it anew, or write it anew."));
}

void ExampleReader::Take(int64_t column, bool as_number) {
  if (std::exchange(takes_all_, false)) {
    std::fill(taken_.begin(), taken_.end(), Taken::kNot);
    for (Key& key : keys_) key.is_taken = false;
  }
  const auto at = static_cast<size_t>(column);
  if (KeyOf(at).is_list) return;
  const bool is_written = std::any_of(readings_.begin(), readings_.end(),
                                      [&](const FieldReading& reading) { return reading.column == column; });
  if (!as_number || is_written || taken_[at] == Taken::kText) {
    taken_[at] = Taken::kText;
  } else {
    taken_[at] = Taken::kNumber;
  }
  keys_[static_cast<size_t>(&KeyOf(at) - keys_.data())].is_taken = true;
}

void ExampleReader::TakeList(int64_t column, bool as_number) {
  Take(column, as_number);
  Key& key = keys_[static_cast<size_t>(&KeyOf(static_cast<size_t>(column)) - keys_.data())];
  if (key.count > 1) {
    Throw(
        fmt::format("the column of data.bags is a value of the list {}. Give the list's name, not a number.",
                    Title(key.name)));
  }
  key.is_list = true;
  key.head = kNoHead;
}

bool ExampleReader::ReadList(int64_t column, char /*separator*/,
                             const std::function<void(const CsvField&)>& on_value) const {
  const auto at = static_cast<size_t>(column);
  const Key& key = KeyOf(at);
  if (record_.fields[at].text.empty()) return false;
  CsvField field = record_.fields[at];
  std::array<char, 24> digits{};
  const auto give = [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), std::string_view>) {
      field.text = value;
    } else {
      SetNumber(value, taken_[at], &digits, &field);
    }
    on_value(field);
    return true;
  };
  if (!ForEachOf(key.kind, key.list, give)) ThrowDamaged(key);
  return true;
}

const ExampleReader::Key& ExampleReader::KeyOf(size_t column) const {
  const auto is_before = [](size_t place, const Key& key) { return place < key.first; };
  return *(std::upper_bound(keys_.begin(), keys_.end(), column, is_before) - 1);
}

// Returns the key of the next entry if it is as most are: the order of a map may differ from record to
// record, but mostly a key comes behind the one that it has come behind before, or behind few that are
// missing. Null: another one. Behind a record's data there are a checksum and more of the buffer.
inline ExampleReader::Key* ExampleReader::ExpectedKey(const Key& last, std::string_view entries) {
  constexpr int kMaxMissing = 4;
  if (entries.size() < kKeyAt) return nullptr;
  const __m128i begin = _mm_loadu_si128(reinterpret_cast<const __m128i*>(entries.data()));
  Key* key = last.next;
  for (int missing = 0; missing <= kMaxMissing && key != nullptr; ++missing, key = key->next) {
    const __m128i mask = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key->mask.data()));
    const __m128i wanted = _mm_loadu_si128(reinterpret_cast<const __m128i*>(key->begin.data()));
    if (_mm_testz_si128(_mm_xor_si128(begin, wanted), mask) == 0) continue;
    const size_t size = key->name.size();
    if (size <= key->begin.size() - kKeyAt || entries.compare(kKeyAt, size, key->name) == 0) return key;
  }
  return nullptr;
}

// Returns null for a feature that is no column.
ExampleReader::Key* ExampleReader::FindKey(std::string_view name) {
  const auto found = number_.find(name);
  if (found != number_.end()) return &keys_[found->second];
  if (!rules_.all_known) return nullptr;
  Throw(fmt::format(
      "the feature {} is in none of the first records, which say the columns. Name it in data.ignore, or in "
      "data.categories, data.hash, data.bags or data.dates if it is one; else put a record that has it in "
      "front.",
      Title(name)));
}

void ExampleReader::ReadExample(std::string_view data) {
  CsvField none;
  none.text = "";
  none.place = place_;
  record_.fields.assign(names_.size(), none);
  record_.unescaped.clear();
  ExampleFeatures features(data);
  ExampleFeature feature;
  Key* last = &first_;
  for (std::string_view rest = features.rest();;) {
    Key* key = ExpectedKey(*last, rest);
    if (key != nullptr) {
      last = key;
      const size_t size = ReadValue(*key, rest);
      rest.remove_prefix(size);
      if (size > 0) continue;
    }
    features.Skip(features.rest().size() - rest.size());
    if (!features.Next(&feature)) break;
    rest = features.rest();
    if (key == nullptr && (key = FindKey(feature.key)) != nullptr) last = last->next = key;
    if (key == nullptr || !key->is_taken) continue;
    if (key->is_list) {
      CheckKind(feature, *key);
      if (feature.kind != ListKind::kNone) key->kind = feature.kind;
      key->list = feature.list;
      record_.fields[key->first].text = feature.kind == ListKind::kNone ? std::string_view() : kNumberText;
      continue;
    }
    if (ReadValues(feature, *key)) continue;
    std::fill_n(record_.fields.begin() + static_cast<std::ptrdiff_t>(key->first), key->count, none);
  }
  if (features.fault() != nullptr) Throw(fmt::format("{}. Write the record anew.", features.fault()));
}

void ExampleReader::Put(size_t column, std::string_view text) {
  if (taken_[column] != Taken::kNot) record_.fields[column].text = text;
}

template <typename Number>
void ExampleReader::SetNumber(Number number, Taken taken, std::array<char, 24>* digits, CsvField* field) {
  const auto value = static_cast<float>(number);
  field->is_number = taken == Taken::kNumber && std::isfinite(value);
  field->number = value;
  field->text = field->is_number ? kNumberText : TextOf(number, digits);
}

template <typename Number>
void ExampleReader::Put(size_t column, Number number) {
  if (taken_[column] == Taken::kNot) return;
  CsvField* const field = &record_.fields[column];
  SetNumber(number, taken_[column], &digits_[column], field);
  if (peeks_) field->text = record_.unescaped.emplace_back(field->text);
}

// Reads the first entry, whose key that is, if it is as TensorFlow writes one value. Returns its bytes; 0: it
// is another one, or none is expected.
inline size_t ExampleReader::ReadValue(const Key& key, std::string_view entries) {
  const size_t size = static_cast<size_t>(entries[1]) + 2, value = kKeyAt + key.name.size() + kValueHead;
  if (size > entries.size() || size < value) return 0;
  const char* const bytes = entries.data() + value;
  const size_t length = size - value;
  uint64_t head = 0;
  std::memcpy(&head, bytes - kValueHead, sizeof head);
  if ((head & kValueHeadBits) != key.head + length * kSizes) return 0;
  if (!key.is_taken) return size;
  if (key.kind == ListKind::kBytes) {
    record_.fields[key.first].text = std::string_view(bytes, length);
  } else if (key.kind == ListKind::kFloat) {
    float number = 0;
    if (length != sizeof number) return 0;
    std::memcpy(&number, bytes, sizeof number);
    Put(key.first, number);
  } else {
    uint64_t number = 0;
    if (!ReadVarintOf(length, bytes, &number)) return 0;
    Put(key.first, static_cast<int64_t>(number));
  }
  return size;
}

void ExampleReader::CheckKind(const ExampleFeature& feature, const Key& key) const {
  if (feature.kind == key.kind || feature.kind == ListKind::kNone || key.kind == ListKind::kNone) return;
  Throw(
      fmt::format("the feature {} is {}; must be {}, as in most of the first records. Write the record anew.",
                  Title(key.name), ListKindName(feature.kind), ListKindName(key.kind)));
}

void ExampleReader::ThrowDamaged(const Key& key) const {
  Throw(fmt::format("the list of the feature {} is damaged. Write the record anew.", Title(key.name)));
}

// False: there is no value, which is no fault.
bool ExampleReader::ReadValues(const ExampleFeature& feature, const Key& key) {
  if (feature.kind == ListKind::kNone) return false;
  CheckKind(feature, key);
  size_t length = 0;
  const auto put = [&](auto value) {
    if (length < key.count) Put(key.first + length, value);
    ++length;
    return true;
  };
  if (!ForEachOf(feature.kind, feature.list, put)) ThrowDamaged(key);
  if (length == key.count && !key.varies) return true;
  if (length == 0 && (rules_.empty_is_gap || takes_all_)) return false;
  if (key.varies && takes_all_) return true;  // the first value tells something
  if (key.varies) {
    Throw(
        fmt::format("the feature {} has lists of different lengths in the first records, and one column has "
                    "one value. Name "
                    "it in data.bags or data.ignore.",
                    Title(key.name)));
  }
  Throw(fmt::format("the feature {} has {}; must have {}, as in most of the first records. {}",
                    Title(key.name), Plural(static_cast<int64_t>(length), "value"), key.count,
                    length == 0 ? "Set data.missing to what becomes of it, or remove the row."
                                : "Correct it, or remove the row."));
}

}  // namespace dtrain
