#include "trainer/env/host_list.h"

#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr size_t kMaxHosts = 65536;  // what a typing error may come to

// One text in the short form, with its variable for messages.
class Reader {
 public:
  Reader(const std::string& variable, const std::string& text) : variable_(variable), text_(text) {}

  [[noreturn]] void Refuse(const std::string& rule) const {
    throw UserError("{} = {}; {}. The scheduler sets it: leave it as it is.", variable_, Shown(text_), rule);
  }
  // Split at commas outside of brackets. Nothing is empty.
  std::vector<std::string_view> Groups() const;
  // "nodes[006,011]b" -> "nodes006b", "nodes011b", each behind each of `names`.
  std::vector<std::string> Hosts(std::string_view group) const;
  int64_t Number(std::string_view digits) const;

 private:
  // "006,011-013" -> "006", "011", "012", "013".
  std::vector<std::string> Numbers(std::string_view list) const;
  void AddRange(std::string_view range, std::vector<std::string>* numbers) const;

  const std::string& variable_;
  const std::string& text_;
};

std::vector<std::string_view> Split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(at, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::vector<std::string_view> Reader::Groups() const {
  std::vector<std::string_view> groups;
  const std::string_view text = text_;
  bool inside = false;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if ((c == '[' && inside) || (c == ']' && !inside)) Refuse("its brackets do not match");
    if (c == '[' || c == ']') inside = c == '[';
    if (i < text.size() && (c != ',' || inside)) continue;
    if (inside) Refuse("a bracket is not closed");
    if (i == begin) Refuse("a name is empty");
    groups.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return groups;
}

std::vector<std::string> Reader::Hosts(std::string_view group) const {
  std::vector<std::string> hosts = {""};
  while (!group.empty()) {
    const size_t open = group.find('[');
    const std::string plain(group.substr(0, open));
    for (std::string& host : hosts) host += plain;
    if (open == std::string_view::npos) break;
    const size_t close = group.find(']');  // behind it: Groups() has looked
    std::vector<std::string> longer;
    const std::vector<std::string> numbers = Numbers(group.substr(open + 1, close - open - 1));
    if (numbers.size() * hosts.size() > kMaxHosts) Refuse("is of too many hosts");
    for (const std::string& host : hosts) {
      for (const std::string& number : numbers) longer.push_back(host + number);
    }
    hosts = std::move(longer);
    group.remove_prefix(close + 1);
  }
  return hosts;
}

std::vector<std::string> Reader::Numbers(std::string_view list) const {
  std::vector<std::string> numbers;
  for (const std::string_view range : Split(list, ',')) AddRange(range, &numbers);
  return numbers;
}

void Reader::AddRange(std::string_view range, std::vector<std::string>* numbers) const {
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash);
  const int64_t first = Number(low);
  const int64_t last = dash == std::string_view::npos ? first : Number(range.substr(dash + 1));
  if (last < first) Refuse("a range runs backwards");
  if (last - first >= static_cast<int64_t>(kMaxHosts)) Refuse("is of too many hosts");
  for (int64_t number = first; number <= last; ++number) {
    numbers->push_back(fmt::format("{:0{}}", number, low.size()));
  }
}

int64_t Reader::Number(std::string_view digits) const {
  constexpr size_t kMaxDigits = 18;
  uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value);
  if (digits.size() > kMaxDigits || parsed.ec != std::errc() || parsed.ptr != end) {
    Refuse("a range is of whole numbers");
  }
  return static_cast<int64_t>(value);
}

}  // namespace

std::vector<std::string> ExpandHostList(const std::string& variable, const std::string& text) {
  const Reader reader(variable, text);
  std::vector<std::string> hosts;
  for (const std::string_view group : reader.Groups()) {
    for (std::string& host : reader.Hosts(group)) hosts.push_back(std::move(host));
    if (hosts.size() > kMaxHosts) reader.Refuse("is of too many hosts");
  }
  return hosts;
}

std::vector<int> ExpandCounts(const std::string& variable, const std::string& text) {
  const Reader reader(variable, text);
  std::vector<int> counts;
  for (std::string_view group : Split(text, ',')) {
    int64_t times = 1;
    if (const size_t open = group.find("(x"); open != std::string_view::npos) {
      if (group.back() != ')') reader.Refuse("must be as 2(x3),1");
      times = reader.Number(group.substr(open + 2, group.size() - open - 3));
      group = group.substr(0, open);
    }
    const int64_t count = reader.Number(group);
    if (count > static_cast<int64_t>(kMaxHosts) || counts.size() + static_cast<size_t>(times) > kMaxHosts) {
      reader.Refuse("is of too many tasks");
    }
    counts.insert(counts.end(), static_cast<size_t>(times), static_cast<int>(count));
  }
  return counts;
}

}  // namespace dtrain
