#include "cmd/testing/drawn_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "cmd/testing/drawn_columns.h"

namespace dtrain::testing {
namespace {

using Texts = std::vector<std::string>;

// kBare: a quote inside a field that begins with none is a character. kEscapes: no quotes, but a backslash
// before what would end the field.
enum class Quotes { kNeeded, kAll, kTexts, kBackslash, kSingle, kFormula, kBare, kEscapes };

// How the file is written, beside its columns.
struct Form {
  std::string delimiter = ",";
  bool aligned = false;  // blanks, as many as it takes
  Quotes quotes = Quotes::kNeeded;
  std::string line_end = "\n";
  enum { kNames, kNone, kCounts, kIndex, kRowNames } header = kNames;
  bool decimal_comma = false;  // of all numbers
};

// TableDrawer: draws the columns, then the label, then the writing.
class TableDrawer {
 public:
  explicit TableDrawer(uint64_t seed) : draws_(seed) {}

  DrawnTable Draw() {
    rows_ = draws_.Chance(0.08) ? draws_.Between(4, 14) : draws_.Between(20, 110);
    DrawForm();
    ColumnDrawer drawer(&draws_, rows_, {form_.delimiter != " ", form_.decimal_comma}, &table_.traits);
    const int features = draws_.Between(1, 6);
    for (int i = 0; i < features; ++i) columns_.push_back(drawer.Any());
    const size_t signal = PlaceOfNew();
    columns_.insert(columns_.begin() + static_cast<int64_t>(signal), drawer.Signal());
    AddLabel(signal, &drawer);
    NameColumns();
    Write();
    return std::move(table_);
  }

 private:
  template <typename... Args>
  void Trait(fmt::format_string<Args...> format, Args&&... args) {
    table_.traits.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void DrawForm() {
    static const Texts delimiters = {"comma", "comma", "comma",  "comma",  "tab",      "semicolon",
                                     "bar",   "blank", "blanks", "byte 1", "semicolon"};
    const std::string delimiter = draws_.Rarely(1) ? draws_.Of(delimiters) : "comma";
    form_.aligned = delimiter == "blanks";
    form_.delimiter = delimiter == "comma"       ? ","
                      : delimiter == "tab"       ? "\t"
                      : delimiter == "semicolon" ? ";"
                      : delimiter == "bar"       ? "|"
                      : delimiter == "byte 1"    ? "\x01"
                                                 : " ";
    Trait("delimiter {}", delimiter);
    if (form_.delimiter != "," && draws_.Rarely(0.3)) {
      form_.decimal_comma = true;
      Trait("decimal commas");
    }
    if (draws_.Rarely(0.8)) {
      static const std::vector<std::pair<Quotes, const char*>> quotes = {
          {Quotes::kAll, "all"},         {Quotes::kTexts, "texts"},     {Quotes::kBackslash, "backslash"},
          {Quotes::kSingle, "single"},   {Quotes::kFormula, "formula"}, {Quotes::kBare, "bare"},
          {Quotes::kEscapes, "escapes"}, {Quotes::kAll, "all"}};
      const auto& [kind, name] = draws_.Of(quotes);
      form_.quotes = kind;
      Trait("quotes {}", name);
    }
    if (draws_.Rarely(0.4)) {
      form_.line_end = draws_.Chance(0.2) ? "\r" : "\r\n";
      Trait("{}", form_.line_end == "\r" ? "CR" : "CRLF");
    }
    const int header = draws_.Rarely(1) ? draws_.Below(9) : 9;
    if (header < 4 && rows_ >= 20) {  // in fewer rows texts may never come again
      form_.header = Form::kNone;
      Trait("no header");
    } else if (header == 4) {
      form_.header = Form::kCounts;
      Trait("names are numbers");
    } else if (header == 5) {
      form_.header = Form::kIndex;
      Trait("an index without a name");
    } else if (header == 6 && form_.quotes != Quotes::kEscapes &&  // of names alone a backslash is not known
               (form_.delimiter == " " || form_.delimiter == "\t" || form_.delimiter == ",")) {
      form_.header = Form::kRowNames;
      Trait("row names");
    }
  }

  size_t PlaceOfNew() { return static_cast<size_t>(draws_.Below(static_cast<int>(columns_.size()) + 1)); }

  // --- the label ---

  void AddLabel(size_t signal, ColumnDrawer* drawer) {
    Column label = draws_.Chance(0.3) ? drawer->QuantityOf(columns_[signal])
                                      : drawer->ClassesOf(columns_[signal], &table_.classes);
    if (draws_.Rarely(0.16)) {
      const std::string marker = form_.delimiter == " " ? "NA" : draws_.Of(Texts{"", "NA", "?"});
      for (int64_t row = draws_.Below(5) + 3; row < rows_; row += draws_.Between(15, 40)) {
        label.cells[static_cast<size_t>(row)] = {marker, ""};
        ++table_.unlabelled;
      }
      if (table_.unlabelled > 0) Trait("{} rows without label", table_.unlabelled);
      const auto is_gone = [&](const std::string& name) {
        return std::none_of(label.cells.begin(), label.cells.end(),
                            [&](const Cell& cell) { return cell.plain == name; });
      };
      Texts& classes = table_.classes;
      classes.erase(std::remove_if(classes.begin(), classes.end(), is_gone), classes.end());
    }
    table_.may_be_quantity = table_.classes == Texts{"-1", "0", "1"};
    static const Texts known = {"label",    "target",   "class",   "y",    "outcome",
                                "Survived", "response", "species", "click"};
    const bool by_name = draws_.Chance(0.5);
    label.name =
        by_name ? draws_.Of(known) : draws_.Of(Texts{"kind of it", "result", "quality", "Preis", "Y2"});
    const size_t place = draws_.Chance(0.5)
                             ? columns_.size()
                             : static_cast<size_t>(draws_.Below(static_cast<int>(columns_.size()) + 1));
    columns_.insert(columns_.begin() + static_cast<int64_t>(place), std::move(label));
    label_ = place;
    signal_ = signal + (place <= signal ? 1 : 0);
    const bool is_found = form_.header == Form::kCounts || (form_.header != Form::kNone && by_name);
    names_label_ = !is_found && (place + 1 < columns_.size() || draws_.Chance(0.3));
  }

  // --- the writing ---

  void NameColumns() {
    Texts names = {"age",  "height", "Net worth",  "Größe", "flow (m3/s)", "x1",   "temp_C", "speed",
                   "size", "a,b",    "say \"so\"", "價格",  "weight",      "2019", "Dept.",  "No."};
    if (form_.header == Form::kCounts) {
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (i != label_) columns_[i].name = fmt::format("{}", i);
      }
      columns_[label_].name = "label";
    }
    std::set<std::string> used;
    for (Column& column : columns_) {
      if (column.name.empty() || !used.insert(column.name).second) {
        const auto name = names.begin() + draws_.Below(static_cast<int>(names.size()));
        column.name = *name;
        names.erase(name);
      }
    }
    const bool named = form_.header != Form::kNone;
    const auto called = [&](size_t i) { return named ? columns_[i].name : fmt::format("{}", i); };
    table_.label_column = called(label_);
    const auto shown = [&](size_t i) { return named ? columns_[i].name : fmt::format("column {}", i + 1); };
    table_.signal = shown(signal_);
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].doubtful) table_.doubtful.push_back(shown(i));
    }
    // A last field that is always empty looks like a delimiter that ends rows.
    const auto is_empty = [](const Cell& cell) { return cell.text.empty(); };
    const std::vector<Cell>& last = columns_.back().cells;
    if (form_.header == Form::kRowNames && std::all_of(last.begin(), last.end(), is_empty))
      form_.header = Form::kIndex;
    table_.plain_label = table_.label_column;
    if (names_label_) table_.label = table_.label_column;
    table_.may_refuse = columns_[signal_].doubtful;
  }

  bool NeedsQuotes(const std::string& text) const {
    const bool edges = !text.empty() && (text.front() == ' ' || text.back() == ' ');
    return text.find(form_.delimiter) != text.npos || text.find('"') != text.npos ||
           text.find('\n') != text.npos || (edges && form_.delimiter == " ");
  }

  std::string Written(const std::string& text, bool number) const {
    const bool quote = form_.quotes == Quotes::kAll || (form_.quotes == Quotes::kTexts && !number);
    const auto doubled = [](const std::string& in, char what, const std::string& by) {
      std::string out;
      for (const char c : in) out += c == what ? by : std::string(1, c);
      return out;
    };
    switch (form_.quotes) {
      case Quotes::kBackslash:
        if (!NeedsQuotes(text) && text.find('\\') == text.npos) return text;
        return NeedsQuotes(text) ? '"' + doubled(text, '"', "\\\"") + '"' : text;
      case Quotes::kSingle:
        if (number && !NeedsQuotes(text)) return text;
        return "'" + doubled(text, '\'', "''") + "'";
      case Quotes::kFormula:
        if (NeedsQuotes(text)) return '"' + doubled(text, '"', "\"\"") + '"';
        return number || text.empty() ? text : "=\"" + text + "\"";
      case Quotes::kBare:
        return text.find(form_.delimiter) == text.npos && text.find('"') > 0
                   ? text
                   : '"' + doubled(text, '"', "\"\"") + '"';
      case Quotes::kEscapes:
        return doubled(text, form_.delimiter[0], "\\" + form_.delimiter);
      default:
        return quote || NeedsQuotes(text) ? '"' + doubled(text, '"', "\"\"") + '"' : text;
    }
  }

  std::string Line(const Texts& fields, bool trailing) const {
    std::string line;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) line += form_.delimiter;
      line += fields[i];
      if (form_.aligned && i + 1 < fields.size())
        line += std::string(12 - std::min<size_t>(11, fields[i].size()), ' ');
    }
    return line + (trailing ? form_.delimiter : "") + form_.line_end;
  }

  std::string HeaderLine(bool trailing) const {
    Texts names;
    if (form_.header == Form::kIndex) names.push_back(Written("", false));
    for (const Column& column : columns_) names.push_back(Written(column.name, false));
    return Line(names, trailing);
  }

  std::string RowLine(int64_t row, bool trailing) const {
    Texts fields;
    if (form_.header == Form::kIndex) fields.push_back(fmt::format("{}", row));
    if (form_.header == Form::kRowNames) fields.push_back(Written(fmt::format("{}", row + 1), false));
    for (const Column& column : columns_)
      fields.push_back(Written(column.cells[static_cast<size_t>(row)].text, column.numbers));
    return Line(fields, trailing);
  }

  void Write() {
    WritePlain();
    const bool trailing_rows = form_.delimiter != " " && draws_.Rarely(0.1),
               trailing_all = trailing_rows && draws_.Chance(0.5);
    if (trailing_rows) Trait("a delimiter ends {}", trailing_all ? "each line" : "each row");
    const bool header = form_.header != Form::kNone;
    const int parts = rows_ >= 30 && draws_.Rarely(0.24) ? draws_.Between(2, 3) : 1;
    const bool blanks = draws_.Rarely(0.16), again = header && parts == 1 && draws_.Rarely(0.1);
    const bool units = header && parts == 1 && !again && draws_.Rarely(0.08);
    const bool bad = draws_.Rarely(0.16) && form_.delimiter != " " && !trailing_rows && columns_.size() > 2;
    const int bad_kind = draws_.Below(2);
    std::string title =
        parts == 1 && draws_.Rarely(0.1) ? draws_.Of(Texts{"# made by hand", "Report of the year"}) : "";
    // Between blanks it has four words, and is the header of as many columns.
    constexpr size_t kWords = 4;
    const bool more = form_.header == Form::kIndex || form_.header == Form::kRowNames;
    if (form_.delimiter == " " && columns_.size() + (more ? 1 : 0) == kWords) title.clear();
    const bool bom = draws_.Rarely(0.16), open_end = draws_.Rarely(0.2);
    table_.gzip = draws_.Rarely(0.16);
    for (int part = 0; part < parts; ++part) {
      std::string text;
      if (bom) text += "\xef\xbb\xbf";
      if (!title.empty()) text += title + form_.line_end;
      if (blanks && draws_.Chance(0.3)) text += form_.line_end;
      if (header) text += HeaderLine(trailing_all);
      if (units)
        text += Line(Texts(columns_.size() + (form_.header == Form::kIndex ? 1 : 0), "[unit]"), trailing_all);
      const int64_t begin = rows_ * part / parts, end = rows_ * (part + 1) / parts;
      for (int64_t row = begin; row < end; ++row) {
        if (again && row == rows_ / 2) text += HeaderLine(trailing_all);
        if (blanks && draws_.Chance(0.04)) text += (draws_.Chance(0.2) ? "  " : "") + form_.line_end;
        if (bad && row == rows_ / 3 && part == 0) {
          text += bad_kind == 0
                      ? "1" + form_.delimiter + "2" + form_.line_end
                      : RowLine(row, false).substr(0, RowLine(row, false).size() - form_.line_end.size()) +
                            form_.delimiter + "more" + form_.line_end;
          ++table_.bad_rows;
        }
        text += RowLine(row, trailing_rows);
      }
      if (open_end) text.resize(text.size() - form_.line_end.size());
      table_.files.push_back(
          {fmt::format("{}{}{}", parts == 1 ? "table" : "part-", parts == 1 ? "" : fmt::format("{}", part),
                       table_.gzip ? ".csv.gz" : ".csv"),
           std::move(text)});
    }
    if (parts > 1 && !table_.gzip && draws_.Chance(0.2)) {
      table_.files.push_back({"part-9.csv", ""});
      Trait("a part of 0 bytes");
    }
    table_.argument = parts == 1 ? table_.files[0].name : table_.gzip ? "part-*.csv.gz" : "part-*.csv";
    table_.rows = rows_;
    table_.other_lines = (again ? 1 : 0) + (units ? 1 : 0);
    if (parts > 1) Trait("{} parts", parts);
    if (blanks) Trait("blank lines");
    if (again) Trait("the header twice");
    if (units) Trait("a line of units");
    if (bad) Trait("a row {}", bad_kind == 0 ? "too short" : "too long");
    if (!title.empty()) Trait("in front: {}", title);
    if (bom) Trait("BOM");
    if (open_end) Trait("no end of the last line");
    if (table_.gzip) Trait("gzip");
  }

  void WritePlain() {
    Form plain;
    std::swap(plain, form_);
    form_.header = plain.header;
    if (form_.header == Form::kRowNames) form_.header = Form::kIndex;
    if (form_.header != Form::kNone) table_.plain = HeaderLine(false);
    for (int64_t row = 0; row < rows_; ++row) {
      Texts fields;
      if (form_.header == Form::kIndex) fields.push_back(fmt::format("{}", row));
      for (const Column& column : columns_)
        fields.push_back(Written(column.cells[static_cast<size_t>(row)].plain, column.numbers));
      table_.plain += Line(fields, false);
    }
    std::swap(plain, form_);
  }

  Draws draws_;
  Form form_;
  int64_t rows_ = 0;
  std::vector<Column> columns_;
  size_t label_ = 0, signal_ = 0;
  bool names_label_ = false;
  DrawnTable table_;
};

}  // namespace

DrawnTable DrawTable(uint64_t seed) { return TableDrawer(seed).Draw(); }

}  // namespace dtrain::testing
