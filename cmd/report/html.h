// The page of a report: its frame with the style sheet, and escaped text. A page needs no other file and no
// network, and follows the reader's choice of light or dark. Thread: any; free functions.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

// Returns `text` for HTML, also inside quotes. What is no character to show is escaped as Printable() does.
// A text of several lines keeps them.
std::string Html(std::string_view text);

// Returns a whole page. `body` is HTML, `title` is text.
std::string HtmlPage(const std::string& title, const std::string& body);

// Returns a section with a heading; empty if `body` is.
std::string HtmlSection(const std::string& title, const std::string& body);

// Returns a table whose cells are HTML; it scrolls if it is wider than the page. Columns from `first_number`
// on have numbers, which stand at the right.
std::string HtmlTable(const std::vector<std::string>& heading,
                      const std::vector<std::vector<std::string>>& rows, size_t first_number = 1);

// Returns a part that is closed until the reader opens it.
std::string HtmlDetails(const std::string& summary, const std::string& body);

// Returns paragraphs of text.
std::string HtmlNotes(const std::vector<std::string>& notes);

// Numbers as people read them: 1234567 as "1,234,567" and 0.12345 as "0.1235"; "-" if there is none.
std::string NumberText(double number);
template <typename Number>
std::string FigureText(const Number& number) {
  return number ? NumberText(*number) : "-";
}

}  // namespace dtrain
