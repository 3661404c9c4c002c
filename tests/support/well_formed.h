#pragma once

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace fusion {

// Every tag is closed by its own, attributes are quoted, nothing else holds a '<', and entities are
// the five of XML.
inline void ExpectWellFormed(const std::string& page) {
  static const std::regex tag(R"re(<(/?)([A-Za-z0-9]+)((?: [A-Za-z:-]+="[^"<]*")*)(/?)>)re");
  static const std::regex entity("&(amp|lt|gt|quot|#39);");
  std::vector<std::string> open;
  auto end_of_text = page.cbegin();
  auto check_text = [](const std::string& text) {
    EXPECT_EQ(text.find('<'), std::string::npos) << text;
    EXPECT_EQ(std::regex_replace(text, entity, "").find('&'), std::string::npos) << text;
  };
  ASSERT_EQ(page.rfind("<!DOCTYPE html>\n", 0), 0u);
  end_of_text += 15;
  for (std::sregex_iterator it(end_of_text, page.cend(), tag), none; it != none; ++it) {
    check_text(std::string(end_of_text, (*it)[0].first));
    check_text((*it)[3]);
    end_of_text = (*it)[0].second;
    std::string name = (*it)[2];
    if ((*it)[1].length() > 0) {
      ASSERT_FALSE(open.empty()) << name;
      EXPECT_EQ(open.back(), name);
      open.pop_back();
    } else if ((*it)[4].length() == 0) {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty()) << open.back();
  check_text(std::string(end_of_text, page.cend()));
}

}  // namespace fusion
