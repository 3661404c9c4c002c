#pragma once

#include <set>
#include <string>

namespace fusion {

/// The parts of the vector library that a generated unit uses.
struct PreludeUse {
  bool product = false;  // mma<>
  bool guard = false;    // pointers with bounds
  std::set<std::string>
      functions;  // parts by name: "exp", "select", "mem_f32" (loads and stores of a type)
};

/// The C++ text that precedes the kernel in a generated unit, after its ABI header: vector types of
/// `lanes` floats, loads and stores (also of partial vectors), and the used functions with all that
/// they need. No includes. g++ 12 and clang 14 on x86-64 compile it. The text states the accuracy
/// of each function, and tests/unit/codegen checks it.
std::string CpuPrelude(int lanes, const PreludeUse& use);

}  // namespace fusion
