#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/bundle/plan.h"

namespace fusion {

// What comes with a plan in an answer, as server and client both see it.

/// Texts for people, made from the values between stages.
enum class DumpKind : uint8_t {
  kGraph,     // the normalised graph
  kProgram,   // its loop ops
  kSmg,       // space-mapping graph of each group
  kSchedule,  // schedule of each kernel
  kSource,    // generated source of each kernel
  kLock,      // what pins the plan: no text, a PlanLock beside the plan
};

struct Dump {
  DumpKind kind = DumpKind::kGraph;
  std::string name;  // "graph", "program", "group 3", or the key of a kernel in hex
  std::string text;
};

struct StageTime {
  std::string stage;
  Nanoseconds took{0};
};

/// The caller's names for the canonical positions of a plan; lengths as in the plan.
struct Binding {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> weights;
  std::vector<std::string> nodes;
  std::vector<std::string> symbols;
};

/// What is known about one kernel of a plan.
struct KernelStatus {
  Digest key;
  KernelState state = KernelState::kPending;
  Digest content;     // kReady, as all below: SHA-256 of the shared object
  int64_t bytes = 0;  // of the shared object
  CheckReport check;
  bool cached = false;    // the request found it compiled
  double compile_ms = 0;  // whenever that was
};

/// One part of what a key is made of (FieldHasher).
struct KeyField {
  std::string name;
  std::string value;
};

/// One part of a plan key in which two requests differ, each side in short; empty: it has none.
struct KeyDifference {
  std::string field;
  std::string asked;
  std::string stored;
};

/// The stored plan that is nearest to a request's, other than that itself.
struct MissExplanation {
  std::optional<Digest> nearest;  // not set: none is stored
  std::vector<KeyDifference> differences;
  int64_t compared = 0;  // stored plans that were looked at
  std::string summary;   // one line
};

/// The texts of a compiled kernel.
struct KernelTexts {
  Digest key;
  Digest content;  // SHA-256 of the shared object
  std::string source;
  std::string schedule;
  std::string reference;  // what it was compared with; empty: not known
  std::string smg;        // of the ops of `reference`
  std::string compiler;   // command lines
};

/// What a service has stored under the key of a plan.
struct StoredPlanTexts {
  Plan plan;
  std::vector<KeyField> fields;
};

/// Where the plan of an answer came from.
enum class CacheOutcome : uint8_t { kMiss, kHitMemory, kHitStore, kSharedFlight };

/// "planned", "memory", "store", "shared".
std::string_view CacheOutcomeName(CacheOutcome outcome);

}  // namespace fusion
