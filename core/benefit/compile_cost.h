#pragma once

#include <string_view>

namespace fusion {

/// Estimated CPU seconds of compiling and linking one kernel, from the text form of its schedule: a
/// constant for starting the compiler, a term for each line, and a term for each product (an
/// unrolled register block). For comparing plans: another machine scales all of them by about the
/// same factor. Pure.
double CompileSeconds(std::string_view schedule_text);

}  // namespace fusion
