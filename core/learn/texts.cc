#include "core/learn/texts.h"

#include <cmath>

#include "core/base/text/text.h"

namespace fusion {

std::string UsText(double us) { return StrCat(std::round(us * 10) / 10, " us"); }

std::string PercentText(double fraction) { return StrCat(std::round(1000 * fraction) / 10, " %"); }

}  // namespace fusion
