#include "client/fusionctl/output/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text/text.h"
#include "core/view/html.h"

namespace fusion {
namespace {

// In units of the drawing, which are pixels at its natural width. Fixed-width letters of 11 px are
// at most 6.7 px wide in the usual fonts.
constexpr double kWidth = 760;
constexpr double kLetter = 6.7;
constexpr double kLegendHeight = 24;
constexpr double kLabelHeight = 16;
constexpr double kBarHeight = 10;
constexpr double kBarStep = 14;
constexpr double kRowGap = 10;
constexpr size_t kTextLetters = 20;  // kept free beside the longest bar
constexpr double kLongestBar = kWidth - kTextLetters * kLetter;
constexpr size_t kLabelLetters = static_cast<size_t>(kWidth / kLetter);

// Cut, and without letters whose width is not known.
std::string Fitting(std::string_view text, size_t letters) {
  std::string out = Quote(text);
  out = out.substr(1, out.size() - 2);
  if (out.size() <= letters) return out;
  return out.substr(0, letters - 3) + "...";
}

std::string TextAt(double x, double y, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x, y, EscapeHtml(text));
}

std::string Legend(const std::vector<std::string>& series) {
  std::string out;
  double x = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    out +=
        fmt::format("<rect class=\"s{}\" x=\"{:.1f}\" y=\"2\" width=\"10\" height=\"10\"/>", i, x);
    out += TextAt(x + 15, 11, series[i]) + "\n";
    x += 15 + kLetter * static_cast<double>(series[i].size() + 3);
  }
  return out;
}

std::string RowSvg(const BarChart::Row& row, double longest, double y) {
  std::string out = fmt::format("<g><title>{}</title>", EscapeHtml(row.label));
  out += TextAt(0, y + 11, Fitting(row.label, kLabelLetters));
  for (size_t i = 0; i < row.bars.size(); ++i) {
    const BarChart::Bar& bar = row.bars[i];
    double top = y + kLabelHeight + kBarStep * static_cast<double>(i);
    double width = longest > 0 ? kLongestBar * std::max(bar.value, 0.0) / longest : 0;
    out +=
        fmt::format("<rect class=\"s{}\" x=\"0\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
                    i, top, width, kBarHeight);
    out += TextAt(width + 6, top + kBarHeight - 1, Fitting(bar.text, kTextLetters - 1));
  }
  return out + "</g>\n";
}

}  // namespace

std::string ToSvg(const BarChart& chart) {
  double longest = 0;
  for (const BarChart::Row& row : chart.rows) {
    for (const BarChart::Bar& bar : row.bars) longest = std::max(longest, bar.value);
  }
  double y = kLegendHeight;
  std::string rows;
  for (const BarChart::Row& row : chart.rows) {
    rows += RowSvg(row, longest, y);
    y += kLabelHeight + kBarStep * static_cast<double>(row.bars.size()) + kRowGap;
  }
  return StrCat(
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
                  "width=\"{:.0f}\" height=\"{:.0f}\" role=\"img\" aria-label=\"{}\">\n",
                  kWidth, y, kWidth, y, EscapeHtml(chart.title)),
      Legend(chart.series), rows, "</svg>\n");
}

}  // namespace fusion
