#include "trainer/data/unseen_classes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "trainer/config/suggest.h"
#include "trainer/data/form_text.h"

namespace dtrain {
namespace {

using Counts = std::vector<int64_t>;

int64_t CountOf(const Counts& counts, size_t label) { return label < counts.size() ? counts[label] : 0; }

int64_t Sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

int64_t ClassesIn(const Counts& counts) {
  return std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; });
}

std::string ClassText(const InputForm& form, size_t label) {
  return label < form.classes.size() ? form.classes[label] : fmt::format("{}", label);
}

std::string ShuffleRemedy(const DataSourceConfig& train) {
  switch (train.format) {
    case DataFormat::kCsv:
      return fmt::format("Shuffle the rows of {} (shuf{})", train.path,
                         train.header ? ", without its header" : "");
    case DataFormat::kIdx:
      return "Shuffle the images and their labels together";
    default:
      return "Raise data.train.rows";
  }
}

// "20 of the 20 held-out rows (data.validation)", with no word of a part that has none of the classes.
std::string WhereText(int64_t held_out, int64_t test, const LabelCounts& counts) {
  std::vector<std::string> places;
  if (held_out > 0) {
    places.push_back(
        fmt::format("{} of the {} held-out rows (data.validation)", held_out, Sum(counts.held_out)));
  }
  if (test > 0) places.push_back(fmt::format("{} of the {} rows of data.test", test, Sum(counts.test)));
  return ListText(places, "and");
}

// Of classes that are in no row that is trained on.
std::string UnseenText(const DataConfig& data, const InputForm& form, const LabelCounts& counts) {
  std::vector<std::string> unseen;
  int64_t held_out = 0, test = 0;
  for (size_t label = 0; label < std::max(counts.held_out.size(), counts.test.size()); ++label) {
    if (CountOf(counts.trained, label) > 0) continue;
    const int64_t here = CountOf(counts.held_out, label), there = CountOf(counts.test, label);
    if (here + there > 0) unseen.push_back(ClassText(form, label));
    held_out += here;
    test += there;
  }
  if (unseen.empty()) return "";
  const bool one = unseen.size() == 1;
  return fmt::format("{} {} {} in {} and in no row that is trained on: never learned. {}",
                     one ? "class" : "classes", ListNames(unseen, "and"), one ? "is" : "are",
                     WhereText(held_out, test, counts),
                     held_out > 0 ? ShuffleRemedy(data.train) + ", or set a smaller data.validation."
                                  : "Are data.train and data.test parts of the same rows, shuffled?");
}

}  // namespace

std::string UnseenClassesText(const DataConfig& data, const InputForm& form, const LabelCounts& counts) {
  if (counts.trained.empty()) return "";
  const std::string unseen = UnseenText(data, form, counts);
  if (!unseen.empty()) return unseen;
  const int64_t others = ClassesIn(counts.trained);
  if (ClassesIn(counts.held_out) != 1 || others == 1) return "";
  return fmt::format(
      "data.validation = {}, and the rows held out are all of class {}, the others of {} classes: a measure "
      "of "
      "one class alone. {}, or set a larger data.validation.",
      data.validation, ListNames({ClassText(form, counts.held_out.size() - 1)}, "and"), others,
      ShuffleRemedy(data.train));
}

}  // namespace dtrain
