#include "cmd/tables/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/names.h"
#include "base/printable.h"

namespace dtrain {
namespace {

constexpr size_t kMaxName = 32;     // bytes of a column's name in the table
constexpr size_t kMaxValue = 24;    // bytes of a value
constexpr size_t kShownValues = 3;  // of a category

// Characters, not bytes, so that columns of other alphabets stay in line.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string NameOf(const TableProfile& table, size_t column) {
  if (!table.has_names()) return fmt::format("{}", column);
  const std::string& name = table.columns[column].name;
  return name.empty() ? "(no name)" : Printable(name, kMaxName);
}

std::string CategoryText(const ColumnProfile& column) {
  std::string text;
  for (size_t i = 0; i < std::min(kShownValues, column.frequent.size()); ++i) {
    const double share =
        100.0 * static_cast<double>(column.frequent[i].rows) / static_cast<double>(column.known);
    text += fmt::format("{}{} {:.{}f} %", i == 0 ? "" : ", ", Printable(column.frequent[i].text, kMaxValue),
                        share, share < 1 ? 1 : 0);
  }
  return column.frequent.size() > kShownValues ? text + ", .." : text;
}

std::string ValuesText(const ColumnProfile& column) {
  switch (column.type) {
    case ColumnType::kEmpty:
      return "";
    case ColumnType::kNumber:
    case ColumnType::kWhole:
      return column.distinct == 1 ? fmt::format("{:.10g}", column.min)
                                  : fmt::format("{:.10g} to {:.10g}", column.min, column.max);
    case ColumnType::kCategory:
      return CategoryText(column);
    case ColumnType::kDate:
    case ColumnType::kText:
      return Printable(column.example, kMaxValue) + ", ..";
  }
  return "";
}

using Line = std::array<std::string, 5>;

Line ColumnLine(const TableProfile& table, size_t column) {
  const ColumnProfile& about = table.columns[column];
  return {NameOf(table, column), TypeName(about.type), fmt::format("{}", about.missing),
          fmt::format("{}{}", about.more_distinct ? "> " : "", about.distinct), ValuesText(about)};
}

// Numbers stand at the right of their columns, texts at the left.
std::string Aligned(const std::vector<Line>& lines) {
  std::array<size_t, 4> widths{};
  for (const Line& line : lines) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], Width(line[i]));
  }
  std::string text;
  for (const Line& line : lines) {
    std::string row = "  ";
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string blanks(widths[i] - Width(line[i]), ' ');
      row += (i < 2 ? line[i] + blanks : blanks + line[i]) + "  ";
    }
    row += line[4];
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

// "  t.csv:7:3: age = abc; must be a number (3 values)"
std::string FaultLine(const TableProfile& table, const Faults& faults, const std::string& what,
                      const std::string& rule, const std::string& counted) {
  if (faults.count == 0) return "";
  const std::string text =
      fmt::format("{}{}{} ({})", what, rule.empty() ? "" : "; ", rule, Plural(faults.count, counted));
  return fmt::format("  {}\n",
                     FaultAt(faults.file.empty() ? table.path : faults.file, faults.first, text).what());
}

std::string ColumnFaults(const TableProfile& table, size_t column) {
  const ColumnProfile& about = table.columns[column];
  const auto line = [&](const Faults& faults, const char* rule) {
    const std::string what =
        fmt::format("{} = {}", ColumnName(table, column), Printable(faults.example, kMaxValue));
    return FaultLine(table, faults, what, rule, "value");
  };
  return line(about.not_a_number, "must be a number") +
         line(about.not_float, "must be a finite number within float32") +
         line(about.not_a_date, "must be a date, as others are");
}

}  // namespace

DelimiterNames NamesOf(char delimiter) {
  switch (delimiter) {
    case '\t':
      return {"tab", "tabs"};
    case ';':
      return {"semicolon", "semicolons"};
    case '|':
      return {"bar", "bars"};
    case '\x01':
      return {"control_a", "byte 1 (Ctrl-A)"};
    case ' ':
      return {"blanks", "blanks"};
    case '^':
      return {"caret", "carets"};
    case '~':
      return {"tilde", "tildes"};
    case ':':
      return {"colon", "colons"};
    default:
      return {"comma", "commas"};
  }
}

std::string ColumnsText(const TableProfile& table) {
  std::string text = fmt::format(
      "{}: {} of {}, {}; {}\n\n", table.path, Plural(table.rows, "row"),
      Plural(static_cast<int64_t>(table.columns.size()), "column"),
      table.tfrecord ? "TFRecord" : fmt::format("separated by {}", NamesOf(table.delimiter).many),
      table.tfrecord      ? "features are columns, in the order of their names"
      : table.has_names() ? "the first line names the columns"
                          : "no line names the columns: they are called by their numbers, from 0");
  std::vector<Line> lines{{"column", "type", "missing", "distinct", "values"}};
  for (size_t i = 0; i < table.columns.size(); ++i) lines.push_back(ColumnLine(table, i));
  return text + Aligned(lines);
}

std::string ReadingsText(const TableProfile& table, size_t label) {
  std::string text;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnProfile& column = table.columns[i];
    const auto add = [&](const std::string& what) {
      text += fmt::format("  {}{}\n", ColumnName(table, i), what);
    };
    const auto add_marker = [&](const ValueCount& marker) {
      add(fmt::format(": {} in {} is taken for a missing value (data.missing_values)",
                      Printable(marker.text, kMaxValue), Plural(marker.rows, "row")));
    };
    for (const ValueCount& marker : column.markers) add_marker(marker);
    if (!column.number_format.empty()) {
      const Faults& others = column.no_unit;
      add(fmt::format(
          ": {} and the like are numbers, written as {} (data.number_format){}{}",
          Printable(column.spelled, kMaxValue), column.number_format,
          column.brackets ? "; brackets stand for a minus" : "",
          others.count == 0
              ? ""
              : fmt::format(
                    "; without the unit: {}, such as {} in line {}, read as if it were there. Correct what "
                    "means something else.",
                    Plural(others.count, "value"), Printable(others.example, kMaxValue), others.first.line)));
    }
    if (!column.units.empty()) {
      add(fmt::format(
          ": its values are numbers with several units or currencies, {}, and are taken for texts. "
          "Convert them to one unit.",
          Printable(column.units, kMaxValue)));
    }
    if (column.mixed && i != label) {
      const bool dates = column.dates >= column.numbers;
      add(fmt::format(
          ": {} % of its values are {} and others are texts, and it is {}. If one text stands for a missing "
          "value, name it in data.missing_values; correct others.",
          100 * std::max(column.dates, column.numbers) / column.known, dates ? "dates" : "numbers",
          column.type == ColumnType::kText ? "left out" : "a category"));
    }
    if (!column.other_format.empty()) {
      add(fmt::format(
          ": {} and the like are read as they stand, and may be written as {}. If so, name the column in "
          "data.number_format, as NAME={}.",
          Printable(column.spelled, kMaxValue), column.other_format, column.other_format));
    }
    const std::string& form = column.date_form;
    if (!column.other_date_form.empty()) {
      add(fmt::format(
          ": {} and the like are dates whose days and months cannot be told apart, and are left out. Name "
          "the column in data.dates, as NAME={} or NAME={}.",
          Printable(column.example, kMaxValue), form, column.other_date_form));
    } else if (!form.empty() && i != label) {
      for (const ValueCount& marker : column.no_days) add_marker(marker);
      add(fmt::format(": {} and the like are dates, written as {} (data.dates){}",
                      Printable(column.example, kMaxValue), form,
                      column.IsNumber() ? ". If they are other numbers, take the column out there." : ""));
    } else if (i != label && column.IsNumber() && !column.likely_form.empty()) {
      add(fmt::format(
          ": {} % of its values are dates of {} and others are not: they are read as numbers. If the others "
          "stand for missing values, name them in data.missing_values, and the column in data.dates.",
          100 * column.likely_dates / column.known, column.likely_form));
    }
  }
  return text;
}

std::string FaultsText(const TableProfile& table) {
  std::string text;
  for (size_t i = 0; i < table.columns.size(); ++i) text += ColumnFaults(table, i);
  const std::string rule = fmt::format("must be {}", table.columns.size());
  for (const Faults* faults : {&table.short_rows, &table.long_rows}) {
    text += FaultLine(table, *faults, faults->example == "1" ? "1 field" : faults->example + " fields", rule,
                      "row");
  }
  text += FaultLine(table, table.records, table.records.example, "", "record");
  return text + FaultLine(table, table.quotes, "text behind a closing quote, or a quote that is not closed",
                          "quotes must stand around whole fields (data.quotes)", "quote");
}

void CheckRows(const TableProfile& table) {
  const int64_t others =
      table.short_rows.count + table.long_rows.count + table.quotes.count + table.records.count;
  const int64_t left_out = others + table.unreadable, all = table.rows + others;
  if (all == 0) {
    throw UserError("{}: it has no rows{} Is it the right file?", table.path,
                    table.has_names() ? ", only a header." : ".");
  }
  if (left_out * 2 > all) {
    throw UserError("{}: {} of {} cannot be read:\n{}Correct them, or say how the table is written.",
                    table.path, left_out, Plural(all, "row"), FaultsText(table));
  }
  const Faults& first = table.first_row;
  if (first.count == 0) return;
  throw UserError(
      "{}:{}:{}: the first row tells the number of columns: it has {}, and most rows have {}. Correct it.",
      first.file.empty() ? table.path : first.file, first.first.line, first.first.column, first.example,
      Plural(static_cast<int64_t>(table.columns.size()), "field"));
}

std::string HeaderDoubts(const TableProfile& table) {
  std::string text = FaultLine(table, table.headers, table.headers.example, "such a line is no row", "line");
  if (table.arff) {
    text +=
        "  it is ARFF (Weka): rows are read from behind @DATA on, and columns are called by their numbers, "
        "from "
        "0\n";
  }
  if (table.names_rows) {
    text +=
        "  the header has a name less than rows have fields: it is taken for names of all columns but the "
        "first, as R writes them beside the names of rows\n";
  }
  if (table.header == HeaderKind::kCounting) {
    text +=
        "  the first line counts, as the numbers of columns do: it is taken for a row. If it is a header, "
        "name the columns there.\n";
  } else if (table.header == HeaderKind::kNumbered) {
    text +=
        "  the first line counts: it is taken for names of columns, since the numbers below are not whole. "
        "If it is a row, set header: false.\n";
  }
  for (const std::string& name : RepeatedNames(table)) {
    text += fmt::format("  more than one column is named \"{}\": rename one\n", Printable(name, kMaxName));
  }
  return text;
}

std::string SuspectsText(const TableProfile& table) {
  std::string text = HeaderDoubts(table) +
                     FaultLine(table, table.empty_lines, "an empty line", "such lines are no rows", "line");
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnProfile& column = table.columns[i];
    const std::string name = ColumnName(table, i);
    if (column.index) text += fmt::format("  {} counts the rows: an index\n", name);
    if (column.identifier) text += fmt::format("  {} differs in every row: an id\n", name);
    if (column.constant) text += fmt::format("  {} is the same in every row\n", name);
  }
  return text;
}

}  // namespace dtrain
