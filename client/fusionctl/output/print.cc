#include "client/fusionctl/output/print.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "client/fusionctl/output/shown_text.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/text/utf8.h"
#include "core/base/text/wrapped_text.h"

namespace fusion {

void PrintJson(const Json& json) {
  const std::string text =
      ShownJson(json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

void Print(const std::string& text) { PrintAsItIs(Wrapped(text, StdoutColumns())); }

void PrintAsItIs(const std::string& text) {
  const std::string shown = Shown(text, /*own_colours=*/ColourOnStdout());
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void PrintWarning(std::string_view text) {
  std::fprintf(stderr, "fusionctl: %s\n", Shown(text, /*own_colours=*/false).c_str());
}

}  // namespace fusion
