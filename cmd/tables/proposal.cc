#include "cmd/tables/proposal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/names.h"

#include "cmd/tables/column_pair.h"
#include "cmd/tables/profile_text.h"
#include "trainer/batch/class_names.h"
#include "trainer/batch/input_form.h"
#include "trainer/config/data_config.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr double kRate = 0.03;      // of adam on scaled features, for a label whose deviation is 1
constexpr double kManyGaps = 0.05;  // share of missing values that may tell something
constexpr size_t kLineWidth = 100;

// "  categories: [Sex, Embarked]", on as many lines as it needs.
std::string ListLine(const std::string& key, const std::vector<std::string>& items) {
  std::string text, line = fmt::format("  {}: [", key);
  const std::string margin(line.size(), ' ');
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? "," : "]");
    if (i > 0 && line.size() + item.size() > kLineWidth) {
      text += line + "\n";
      line = margin;
    } else if (i > 0) {
      line += " ";
    }
    line += item;
  }
  return text + line + "\n";
}

// The first of some texts, and how many more there are.
std::string Some(std::vector<std::string> texts, const char* separator = ", ") {
  constexpr size_t kShown = 8;
  const size_t more = texts.size() - std::min(texts.size(), kShown);
  if (more > 0) texts.resize(kShown);
  return fmt::format("{}{}", fmt::join(texts, separator),
                     more > 0 ? fmt::format("{}and {} more", separator, more) : "");
}

// ConfigWriter: writes the proposal for one table.
class ConfigWriter {
 public:
  ConfigWriter(const TableProfile& table, const LabelChoice& label, const std::string& path,
               const TestTable* test)
      : table_(table),
        label_(label.column),
        path_(path),
        test_(test),
        plan_(PlanModel(Label())),
        comment_(table.comment),
        trims_(table.quoted_blanks) {
    if (test != nullptr) CompareTest();
  }

  Proposal Write() {
    const auto refuse = [&](const std::string& why) {
      return UserError("{}: {} cannot be the label: it {}. Choose another: --label NAME.", table_.path,
                       ColumnName(table_, label_), why);
    };
    CheckNames();
    FindRenames();
    if (!plan_.problem.empty()) throw refuse(plan_.problem);
    CheckScale(table_.path, ColumnName(table_, label_), Label(), plan_);
    SortColumns();
    if (test_ != nullptr) CompareColumns();
    if (features_ == 0) {
      throw UserError(
          "{}: no column beside {} can be a feature; left out: {}. Is it the right table, and the right "
          "label?",
          table_.path, ColumnName(table_, label_), IgnoredText());
    }
    const int64_t good = table_.rows - faulty_;  // at least
    if (good < 2) {
      throw UserError("{}: at least 2 rows without faults are needed, and {}. dtrain check shows the faults.",
                      table_.path, good == 1 ? "1 is here" : "none is here");
    }
    run_ = PlanRun(good, test_ != nullptr);
    proposal_.yaml =
        fmt::format("# Made by dtrain from {} and {} of {}. docs/config.md explains each key.\n",
                    Plural(table_.rows, "row"), Plural(static_cast<int64_t>(table_.columns.size()), "column"),
                    Shown(table_.path));
    AddModel();
    AddData();
    AddTrain();
    if (!IsUtf8(proposal_.yaml)) throw NotUtf8(table_, {});  // a unit, or what stands for a gap
    AddNotes();
    return std::move(proposal_);
  }

 private:
  const ColumnProfile& Label() const { return table_.columns[label_]; }

  // A column as the config names it: by its number if it shares its name, or has none and no other column has
  // the number for a name.
  std::string KeyOf(size_t column) const {
    const std::vector<ColumnProfile>& columns = table_.columns;
    const std::string &name = columns[column].name, number = fmt::format("{}", column);
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const ColumnProfile& other) { return other.name == number; });
    const bool taken = table_.has_names() && found != columns.end() && found != columns.begin() + column;
    const bool repeated = repeated_.count(name) > 0;
    if (taken && repeated) {
      throw UserError(
          "{}: more than one column is named {}, and {}, the number of one, is the name of another. Rename "
          "it.",
          table_.path, Quoted(Shown(name)), number);
    }
    return !table_.has_names() || repeated || (name.empty() && !taken) ? number : YamlText(name);
  }

  // An item of a list that is about one column: "day=MM/DD/YYYY".
  std::string ItemOf(size_t column, const std::string& value) const {
    const std::string& name = table_.columns[column].name;
    const bool by_number = KeyOf(column) == fmt::format("{}", column) || name.find('=') != name.npos;
    const std::string key = by_number            ? fmt::format("{}", column)
                            : ColumnNumber(name) ? fmt::format("\"{}\"", name)
                                                 : name;
    return Quoted(fmt::format("{}={}", key, value));
  }

  // Returns which columns are ignored and why: "id (an index: it counts the rows), one (the same in every
  // row)".
  std::string IgnoredText() const {
    std::vector<std::string> texts;
    for (const Ignored& column : ignored_) texts.push_back(fmt::format("{} ({})", column.key, column.why));
    return texts.empty() ? "none" : Some(texts);
  }

  // Names and texts that the config or a run takes for names. A column that is ignored may have any bytes.
  void CheckNames() const {
    for (const ColumnProfile& column : table_.columns) {
      if (!IsUtf8(column.name)) throw NotUtf8(table_, {});
    }
  }
  static UserError NotUtf8(const TableProfile& table, const Faults& texts) {
    const std::string rule = fmt::format(
        "its texts are not UTF-8. {}",
        table.tfrecord ? "Write them so."
                       : "Convert it: iconv -f latin1 -t utf-8 a.csv > b.csv; latin1 is the usual encoding.");
    if (texts.count == 0) return UserError("{}: {}", table.path, rule);
    return FaultAt(texts.file.empty() ? table.path : texts.file, texts.first, rule);
  }

  // Both files are read with the same keys.
  void CompareTest() {
    const TableProfile& test = test_->profile;
    if (test.tfrecord != table_.tfrecord) {
      throw UserError("{}: is {} TFRecord, unlike {}; one config reads both. Give tables of one form.",
                      test.path, test.tfrecord ? "a" : "no", table_.path);
    }
    CheckRows(test);
    if (test.delimiter != table_.delimiter || test.quoting != table_.quoting ||
        (test.decimal_comma && !table_.decimal_comma)) {
      throw Unlike(
          fmt::format("its delimiter, quotes or decimals are other ones than those of {}", table_.path));
    }
    if (comment_.empty()) comment_ = test.comment;
    if (!test.comment.empty() && test.comment != comment_) {
      throw Unlike(fmt::format("lines that begin with {} are no rows, and in {} those with {}",
                               Quoted(test.comment), table_.path, Quoted(comment_)));
    }
    if (test.skip_lines != table_.skip_lines) {
      throw Unlike(
          fmt::format("{} at its front no rows, and {} of {} (data.skip_lines)",
                      test.skip_lines == 1 ? "1 line is" : fmt::format("{} lines are", test.skip_lines),
                      table_.skip_lines, table_.path));
    }
    if (!IsByName() && test.columns.size() != table_.columns.size()) {
      throw Unlike(fmt::format("{}, and {} has {}",
                               Plural(static_cast<int64_t>(test.columns.size()), "column"), table_.path,
                               table_.columns.size()));
    }
    if (TestColumn(label_) == nullptr) {
      throw Unlike(
          fmt::format("no column {}, which is the label of {}", Quoted(Shown(Label().name)), table_.path));
    }
    trims_ = trims_ || test.quoted_blanks;
    bad_rows_ += test.short_rows.count + test.long_rows.count + test.quotes.count + test.records.count;
  }

  UserError Unlike(const std::string& difference) const {
    return UserError("{}: {}. One config reads both files: make them alike.", test_->profile.path,
                     difference);
  }

  bool IsByName() const { return test_->profile.has_names() && table_.has_names(); }

  // A column of the table in the test table: by its name, else where it stands. Null: it has none.
  const ColumnProfile* TestColumn(size_t number) const {
    return FindColumn(test_->profile, IsByName() ? &table_.columns[number].name : nullptr, number);
  }

  // Each feature is in the test table, of its kind there and written alike, and so is the label, whose
  // classes are no others.
  void CompareColumns() {
    std::vector<std::string> lacking;
    for (size_t i = 0; i < table_.columns.size(); ++i) {
      if (i != label_ && !Useless(i).empty()) continue;
      const ColumnProfile &here = table_.columns[i], *there = TestColumn(i);
      const std::string name = ColumnName(table_, i);
      if (there == nullptr) {
        lacking.push_back(name);
        continue;
      }
      if (std::string unlike = WrittenUnlike(table_, i, test_->profile, *there, i == label_); !unlike.empty())
        throw Unlike(unlike);
      for (std::string& note : UnitNotes(table_, i, test_->profile, *there))
        proposal_.notes.push_back(std::move(note));
      const bool any_text = i == label_ ? !plan_.IsLinear() : here.type == ColumnType::kCategory;
      const bool alike = here.IsNumber() ? there->IsNumber() : here.type == there->type;
      if (!any_text && !alike && there->type != ColumnType::kEmpty) {
        const std::string& odd = there->odd.empty() || any_text ? there->example : there->odd;
        throw Unlike(fmt::format("{} has values such as {}, and in {} such as {}", name, Quoted(Shown(odd)),
                                 table_.path, Quoted(Shown(here.example))));
      }
      AddUsed(test_->profile, i, *there);
    }
    if (!lacking.empty()) throw Unlike(fmt::format("no column {}, which {} has", Some(lacking), table_.path));
    if (!plan_.IsLinear()) CompareClasses();
  }

  void CompareClasses() {
    ColumnProfile test = *TestColumn(label_);
    const auto is_renamed = [&](const ValueCount& value) {
      const std::string prefix = fmt::format("{} -> ", value.text);
      return std::any_of(renames_.begin(), renames_.end(), [&](const std::string& rename) {
        return rename.compare(1, prefix.size(), prefix) == 0;
      });
    };
    std::vector<ValueCount>& values = test.frequent;
    values.erase(std::remove_if(values.begin(), values.end(), is_renamed), values.end());
    CompareLabels(table_.path, renamed_, plan_, test_->profile.path, test, &bad_rows_, &proposal_.notes);
  }

  // Returns why a column is no feature; empty: it is one.
  std::string Useless(size_t i) const {
    constexpr int64_t kFewRows = 10;  // fewer may be equal by chance
    const ColumnProfile& column = table_.columns[i];
    if (column.values_hash == Label().values_hash && Label().known >= kFewRows) return "a copy of the label";
    if (column.type == ColumnType::kEmpty) return "no values";
    if (column.varies) return "lists of different lengths; data.bags takes them";
    if (column.index) return "an index: it counts the rows";
    if (!column.other_date_form.empty()) return "dates whose days and months cannot be told apart";
    if (column.identifier) return "an id: all values differ";
    if (column.type == ColumnType::kText && !column.units.empty()) return "numbers with several units";
    if (column.type == ColumnType::kText) return "too many different texts";
    if (column.constant) return "the same in every row";
    return "";
  }

  std::string SourceText(const std::string& path, bool header) const {
    return fmt::format("{{format: {}, path: {}, label: {}{}}}", table_.tfrecord ? "tfrecord" : "csv",
                       YamlText(path), header ? KeyOf(label_) : fmt::format("{}", label_),
                       header ? "" : ", header: false");
  }

  void SortColumns() {
    const int64_t before = bad_rows_;
    for (size_t i = 0; i < table_.columns.size(); ++i) {
      const std::string why = i == label_ ? "" : Useless(i);
      if (!why.empty()) {
        ignored_.push_back({KeyOf(i), why});
        continue;
      }
      AddUsed(table_, i, table_.columns[i]);
      if (i != label_) AddFeature(i, table_.columns[i]);
    }
    faulty_ = bad_rows_ - before;
    bad_rows_ +=
        table_.short_rows.count + table_.long_rows.count + table_.quotes.count + table_.records.count;
  }

  // The keys for how the texts of the label or a feature are read, in this table or in that to test on, and
  // its gaps and faults.
  void AddUsed(const TableProfile& table, size_t i, const ColumnProfile& column) {
    // ReadingsText() tells those of the table.
    const bool tells = &table != &table_;
    std::vector<ValueCount> markers = column.markers;
    if (i != label_) markers.insert(markers.end(), column.no_days.begin(), column.no_days.end());
    for (const ValueCount& marker : markers) {
      gaps_ = gaps_ || i != label_;
      if (!markers_.insert(ItemOf(i, marker.text)).second || !tells) continue;
      Note("{}: {} in {} of {} is taken for a missing value (data.missing_values)", ColumnName(table_, i),
           Shown(marker.text), Plural(marker.rows, "row"), table.path);
    }
    const std::string& format = column.number_format;
    if (!format.empty() && formats_.insert(ItemOf(i, format)).second && tells) {
      Note("{}: {} and the like in {} are numbers, written as {} (data.number_format)", ColumnName(table_, i),
           Shown(column.spelled), table.path, format);
    }
    if (i == label_) {
      bad_rows_ += column.missing;
      if (tells && column.missing > 0) {
        Note("Nothing can be measured on {} of {} without {}: data.bad_rows: skip leaves them out.",
             Plural(column.missing, "row"), table.path, ColumnName(table_, i));
      }
    } else {
      gaps_ = gaps_ || column.missing > 0;
    }
    bad_rows_ += column.not_a_number.count + column.not_a_date.count + column.not_float.count;
    const ColumnProfile& here = table_.columns[i];
    const bool dates = tells && i != label_ && here.IsNumber() && here.IsDate();
    const int64_t others = dates ? column.known - DatesAs(here, column) : 0;
    bad_rows_ += others;
    if (others > 0) {
      Note(
          "{}: no days{} as {}: {} of {}, whose numbers are from {:.10g} to {:.10g}; what is no day at all "
          "is left out",
          ColumnName(table_, i), here.date_form == "YYYYMMDD" ? "" : " of 1990 to 2040", here.date_form,
          Plural(others, "value"), table.path, column.min, column.max);
    }
    const bool has_texts = i == label_ ? !plan_.IsLinear() : table_.columns[i].type == ColumnType::kCategory;
    if (has_texts && column.not_utf8.count > 0) throw NotUtf8(table, column.not_utf8);
  }

  void AddFeature(size_t i, const ColumnProfile& column) {
    ++features_;
    const bool repeats = !column.more_distinct && column.distinct > 1 && column.distinct * 4 <= column.known;
    if (repeats && column.pattern_hash == Label().pattern_hash) telling_.push_back(ColumnName(table_, i));
    int64_t missing = column.missing;
    for (const ValueCount& marker : column.no_days) missing += marker.rows;
    const double share =
        static_cast<double>(missing) / static_cast<double>(std::max<int64_t>(table_.rows, 1));
    const bool date = column.IsDate();
    many_gaps_ = many_gaps_ || ((column.IsNumber() || date) && share >= kManyGaps);
    if (date) dates_.push_back(column.date_form.empty() ? KeyOf(i) : ItemOf(i, column.date_form));
    if (column.type != ColumnType::kCategory) return;
    categories_.push_back(KeyOf(i));
    if (column.padded) padded_.push_back(ColumnName(table_, i));
    if (!column.spellings.empty())
      spellings_.push_back(fmt::format("{} has {}", ColumnName(table_, i), Some(column.spellings)));
  }

  // Two spellings of a class, one with a dot behind it or with other case or blanks, are one: the more
  // frequent. Numbers are one class anyway, unless they are names.
  void FindRenames() {
    if (plan_.names) {
      for (const std::string& rename : Label().respelled) renames_.push_back(Quoted(rename));
    }
    if (Label().type != ColumnType::kCategory) return;
    std::map<std::string, std::string> spellings;  // by what they have in common
    const auto add = [&](const std::string& text) -> const std::string& {
      std::string common = CommonSpelling(text);
      if (common.size() > 1 && common.back() == '.') common.pop_back();
      const std::string& first = spellings.emplace(common, text).first->second;
      const std::string rename = Quoted(fmt::format("{} -> {}", text, first));
      const bool is_new = std::count(renames_.begin(), renames_.end(), rename) == 0;
      if (first != text && is_new) renames_.push_back(rename);
      return first;
    };
    std::map<std::string, int64_t> rows;  // by class
    for (const ValueCount& value : Label().frequent) rows[add(value.text)] += value.rows;
    if (!renames_.empty()) {
      std::vector<ValueCount> classes;
      for (const auto& [name, count] : rows) classes.push_back({name, count});
      std::stable_sort(classes.begin(), classes.end(),
                       [](const ValueCount& a, const ValueCount& b) { return a.rows > b.rows; });
      const bool all = static_cast<int64_t>(Label().frequent.size()) == Label().distinct;
      if (all) renamed_.rarest = classes.back();
      renamed_.frequent = std::move(classes);
      renamed_.distinct -= static_cast<int64_t>(renames_.size());
      plan_ = PlanModel(renamed_);
    }
    if (test_ == nullptr) return;
    for (const ValueCount& value : TestColumn(label_)->frequent) add(value.text);
  }

  void AddModel() {
    proposal_.yaml += plan_.Yaml(Shown(ColumnName(table_, label_)), BiasText(Label(), plan_));
  }

  void AddData() {
    Add("data:\n  train: {}\n", SourceText(path_, table_.has_names()));
    if (test_ != nullptr) Add("  test: {}\n", SourceText(test_->path, test_->profile.has_names()));
    if (table_.skip_lines > 0) Add("  skip_lines: {}    # at the front, no rows\n", table_.skip_lines);
    if (!comment_.empty()) Add("  comment: {}    # lines that begin so are no rows\n", Quoted(comment_));
    if (trims_) Add("  trim: true    # blanks inside quotes\n");
    if (table_.decimal_comma) Add("  decimal: comma\n");
    if (plan_.names) Add("  label_type: names    # numbers, too\n");
    if (!renames_.empty()) proposal_.yaml += ListLine("rename_labels", renames_);
    AddClasses();
    if (table_.delimiter != ',' || !table_.finds_delimiter) {
      Add("  delimiter: {}\n", NamesOf(table_.delimiter).key);
    }
    if (table_.quoting != Quotes::kDouble) {
      Add("  quotes: {}\n", table_.quoting == Quotes::kBackslash ? "backslash"
                            : table_.quoting == Quotes::kSingle  ? "single"
                                                                 : "none");
    }
    if (!ignored_.empty()) Add("  ignore:\n");
    for (const auto& [key, why] : ignored_) Add("    - {}    # {}\n", key, why);
    if (!categories_.empty()) proposal_.yaml += ListLine("categories", categories_);
    if (!dates_.empty()) proposal_.yaml += ListLine("dates", dates_);
    if (!formats_.empty()) proposal_.yaml += ListLine("number_format", {formats_.begin(), formats_.end()});
    if (!markers_.empty()) proposal_.yaml += ListLine("missing_values", {markers_.begin(), markers_.end()});
    if (gaps_) Add("  missing: {}\n", many_gaps_ ? "indicator" : "mean");
    proposal_.yaml += run_.RowsYaml(bad_rows_, plan_) + "  scale: standard\n";
  }

  // The names of classes, which then no task has to look for, nor takes a text at fault for one.
  void AddClasses() {
    const bool all = static_cast<int64_t>(renamed_.frequent.size()) == renamed_.distinct;
    const bool named = plan_.names || renamed_.type == ColumnType::kCategory;
    if (plan_.IsLinear() || !all || !(named || renamed_.not_a_number.count > 0)) return;
    std::vector<std::string> names;
    for (const ValueCount& value : renamed_.frequent) names.push_back(value.text);
    std::vector<std::string> listed(names.size());
    const std::vector<int32_t> order = ClassOrder(names);
    for (size_t i = 0; i < names.size(); ++i) listed[static_cast<size_t>(order[i])] = YamlText(names[i]);
    proposal_.yaml += ListLine("classes", listed);
  }

  void AddTrain() {
    const double rate = LearningRate(kRate, Label(), plan_);
    Add("train:\n  batch_size: {}\n  epochs: {}\n  optimizer:\n    kind: adam\n    learning_rate: {:g}\n",
        run_.batch, run_.epochs, rate);
    Add("    schedule: {{kind: cosine, decay_steps: auto, end_learning_rate: {:g}}}    # the run's updates\n",
        rate / 100);
    Add("    l2: {:.2g}    # 1 / rows\n    decay_biases: false\n", 1 / static_cast<double>(run_.rows));
    proposal_.yaml += run_.EvalYaml();
  }

  void AddNotes() {
    Note("{}", LabelNote(renamed_, plan_, ColumnName(table_, label_)));
    if (!ignored_.empty()) Note("left out: {}", IgnoredText());
    if (!telling_.empty()) {
      Note(
          "gives the label away: {}: each of its values stands for one of {}. If it is not known when rows "
          "are predicted, name it in data.ignore.",
          Some(telling_), ColumnName(table_, label_));
    }
    if (!dates_.empty()) Note("dates, which become days since 1970: {}", Some(dates_));
    if (!spellings_.empty()) {
      Note("spellings that differ by case or blanks alone are categories of their own: {}",
           Some(spellings_, "; "));
    }
    if (!padded_.empty()) Note("blanks at the ends of texts do not count: {}", Some(padded_));
    if (!renames_.empty()) Note("spellings of the label that become one class: {}", Some(renames_));
    if (Label().missing > 0) {
      Note("Nothing can be learnt from {} without {}: data.bad_rows: skip leaves them out.",
           Plural(Label().missing, "row"), ColumnName(table_, label_));
    }
    run_.AddNote(&proposal_.notes);
  }

  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(proposal_.yaml), format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void Note(fmt::format_string<Args...> format, Args&&... args) {
    proposal_.notes.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  struct Ignored {
    std::string key, why;
  };

  const TableProfile& table_;
  const size_t label_;
  const std::set<std::string> repeated_ = RepeatedNames(table_);
  const std::string path_;
  const TestTable* const test_;      // null: there is none
  ColumnProfile renamed_ = Label();  // the label, spellings of a class as one
  ModelPlan plan_;
  RunPlan run_;
  std::string comment_;  // of both tables
  bool trims_ = false;
  Proposal proposal_;
  std::vector<Ignored> ignored_;
  std::vector<std::string> categories_, dates_, renames_, spellings_, padded_;
  std::vector<std::string> telling_;  // features whose values stand for the classes, one for one
  std::set<std::string> markers_, formats_;
  int64_t features_ = 0;
  int64_t bad_rows_ = 0;  // at most: a row may have several faults
  int64_t faulty_ = 0;    // of them those of the table that have all fields
  bool gaps_ = false, many_gaps_ = false;
};

}  // namespace

Proposal ProposeConfig(const TableProfile& table, const LabelChoice& label, const std::string& path,
                       const TestTable* test) {
  return ConfigWriter(table, label, path, test).Write();
}

std::string TableName(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  name = name.substr(0, name.find('.', 1));
  for (char& c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!good) c = '_';
  }
  return name.empty() || path == "-" ? "table" : name;
}

}  // namespace dtrain
