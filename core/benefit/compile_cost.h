#pragma once

#include <string_view>

namespace fusion {

/// Seconds of one core that compiling and linking one kernel takes, by the text form of its
/// schedule: starting the compiler, its lines, its products, which become blocks of registers
/// written out. To compare plans with: another machine is faster or slower by about the same factor
/// for all of them. Pure.
double CompileSeconds(std::string_view schedule_text);

}  // namespace fusion
