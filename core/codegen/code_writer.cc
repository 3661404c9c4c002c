#include "core/codegen/code_writer.h"

#include <cmath>

namespace fusion {
namespace {

std::string Literal(double value, std::string_view suffix) {
  if (std::isnan(value)) return StrCat("__builtin_nan", suffix, "(\"\")");
  if (std::isinf(value)) return StrCat(value < 0 ? "-" : "", "__builtin_inf", suffix, "()");
  return StrCat(HexDouble(value), suffix);
}

}  // namespace

std::string FloatLiteral(double value) { return Literal(value, "f"); }
std::string DoubleLiteral(double value) { return Literal(value, ""); }

}  // namespace fusion
