#pragma once

#include <string>
#include <string_view>

#include "server/pages/markup.h"

namespace fusion {

/// One entry of the navigation.
struct PageLink {
  std::string path;  // "/plans"
  std::string word;  // "Plans"
};

/// What surrounds the content of a page.
struct PageFrame {
  std::string title;                 // the heading of level 1; our own words
  std::string path;                  // the entry of the navigation that is current
  std::vector<PageLink> navigation;  // in this order
  std::string version;               // of the server
  std::string made;                  // when, UTC
  int refresh_seconds = 0;           // the browser loads the page again; 0: it does not
};

/// The whole page: HTML 5 that is well-formed XML, works without scripts, loads nothing but
/// pictures of this server, and follows the browser's colour scheme. Contrast of its colours and
/// its structure are checked by tests/unit/server/pages_test.cc.
std::string PageText(const PageFrame& frame, const Markup& content);

/// The header Content-Security-Policy of these pages: no scripts, nothing from elsewhere.
inline constexpr std::string_view kPagePolicy =
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; form-action "
    "'none'; frame-ancestors 'none'";

}  // namespace fusion
