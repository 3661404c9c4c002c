#include "server/pages/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/text/human_numbers.h"
#include "core/base/text/text.h"
#include "core/base/text/utf8.h"
#include "core/view/html.h"

namespace fusion {
namespace {

// A measured time is marked if it is off its estimate by more than this factor. The same as the
// alert of deploy/observability.
constexpr double kOff = 1.5;

std::string_view ClassOf(PageTable::Kind kind) {
  switch (kind) {
    case PageTable::Kind::kNumber:
      return " class=\"n\"";
    case PageTable::Kind::kText:
      return " class=\"t\"";
    case PageTable::Kind::kSpareName:
      return " class=\"spare\"";
    case PageTable::Kind::kSpareNumber:
      return " class=\"n spare\"";
    case PageTable::Kind::kName:
      break;
  }
  return "";
}

std::string_view ClassOf(Mood mood) {
  switch (mood) {
    case Mood::kGood:
      return "good";
    case Mood::kBad:
      return "bad";
    case Mood::kQuiet:
      break;
  }
  return "quiet";
}

}  // namespace

Markup Words(std::string_view text) { return {EscapeHtml(OneLine(text))}; }

Markup Foreign(std::string_view text, size_t most) {
  if (text.empty()) return {"-"};
  const std::string line = OneLine(text);
  const std::string_view shown = Utf8Prefix(line, most);
  return {ForeignText(shown.size() < line.size() ? StrCat(shown, "...") : line)};
}

Markup Ops(std::string_view label, size_t most) {
  std::string out;
  for (const char c : Foreign(label, most).html) {
    out += c;
    if (c == '+') out += "<wbr/>";
  }
  return {out};
}

std::string UrlPart(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

Markup Link(std::string_view path, const Markup& label) {
  return {StrCat("<a href=\"", EscapeHtml(path), "\">", label.html, "</a>")};
}

Markup Badge(Mood mood, std::string_view word) {
  return {StrCat("<span class=\"badge ", ClassOf(mood), "\">", EscapeHtml(word), "</span>")};
}

Markup Bar(double part, std::string_view text) {
  const double width = std::isfinite(part) ? std::clamp(part, 0.0, 1.0) * 100 : 0;
  return {
      fmt::format("<span class=\"bar\" aria-hidden=\"true\"><i style=\"width:{:.1f}%\"></i>"
                  "</span> {}",
                  width, EscapeHtml(text))};
}

Markup RatioMark(double measured, double estimated) {
  if (measured <= 0 || estimated <= 0) return {"-"};
  const double ratio = measured / estimated;
  const std::string text = fmt::format("{:.2f} x", ratio);
  return ratio > kOff || ratio < 1 / kOff ? Badge(Mood::kBad, text) : Words(text);
}

Markup operator+(const Markup& a, const Markup& b) { return {a.html + b.html}; }

void PageTable::Add(const std::vector<Markup>& cells) {
  FUSION_CHECK(cells.size() == columns_.size(), "a cell for each column");
  body_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string_view tag = i == 0 ? "th" : "td";
    StrAppend(&body_, StrCat("<", tag, i == 0 ? " scope=\"row\"" : "", ClassOf(columns_[i].kind),
                             ">", cells[i].html, "</", tag, ">"));
  }
  body_ += "</tr>\n";
  ++rows_;
}

Markup PageTable::Show(std::string_view nothing) const {
  if (rows_ == 0) return Paragraph(Words(nothing));
  // A part that scrolls must be reachable by keyboard, and then it needs a name.
  std::string out = StrCat("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"",
                           EscapeHtml(caption_), "\"><table>\n<caption>", EscapeHtml(caption_),
                           "</caption>\n<thead><tr>");
  for (const Column& column : columns_) {
    StrAppend(&out, StrCat("<th scope=\"col\"", ClassOf(column.kind), ">",
                           EscapeHtml(column.heading), "</th>"));
  }
  return {StrCat(out, "</tr></thead>\n<tbody>\n", body_, "</tbody>\n</table></div>\n")};
}

void FactList::Add(std::string_view name, const Markup& value) {
  StrAppend(&items_,
            StrCat("<div><dt>", EscapeHtml(name), "</dt><dd>", value.html, "</dd></div>\n"));
}

Markup FactList::Show() const { return {StrCat("<dl class=\"facts\">\n", items_, "</dl>\n")}; }

void FigureList::Add(std::string_view name, const Markup& value, const Markup& note) {
  StrAppend(&items_, StrCat("<div><dt>", EscapeHtml(name), "</dt><dd class=\"value\">", value.html,
                            "</dd><dd class=\"note\">", note.html, "</dd></div>\n"));
}

Markup FigureList::Show() const { return {StrCat("<dl class=\"figures\">\n", items_, "</dl>\n")}; }

Markup PageSection(std::string_view heading, const Markup& content) {
  return {StrCat("<section>\n<h2>", Words(heading).html, "</h2>\n", content.html, "</section>\n")};
}

Markup Paragraph(const Markup& content) { return {StrCat("<p>", content.html, "</p>\n")}; }

Markup Verbatim(std::string_view label, std::string_view text, size_t most_bytes) {
  std::string body;
  for (std::string_view line : StrSplit(Utf8Prefix(text, most_bytes), '\n')) {
    StrAppend(&body, StrCat(EscapeHtml(OneLine(line)), "\n"));
  }
  const std::string cut =
      text.size() > most_bytes
          ? StrCat("<p>The first ", HumanBytes(static_cast<int64_t>(most_bytes)), " of ",
                   HumanBytes(static_cast<int64_t>(text.size())), ".</p>\n")
          : "";
  return {StrCat("<pre role=\"region\" tabindex=\"0\" aria-label=\"", EscapeHtml(label), "\">",
                 body, "</pre>\n", cut)};
}

}  // namespace fusion
