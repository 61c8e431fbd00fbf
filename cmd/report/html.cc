#include "cmd/report/html.h"

#include <algorithm>
#include <cmath>

#include "base/printable.h"

namespace dtrain {
namespace {

constexpr char kStyle[] = R"(
:root{color-scheme:light dark;--page:#f6f6f4;--card:#fff;--ink:#1a1a19;--soft:#5d5c58;--rule:#dddcd6;--grid:#eceae4;
--good:#006300;--bad:#b3261e;--warn:#8a5a00;
--s0:#2a78d6;--s1:#d9571f;--s2:#12875f;--s3:#b47a00;--s4:#c74a83;--s5:#4a3aa7;--s6:#008300;--s7:#c8322f;--s8:#8a8984}
@media(prefers-color-scheme:dark){:root{--page:#141413;--card:#1f1f1d;--ink:#f2f1ec;--soft:#b3b2aa;--rule:#3a3a36;
--grid:#2c2c29;--good:#4cc24c;--bad:#ff8078;--warn:#e5ac3a;
--s0:#5598e7;--s1:#ee7a48;--s2:#2bb583;--s3:#d39b1c;--s4:#e57aa9;--s5:#9a8ff0;--s6:#43a843;--s7:#f0736f;--s8:#8a8984}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1280px;margin:0 auto;padding:16px}
h1{font-size:22px;margin:4px 0 2px;overflow-wrap:anywhere}
h2{font-size:17px;margin:0 0 10px}
h3{font-size:14px;margin:14px 0 6px}
ul{margin:0;padding-left:20px}
p{margin:6px 0;overflow-wrap:anywhere}
.soft,figcaption span,.note{color:var(--soft)}
.note{font-size:13px}
section,figure{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:14px;margin:0}
section{margin-top:14px}
section figure{border:0;padding:0}
.state{display:inline-block;white-space:nowrap;padding:1px 10px;border-radius:999px;border:1px solid currentColor;font-weight:600;font-size:13px}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
.error{border-left:4px solid var(--bad);padding:6px 10px;background:var(--page)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,118px),1fr));gap:10px;margin-top:12px}
.tiles div{background:var(--page);border-radius:6px;padding:8px 10px;min-width:0}
.tiles b{display:block;font-size:19px;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.tiles span{font-size:12px;color:var(--soft)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr));gap:22px 28px}
figcaption{margin-bottom:6px}
figcaption b{margin-right:6px}
figcaption span{font-size:12px}
.plot{position:relative;margin:4px 4px 22px 54px;height:200px}
.plot svg{position:absolute;inset:0;width:100%;height:100%;overflow:hidden}
.plot .y span,.plot .x span{position:absolute;font-size:11px;color:var(--soft);white-space:nowrap;font-variant-numeric:tabular-nums}
.plot .y span{right:calc(100% + 6px);transform:translateY(50%);line-height:1}
.plot .x span{top:calc(100% + 5px);transform:translateX(-50%);line-height:1}
path{fill:none;vector-effect:non-scaling-stroke}
.grid{stroke:var(--grid)}.axis{stroke:var(--rule)}.diagonal{stroke:var(--soft);stroke-dasharray:4 4}
.line{stroke:var(--c);stroke-width:1.75;stroke-linejoin:round}
.faint .line{stroke-width:1;opacity:.5}
.dots{stroke:var(--c);stroke-width:6;stroke-linecap:round}
.band{fill:var(--c);opacity:.16;stroke:none}
.legend{display:flex;flex-wrap:wrap;gap:2px 14px;list-style:none;margin:0;padding:0;font-size:12px;color:var(--soft)}
.legend li{overflow-wrap:anywhere}
.legend li::before{content:"";display:inline-block;width:14px;height:3px;border-radius:2px;background:var(--c);margin-right:5px;vertical-align:middle}
.legend b{color:var(--ink);font-weight:600;font-variant-numeric:tabular-nums}
.c0{--c:var(--s0)}.c1{--c:var(--s1)}.c2{--c:var(--s2)}.c3{--c:var(--s3)}.c4{--c:var(--s4)}.c5{--c:var(--s5)}.c6{--c:var(--s6)}.c7{--c:var(--s7)}.c8{--c:var(--s8)}
.scroll{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:13px}
th,td{padding:3px 12px 3px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--grid)}
td{max-width:60ch;overflow-wrap:break-word}
td code{display:block;min-width:14ch}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
th{color:var(--soft);font-weight:600;white-space:nowrap}
.shares{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:6px 10px;align-items:center;font-size:13px;margin:8px 0}
.bar{display:flex;height:16px;gap:1px;border-radius:3px;overflow:hidden;background:var(--grid)}
.bar span{background:var(--c);min-width:0}
.lanes{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 10px;font-size:12px;color:var(--soft)}
.lane{position:relative;height:20px;border-bottom:1px solid var(--grid)}
.lane i{position:absolute;top:5px;width:9px;height:9px;margin-left:-4px;border-radius:50%;background:var(--c)}
.ends{display:flex;justify-content:space-between;font-variant-numeric:tabular-nums}
.matrix td,.matrix th{padding:4px 6px;border:1px solid var(--card);text-align:right;font-variant-numeric:tabular-nums;min-width:30px;max-width:14ch}
.matrix td{background:color-mix(in srgb,var(--c) var(--p),var(--page))}
@media(max-width:480px){.matrix td,.matrix th{padding:4px 3px;min-width:26px;font-size:11px}main{padding:10px}section,figure{padding:11px}}
.pictures{display:flex;flex-wrap:wrap;gap:10px}
.pictures div{text-align:center;font-size:12px;color:var(--soft)}
.pictures img{display:block;width:84px;height:84px;image-rendering:pixelated;background:var(--page);border:1px solid var(--rule)}
details{margin-top:10px}
summary{cursor:pointer;color:var(--soft)}
pre{overflow-x:auto;font-size:12px;line-height:1.4;background:var(--page);padding:10px;border-radius:6px}
code{overflow-wrap:anywhere;font-size:13px}
)";

// Escapes one line; `<` and the like are no control characters, so they are left to this function alone.
void AppendEscaped(std::string_view line, std::string* out) {
  for (const char c : Printable(line)) {
    switch (c) {
      case '&':
        *out += "&amp;";
        break;
      case '<':
        *out += "&lt;";
        break;
      case '>':
        *out += "&gt;";
        break;
      case '"':
        *out += "&quot;";
        break;
      case '\'':
        *out += "&#39;";
        break;
      default:
        *out += c;
    }
  }
}

std::string WithCommas(double whole) {
  std::string digits = fmt::format("{:.0f}", std::abs(whole));
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return (whole < 0 ? "-" : "") + digits;
}

}  // namespace

std::string Html(std::string_view text) {
  std::string html;
  for (size_t begin = 0;; begin = text.find('\n', begin) + 1) {
    AppendEscaped(text.substr(begin, text.find('\n', begin) - begin), &html);
    if (text.find('\n', begin) == text.npos) return html;
    html += '\n';
  }
}

std::string HtmlPage(const std::string& title, const std::string& body) {
  // Nothing may be fetched or run, whatever text a run has brought into the page.
  constexpr char kPolicy[] = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      kPolicy, Html(title), kStyle, body);
}

std::string HtmlSection(const std::string& title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", Html(title), body);
}

std::string HtmlTable(const std::vector<std::string>& heading,
                      const std::vector<std::vector<std::string>>& rows, size_t first_number) {
  const auto line = [&](const std::vector<std::string>& cells, const char* tag) {
    std::string html = "<tr>";
    for (size_t i = 0; i < cells.size(); ++i) {
      html += fmt::format("<{0}{1}>{2}</{0}>", tag, i < first_number ? "" : " class=\"n\"", cells[i]);
    }
    return html + "</tr>\n";
  };
  std::string html = "<div class=\"scroll\"><table>\n";
  if (!heading.empty()) html += line(heading, "th");
  for (const std::vector<std::string>& row : rows) html += line(row, "td");
  return html + "</table></div>\n";
}

std::string HtmlDetails(const std::string& summary, const std::string& body) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", Html(summary), body);
}

std::string HtmlNotes(const std::vector<std::string>& notes) {
  std::string html;
  for (const std::string& note : notes) html += fmt::format("<p class=\"note\">{}</p>\n", Html(note));
  return html;
}

std::string NumberText(double number) {
  if (std::abs(number) >= 1e15) return fmt::format("{:.4g}", number);
  if (std::abs(number) >= 1000 || number == std::floor(number)) return WithCommas(std::round(number));
  return fmt::format("{:.4g}", number);
}

}  // namespace dtrain
