#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/bundle/rules/rules.h"

namespace fusion {

// Limits of what a file may hold; see proto/fusion/v1/registered_kernels.proto.
inline constexpr int kMaxRegisteredKernels = 64;
inline constexpr int kMaxKernelParams = 32;
inline constexpr int kMaxKernelConstants = 32;
inline constexpr int kMaxKernelPhases = 64;
inline constexpr size_t kMaxConstantNameBytes = 32;
inline constexpr int64_t kMaxKernelSourceBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxKernelMemoryBytes = int64_t{1} << 30;
inline constexpr double kMaxKernelUs = 1e9;

/// A number that the source of a registered kernel sees under a name of its own.
struct KernelConstant {
  std::string name;             // a C identifier
  bool integer = false;         // it is a whole number, and no other
  std::string text;             // of the expression
  std::vector<RuleStep> value;  // of a match
};

/// Bytes of memory that a registered kernel works in.
struct KernelBytes {
  std::string text;             // of the expression
  std::vector<RuleStep> value;  // of a match; empty: none
};

/// A kernel that the operator of a server wrote by hand and registered for a pattern: wherever the
/// pattern is found and its conditions hold, the nodes of the match may run as this kernel. As
/// DecodeRegisteredKernels makes it, it is sound. proto/fusion/v1/registered_kernels.proto states
/// what each field means. Immutable, so safe to read from any thread.
struct RegisteredKernel {
  /// Its name, pattern and conditions; the action means nothing.
  Rule rule;
  std::vector<std::string> param_texts;  // "conv.input0", as they were written
  std::vector<RuleStep> params;          // in the order of FusionKernelArgs::tensors
  std::vector<KernelConstant> constants;
  int phases = 1;
  KernelBytes scratch;            // of one thread: the descriptor asks for no more
  KernelBytes workspace;          // of one run, likewise
  std::vector<std::string> isas;  // of DeviceSpec::arch; empty: any
  bool force = false;
  // What one launch is expected to take, at most one of: an expression in microseconds; rates, 0:
  // not given. None: as long as the generated kernel of the same nodes.
  std::string time_text;
  std::vector<RuleStep> time_us;
  double flops_per_us = 0;
  double bytes_per_us = 0;
  std::string source;  // of the file, as it stands there
  Digest source_sha256;
  std::string path;  // of the file, for messages

  const std::string& name() const { return rule.name; }
};

using RegisteredKernels = std::vector<std::shared_ptr<const RegisteredKernel>>;

/// Everything of the registrations that can change a plan, as stable text; part of plan keys.
/// Empty for none.
std::string KeyText(const RegisteredKernels& kernels);

/// The pattern for people: "Conv > LeakyRelu".
std::string PatternText(const Rule& rule);

}  // namespace fusion
