#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/bundle/rules/rules.h"

namespace fusion {

// Limits for the registrations of a server; see proto/fusion/v1/registered_kernels.proto.
inline constexpr int kMaxRegisteredKernels = 64;
inline constexpr int kMaxKernelParams = 32;
inline constexpr int kMaxKernelConstants = 32;
inline constexpr int kMaxKernelPhases = 64;
inline constexpr size_t kMaxConstantNameBytes = 32;
inline constexpr int64_t kMaxKernelSourceBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxKernelMemoryBytes = int64_t{1} << 30;
inline constexpr double kMaxKernelUs = 1e9;

/// A macro that the source of a registered kernel sees.
struct KernelConstant {
  std::string name;             // a C identifier
  bool integer = false;         // true: the value must be an integer; else a double literal
  std::string text;             // the expression as written
  std::vector<RuleStep> value;  // the parsed expression, evaluated for each match
};

/// Upper bound, in bytes, of scratch or workspace of a registered kernel.
struct KernelBytes {
  std::string text;             // the expression as written
  std::vector<RuleStep> value;  // the parsed expression, evaluated for each match; empty: 0
};

/// A hand-written kernel that the server's operator registered for a pattern. Where the pattern
/// matches and its conditions hold, the nodes of the match may run as this kernel.
/// DecodeRegisteredKernels guarantees that all fields are valid.
/// proto/fusion/v1/registered_kernels.proto defines them. Immutable; any thread.
struct RegisteredKernel {
  /// Name, pattern and conditions. The action is unused.
  Rule rule;
  std::vector<std::string> param_texts;  // "conv.input0", as written
  std::vector<RuleStep> params;          // parsed, in the order of FusionKernelArgs::tensors
  std::vector<KernelConstant> constants;
  int phases = 1;
  KernelBytes scratch;            // per thread, upper bound for the descriptor's
  KernelBytes workspace;          // per run, likewise
  std::vector<std::string> isas;  // allowed values of DeviceSpec::arch; empty: all
  bool force = false;             // use it wherever possible, regardless of estimates
  // Expected time of one launch: either an expression in microseconds, or rates (0: not given).
  // Neither: the estimate of the generated kernel for the same nodes.
  std::string time_text;
  std::vector<RuleStep> time_us;
  double flops_per_us = 0;
  double bytes_per_us = 0;
  std::string source;  // text of the source file
  Digest source_sha256;
  std::string path;  // of the source file, for messages

  const std::string& name() const { return rule.name; }
};

using RegisteredKernels = std::vector<std::shared_ptr<const RegisteredKernel>>;

/// Stable text of everything in the registrations that can change a plan. Part of plan keys. Empty
/// if there are none.
std::string KeyText(const RegisteredKernels& kernels);

/// The pattern of a rule, for people: "Conv > LeakyRelu".
std::string PatternText(const Rule& rule);

}  // namespace fusion
