#pragma once

#include <set>
#include <string>

namespace fusion {

/// What a generated unit uses of the vector library below its ABI header.
struct PreludeUse {
  bool product = false;  // mma<>
  bool guard = false;    // pointers know their bounds
  std::set<std::string>
      functions;  // parts by name: "exp", "select", "mem_f32" (loads and stores of a type)
};

/// The C++ text that precedes the kernel of a generated unit: vector types of `lanes` floats, loads
/// and stores with partial forms, and those of the functions that are used, with everything they
/// need. No includes; g++ 12 and clang 14 on x86-64 read it. Accuracy of each function is stated in
/// its text and checked by tests/unit/codegen.
std::string CpuPrelude(int lanes, const PreludeUse& use);

}  // namespace fusion
