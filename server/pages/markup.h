#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fusion {

/// A piece of HTML that is also well-formed XML. Made by the functions below, which escape every
/// text, so a name of a client cannot become a tag.
struct Markup {
  std::string html;
};

/// A text as one line (OneLine), escaped.
Markup Words(std::string_view text);
/// A text from elsewhere, escaped, on one line, at most `most` characters of it, with its own
/// direction of writing. An empty one is "-".
Markup Foreign(std::string_view text, size_t most = 200);
/// The op types of a kernel, "MatMul+Add+Relu", as Foreign; lines break behind a plus.
Markup Ops(std::string_view label, size_t most);
/// `text` for a part of a URL: every character but letters, digits, '-', '_' and '.' as %XX.
std::string UrlPart(std::string_view text);
/// `path`: of this server; texts from elsewhere in it are UrlPart.
Markup Link(std::string_view path, const Markup& label);
/// A word that says how things are: a coloured mark with the word itself.
enum class Mood : uint8_t { kGood, kBad, kQuiet };
Markup Badge(Mood mood, std::string_view word);
/// `part` of 1 as a bar, with the text behind it. Values beyond 0..1 are cut.
Markup Bar(double part, std::string_view text);
/// `measured` / `estimated`: "1.23 x", marked if it is beyond 1.5 either way; "-" if one is
/// unknown.
Markup RatioMark(double measured, double estimated);
Markup operator+(const Markup& a, const Markup& b);

/// A table with a caption. Cells are markup; `kNumber` columns are right-aligned; `kText` ones have
/// sentences and get more room; `kSpare` ones are not shown on narrow screens.
class PageTable {
 public:
  enum class Kind : uint8_t { kName, kNumber, kText, kSpareName, kSpareNumber };
  struct Column {
    std::string heading;
    Kind kind = Kind::kName;
  };
  PageTable(std::string caption, std::vector<Column> columns)
      : caption_(std::move(caption)), columns_(std::move(columns)) {}

  /// Needs as many cells as there are columns. The first cell names the row.
  void Add(const std::vector<Markup>& cells);
  size_t rows() const { return rows_; }
  /// The table; if it has no rows, `nothing` as a paragraph.
  Markup Show(std::string_view nothing) const;

 private:
  std::string caption_;
  std::vector<Column> columns_;
  std::string body_;
  size_t rows_ = 0;
};

/// Names with values, such as the facts about a plan.
class FactList {
 public:
  void Add(std::string_view name, const Markup& value);
  void Add(std::string_view name, std::string_view value) { Add(name, Words(value)); }
  Markup Show() const;

 private:
  std::string items_;
};

/// Figures in boxes: a name, a large value, a note below it.
class FigureList {
 public:
  void Add(std::string_view name, const Markup& value, const Markup& note);
  Markup Show() const;

 private:
  std::string items_;
};

/// A section with a heading of level 2.
Markup PageSection(std::string_view heading, const Markup& content);
Markup Paragraph(const Markup& content);
/// Text in which spaces and line ends stay; at most `most_bytes` of it, with a note where it is
/// cut.
Markup Verbatim(std::string_view label, std::string_view text, size_t most_bytes);

}  // namespace fusion
