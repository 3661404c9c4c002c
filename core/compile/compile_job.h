#pragma once

#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/bundle/options.h"
#include "core/device/target.h"

namespace fusion {

/// One case in which a kernel that takes sizes is checked.
struct CheckedMember {
  std::vector<int64_t> sizes;  // FusionKernelArgs.dims
  std::string schedule;        // text form: where its params lie
  std::string reference;
};

/// One kernel to compile and check. All of it is made by us from parsed values, or it is a file of
/// the server's operator with numbers of ours in front: no text of a client is in `source`.
struct CompileJob {
  Digest key;  // SHA-256 of full_key
  std::string full_key;
  std::string symbol;     // entry point; <symbol>_descriptor describes it
  std::string source;     // C++17, without includes
  std::string schedule;   // text form, kept beside the binary
  std::string reference;  // program text that the check evaluates; empty: only the ABI is checked
  /// Of a kernel that takes sizes, instead of `reference`; `schedule` is of the largest member.
  std::vector<CheckedMember> members;
  std::string label;            // op types, for people
  std::string registered = {};  // name of the registered kernel it is; empty: a generated one
  std::string backend;          // whose loader loads the binary
  Isa isa = Isa::kX86V2;
  Numerics numerics = Numerics::kFp32Accumulate;
  int64_t scratch_bytes = 0;    // that the plan gives it for each thread: the most it may ask for
  int64_t workspace_bytes = 0;  // and for one run
  bool debug = false;           // with symbols and line tables
};

}  // namespace fusion
