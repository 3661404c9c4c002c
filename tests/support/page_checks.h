#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/well_formed.h"

namespace fusion {

// What a page needs so that everybody can read it, as far as its text shows it: the checks of tools
// such as axe that need no browser.

inline std::vector<std::smatch> AllMatches(const std::string& text, const std::regex& what) {
  return {std::sregex_iterator(text.begin(), text.end(), what), std::sregex_iterator()};
}

/// Colours by the name of their variable, in one scheme: "--text" -> "#1b2430".
using PageColours = std::map<std::string, std::string>;

/// Of the light scheme, or of the dark one, which overrides some of it.
inline PageColours ColoursOf(const std::string& page, bool dark) {
  static const std::regex variable("(--[a-z-]+): (#[0-9a-f]{6});");
  const size_t at = page.find("prefers-color-scheme: dark");
  PageColours out;
  if (at == std::string::npos) return out;
  for (const std::smatch& one : AllMatches(page, variable)) {
    const bool of_dark = one.position() > static_cast<std::ptrdiff_t>(at);
    if (!of_dark || dark) out[one[1]] = one[2];
  }
  return out;
}

/// WCAG 2.2, relative luminance of "#rrggbb".
inline double LuminanceOf(const std::string& colour) {
  double out = 0;
  const double weights[] = {0.2126, 0.7152, 0.0722};
  for (size_t i = 0; i < 3; ++i) {
    const double part = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    out += weights[i] * (part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
  }
  return out;
}

/// WCAG 2.2, 1 to 21.
inline double ContrastOf(const std::string& one, const std::string& other) {
  const double a = LuminanceOf(one);
  const double b = LuminanceOf(other);
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

/// Language, title, viewport, landmarks, headings in order, names of links, pictures, tables and
/// scrolling parts, ids that are there once, and nothing that runs or comes from elsewhere.
inline void ExpectAccessible(const std::string& page) {
  ExpectWellFormed(page);
  EXPECT_NE(page.find("<html lang=\"en\""), std::string::npos);
  EXPECT_NE(page.find("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"),
            std::string::npos);
  EXPECT_TRUE(std::regex_search(page, std::regex("<title>[^<]+</title>")));
  for (const char* landmark : {"<header", "<nav aria-label=\"Pages\"", "<main ", "<footer"}) {
    EXPECT_NE(page.find(landmark), std::string::npos) << landmark;
  }
  for (const char* never : {"<script", "javascript:", "http-equiv=\"Content", " onclick", "url(",
                            "src=\"http", "href=\"http", "<iframe", "<form", "<input"}) {
    EXPECT_EQ(page.find(never), std::string::npos) << never;
  }
  int level = 0;
  int titles = 0;
  static const std::regex heading("<h([1-6])[^>]*>([^<]*)");
  for (const std::smatch& one : AllMatches(page, heading)) {
    const int next = std::stoi(one[1]);
    EXPECT_LE(next, level + 1) << "no level is left out before " << one[2];
    EXPECT_GT(one[2].length(), 0);
    level = next;
    titles += next == 1 ? 1 : 0;
  }
  EXPECT_EQ(titles, 1) << "one heading of level 1";
  static const std::regex link("<a ([^>]*)>(([^<]|<[^/]|</[^a])*)</a>");
  for (const std::smatch& one : AllMatches(page, link)) {
    const std::string words =
        std::regex_replace(std::string(one[2]), std::regex("<[^>]*>|\\s"), "");
    EXPECT_FALSE(words.empty()) << one[0];
  }
  static const std::regex picture("<img [^>]*>");
  for (const std::smatch& one : AllMatches(page, picture)) {
    EXPECT_TRUE(std::regex_search(std::string(one[0]), std::regex(" alt=\"[^\"]{10,}\"")))
        << one[0];
  }
  static const std::regex table("<table>\\s*(<[a-z]+)");
  for (const std::smatch& one : AllMatches(page, table)) {
    EXPECT_EQ(one[1], "<caption") << "a table has a name";
  }
  EXPECT_FALSE(std::regex_search(page, std::regex("<th>|<th class"))) << "headings have a scope";
  static const std::regex focus("<[a-z]+ [^>]*tabindex=\"([^\"]*)\"[^>]*>");
  for (const std::smatch& one : AllMatches(page, focus)) {
    EXPECT_EQ(one[1], "0");
    EXPECT_TRUE(std::regex_search(std::string(one[0]), std::regex("role=\"region\"")) &&
                std::regex_search(std::string(one[0]), std::regex("aria-label=\"[^\"]+\"")))
        << one[0];
  }
  std::set<std::string> ids;
  static const std::regex id(" id=\"([^\"]*)\"");
  for (const std::smatch& one : AllMatches(page, id)) {
    EXPECT_TRUE(ids.insert(one[1]).second) << one[1];
  }
  EXPECT_TRUE(ids.contains("content")) << "the first link leads there";
}

}  // namespace fusion
