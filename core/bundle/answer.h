#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/bundle/plan.h"

namespace fusion {

// Values that accompany a plan in a reply, as server and client share them.

/// Text forms of the values between stages, for people.
enum class DumpKind : uint8_t {
  kGraph,     // the normalised graph
  kProgram,   // its loop ops
  kSmg,       // space-mapping graph of each group
  kSchedule,  // schedule of each kernel
  kSource,    // generated source of each kernel
  kLock,      // no text: the reply has a PlanLock that pins the plan
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

/// The caller's names for the canonical positions of a plan: names[i] is that of position i. Lists
/// have the lengths of those in the plan.
struct Binding {
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> weights;
  std::vector<std::string> nodes;
  std::vector<std::string> symbols;
};

/// State of one kernel of a plan.
struct KernelStatus {
  Digest key;
  KernelState state = KernelState::kPending;
  // The fields below are set for kReady.
  Digest content;     // SHA-256 of the shared object
  int64_t bytes = 0;  // of the shared object
  CheckReport check;
  bool cached = false;    // it was compiled before the request
  double compile_ms = 0;  // wall time of its compilation, also if cached
};

/// One field of a key (FieldHasher).
struct KeyField {
  std::string name;
  std::string value;
};

/// A field in which two plan keys differ. Values are shortened; empty: that key lacks the field.
struct KeyDifference {
  std::string field;
  std::string asked;
  std::string stored;
};

/// Why a request did not hit the cache: the stored plan, other than its own, with the most similar
/// key.
struct MissExplanation {
  std::optional<Digest> nearest;  // its key; not set: no plan is stored
  std::vector<KeyDifference> differences;
  int64_t compared = 0;  // number of stored plans compared
  std::string summary;   // one line
};

/// The texts of a compiled kernel.
struct KernelTexts {
  Digest key;
  Digest content;  // SHA-256 of the shared object
  std::string source;
  std::string schedule;
  std::string reference;  // program it was compared with; empty: unknown
  std::string smg;        // of the ops of `reference`
  std::string compiler;   // command lines
};

/// The entry that a service has stored for a plan key.
struct StoredPlanTexts {
  Plan plan;
  std::vector<KeyField> fields;  // of the full key
};

/// Source of the plan of a reply. kSharedFlight: planned by an equal concurrent request.
enum class CacheOutcome : uint8_t { kMiss, kHitMemory, kHitStore, kSharedFlight };

/// "planned", "memory", "store", "shared".
std::string_view CacheOutcomeName(CacheOutcome outcome);

}  // namespace fusion
