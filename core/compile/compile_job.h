#pragma once

#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/bundle/options.h"
#include "core/device/target.h"

namespace fusion {

/// One case of the check of a kernel that takes sizes.
struct CheckedMember {
  std::vector<int64_t> sizes;  // FusionKernelArgs.dims
  std::string schedule;        // text form; gives the layout of the params
  std::string reference;
};

/// One kernel to compile and check. `source` is generated from parsed values; or it is the file of
/// a registered kernel, preceded by generated constants. It contains no text of a client.
struct CompileJob {
  Digest key;  // SHA-256 of full_key
  std::string full_key;
  std::string symbol;     // entry point; <symbol>_descriptor describes it
  std::string source;     // C++17, without includes
  std::string schedule;   // text form, kept beside the binary
  std::string reference;  // program text that the check evaluates; empty: only the ABI is checked
  /// For a kernel that takes sizes, in place of `reference`; `schedule` is then that of the largest
  /// member.
  std::vector<CheckedMember> members;
  std::string label;            // op types, for people
  std::string registered = {};  // name of the registered kernel; empty: generated
  std::string backend;          // whose loader loads the binary
  Isa isa = Isa::kX86V2;
  Numerics numerics = Numerics::kFp32Accumulate;
  int64_t scratch_bytes = 0;    // most scratch of each thread that it may use
  int64_t workspace_bytes = 0;  // most workspace of a run that it may use
  bool debug = false;           // with symbols and line tables
};

}  // namespace fusion
