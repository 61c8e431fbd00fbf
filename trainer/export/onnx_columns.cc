// AddColumns (onnx_graph.h): a table's columns as features. Texts are looked up in lists of all that is good,
// so that no text makes an operator fail.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "trainer/export/onnx_graph.h"
#include "trainer/input/csv_reader.h"

namespace dtrain {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Adds all texts that begin with `begin` and say that there is no value, found by trying: IsMissing() alone
// knows them.
void AddMissing(const std::string& begin, std::set<std::string>* texts) {
  if (IsMissing(begin)) texts->insert(begin);
  constexpr size_t kLongest = 4;
  if (begin.size() == kLongest) return;
  for (const char next : std::string_view("?/aAlLnNuU")) AddMissing(begin + next, texts);
}

// The dates that DaysOfDate() takes, with the days that each month has.
constexpr char kDate[] =
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]"
    "|2[0-8]))|([0-9]{2}([02468][48]|[13579][26]|[2468]0)|([02468][048]|[13579][26])00)-02-29)([T "
    "]([01][0-9]|2[0-4]):[0-5][0-9](:([0-5][0-9]|60)(\\.[0-9]+)?)?(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?)"
    "?";

// DateOperators: days since 1970 of texts, as DaysOfDate() counts them, in double. Owner: ColumnOperators.
// Thread: one.
class DateOperators {
 public:
  explicit DateOperators(OnnxGraph* graph) : graph_(*graph) {}

  // Returns the days as float32; NaN: the text is no date.
  std::string Days(const std::string& texts) {
    const std::string good = graph_.Add("RegexFullMatch", {texts}, {{"pattern", kDate}});
    const std::string dates =
        graph_.Add("Where", {good, texts, graph_.Constant("date", std::vector<std::string>{"1970-01-01"})});
    const auto [front, behind_t] = Cut(dates, "T");
    const auto [date, behind_blank] = Cut(front, " ");
    const std::string seconds = Seconds(graph_.Add("StringConcat", {behind_blank, behind_t}));
    const std::string days = graph_.Add("Add", {DaysOf(date), With("Div", seconds, 86400)});
    const std::string number = graph_.Add("Cast", {days}, {{"to", onnx::FLOAT}});
    return graph_.Add("Where", {good, number, graph_.Constant("no_date", std::vector<float>{kNaN})});
  }

 private:
  std::string Text(const std::string& text) {
    return graph_.Constant("text", std::vector<std::string>{text});
  }
  std::string Part(const std::string& parts, int64_t number) {
    onnx::Tensor* const index = graph_.Constant("part", onnx::INT64, {});  // a scalar drops the dimension
    index->set_raw_data(&number, sizeof number);
    return graph_.Add("Gather", {parts, index->name()}, {{"axis", -1}});
  }
  // Returns what stands in front of a separator that a text has at most once, and what stands behind it.
  std::pair<std::string, std::string> Cut(const std::string& texts, const std::string& separator) {
    const std::string parts = graph_.Split(graph_.Add("StringConcat", {texts, Text(separator)}), separator);
    return {Part(parts, 0), Part(parts, 1)};
  }
  std::string Number(const std::string& of) { return graph_.Add("Cast", {of}, {{"to", onnx::DOUBLE}}); }
  std::string With(const char* op, const std::string& numbers, double number) {
    return graph_.Add(op, {numbers, graph_.Constant("number", std::vector<double>{number})});
  }
  // The whole quotient.
  std::string Whole(const std::string& numbers, double divisor) {
    return graph_.Add("Floor", {With("Div", numbers, divisor)});
  }
  std::string Sum(std::string sum, const std::vector<std::string>& others) {
    for (const std::string& other : others) sum = graph_.Add("Add", {sum, other});
    return sum;
  }

  // Takes texts such as "09:30:15.250+02:00", or empty ones.
  std::string Seconds(const std::string& times) {
    const auto [rest, minus] = Cut(Cut(times, "Z").first, "-");
    const auto [time, plus] = Cut(rest, "+");
    const std::string whole = graph_.Add("StringConcat", {Text("0"), time});
    const std::string parts = graph_.Split(graph_.Add("StringConcat", {whole, Text(":0:0")}), ":");
    const std::string offset = graph_.Add("Sub", {Minutes(minus), Minutes(plus)});
    return Sum(With("Mul", Number(Part(parts, 0)), 3600),
               {With("Mul", Number(Part(parts, 1)), 60), Number(Part(parts, 2)), With("Mul", offset, 60)});
  }

  // Takes offsets such as "02:00", "0200" or "02", or empty texts.
  std::string Minutes(const std::string& offsets) {
    const auto [front, behind] = Cut(offsets, ":");
    const std::string digits = graph_.Add("StringConcat", {front, behind});
    const std::string number = Number(graph_.Add("StringConcat", {Text("0"), digits}));
    const std::string hours_only = graph_.Add("RegexFullMatch", {digits}, {{"pattern", "[0-9]{2}"}});
    const std::string hhmm = graph_.Add("Where", {hours_only, With("Mul", number, 100), number});
    return graph_.Add("Sub", {hhmm, With("Mul", Whole(hhmm, 100), 40)});
  }

  // Takes texts such as "2024-01-31". Counts from March on, so that the leap day is the last of a year.
  std::string DaysOf(const std::string& dates) {
    const std::string parts = graph_.Split(dates, "-");
    const std::string month = Number(Part(parts, 1));
    const std::string early = Number(With("Less", month, 3));  // of the year before: January and February
    const std::string year = graph_.Add("Sub", {Number(Part(parts, 0)), early});
    const std::string from_march = With("Sub", Sum(month, {With("Mul", early, 12)}), 3);
    const std::string leap_days =
        graph_.Add("Sub", {Sum(Whole(year, 4), {Whole(year, 400)}), Whole(year, 100)});
    const std::string month_days = Whole(With("Add", With("Mul", from_march, 153), 2), 5);
    return With("Sub", Sum(With("Mul", year, 365), {leap_days, month_days, Number(Part(parts, 2))}), 719469);
  }

  OnnxGraph& graph_;
};

// ColumnOperators: inputs and features, one column after the other. Owner: AddColumns(). Thread: one.
class ColumnOperators {
 public:
  ColumnOperators(const ExportedModel& model, OnnxGraph* graph) : model_(model), graph_(*graph) {
    AddMissing("", &missing_);
  }

  std::string Features() {
    std::vector<std::string> inputs;
    for (const InputColumn& column : model_.form.columns) inputs.push_back(Input(column));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const InputColumn& column = model_.form.columns[i];
      column.is_category ? AddCategory(column, inputs[i]) : AddNumber(column, inputs[i]);
    }
    return graph_.Add("Concat", features_, {{"axis", 1}});
  }

 private:
  std::string Input(const InputColumn& column) {
    const bool text = column.is_category || column.is_date;
    std::string what = column.is_category ? "a text" : column.is_date ? "a date, as 2024-01-31" : "a number";
    if (column.is_category || column.fill) what += text ? "; missing: an empty text" : "; missing: NaN";
    return graph_.Input(InputName(column), text ? onnx::STRING : onnx::FLOAT, 1, what);
  }

  void AddCategory(const InputColumn& column, const std::string& texts) {
    if (column.features() == 0) return;
    std::vector<std::string> keys;
    std::vector<float> numbers, all;
    for (size_t i = 0; i < column.categories.size(); ++i) {
      const std::string& category = column.categories[i];
      const std::set<std::string> spellings = category.empty() ? Gaps(column) : std::set{category};
      keys.insert(keys.end(), spellings.begin(), spellings.end());
      numbers.resize(keys.size(), static_cast<float>(i));
    }
    for (int64_t i = 0; i < column.features(); ++i) all.push_back(static_cast<float>(i));
    const bool refuses = !column.has_other && model_.config.data.unseen == UnseenCategory::kError;
    const float other = column.has_other ? all.back() : refuses ? kNaN : -1.0f;
    const std::string number = graph_.Lookup(texts, keys, numbers, other);
    const std::string equal = graph_.Add("Equal", {number, graph_.Constant("categories", all)});
    std::string features = graph_.Add("Cast", {equal}, {{"to", onnx::FLOAT}});
    if (refuses) {
      const std::string zero = graph_.Constant("zero", std::vector<float>{0});
      features = graph_.Add("Add", {features, graph_.Add("Mul", {number, zero})});
    }
    features_.push_back(std::move(features));
  }

  void AddNumber(const InputColumn& column, const std::string& input) {
    std::string number = column.is_date ? DateOperators(&graph_).Days(input) : input;
    if (!column.fill) return features_.push_back(std::move(number));
    const std::string gap = column.is_date ? IsGap(column, input) : IsNumberGap(column, input);
    const std::string fill = graph_.Constant("fill", std::vector<float>{static_cast<float>(*column.fill)});
    features_.push_back(graph_.Add("Where", {gap, fill, number}));
    if (column.has_indicator) features_.push_back(graph_.Add("Cast", {gap}, {{"to", onnx::FLOAT}}));
  }

  // All texts for which a value of the column is missing.
  std::set<std::string> Gaps(const InputColumn& column) const {
    std::set<std::string> gaps = missing_;
    for (std::string& marker : MarkersOf(column, model_.config.data)) gaps.insert(std::move(marker));
    return gaps;
  }

  std::string IsNumberGap(const InputColumn& column, const std::string& numbers) {
    std::string gap = graph_.Add("IsNaN", {numbers});
    for (const std::string& marker : MarkersOf(column, model_.config.data)) {
      char* end = nullptr;
      const float number = std::strtof(marker.c_str(), &end);
      if (end == marker.c_str() || *end != '\0' || std::isnan(number)) continue;
      const std::string value = graph_.Constant("marker", std::vector<float>{number});
      gap = graph_.Add("Or", {gap, graph_.Add("Equal", {numbers, value})});
    }
    return gap;
  }

  std::string IsGap(const InputColumn& column, const std::string& texts) {
    const std::set<std::string> gaps = Gaps(column);
    const std::string number =
        graph_.Lookup(texts, {gaps.begin(), gaps.end()}, std::vector<float>(gaps.size(), 1), /*other=*/0);
    return graph_.Add("Cast", {number}, {{"to", onnx::BOOL}});
  }

  const ExportedModel& model_;
  OnnxGraph& graph_;
  std::set<std::string> missing_;  // all texts for which IsMissing() is true
  std::vector<std::string> features_;
};

}  // namespace

std::string AddColumns(const ExportedModel& model, OnnxGraph* graph) {
  return ColumnOperators(model, graph).Features();
}

}  // namespace dtrain
