#include "core/base/text/number_word.h"

#include <cmath>
#include <cstdlib>

#include "core/base/text/text.h"

namespace fusion {

std::string NumberError(const std::string& word) {
  const bool number = !std::isnan(std::strtod(word.c_str(), nullptr));
  return number ? "" : StrCat("expected a number, got ", QuoteShort(word));
}

}  // namespace fusion
