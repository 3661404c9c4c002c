#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace fusion {

/// What a case expects of one stage.
struct Expectation {
  enum Kind : uint8_t {
    kText,      // the whole text
    kContains,  // these lines, in this order, others between them; spaces at both ends do not count
    kLacks,     // no line that contains one of these: what is not there has no number to name
    kError,     // the stages fail with a message that contains these lines
  };
  Kind kind = kText;
  std::string stage;  // empty: kError
  std::string body;
};

/// A golden case: one claim about what a stage makes of a graph, as text for people.
///
///   # A chain of element-wise ops is one loop op a node.
///   input:
///   graph "g" {
///     ...
///   }
///   options: --device generic-avx512 --l2-bytes 65536 --fusion op-by-op
///   stages: canonicalise, plan
///   expect plan contains:
///     0  inner  Relu+Neg
///
/// `options` are words for AddStageArguments. `stages` is what runs; left out: the stages expected,
/// in order.
struct GoldenCase {
  std::string comment;  // with its '#'
  std::string input;
  std::string options;
  std::string stages;
  std::vector<Expectation> expected;
};

/// Fails with the line, or with the expectation that says nothing.
absl::StatusOr<GoldenCase> ParseCase(std::string_view text);
/// The text that ParseCase reads.
std::string ToString(const GoldenCase& golden);

/// Runs the stages and compares. OK, or FailedPrecondition whose message shows what differs. With
/// `update`, whole texts that differ are replaced by what the stage made instead; other
/// expectations are claims and are compared still.
absl::Status RunCase(GoldenCase* golden, bool update);

}  // namespace fusion
