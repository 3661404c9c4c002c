#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/bundle/rules/rules.h"

namespace fusion::v1 {
class FusionRule;
class FusionRules;
}  // namespace fusion::v1

namespace fusion {

void EncodeRules(const Rules& rules, v1::FusionRules* out);

/// Inverse of EncodeRules. InvalidArgument, naming rule and field, and in conditions the column:
/// `rules[1] "qkv": when[0]: line 1, column 5: expected ..., got ...`.
absl::StatusOr<Rules> DecodeRules(const v1::FusionRules& wire);

/// One rule of them. InvalidArgument, naming the field.
absl::StatusOr<Rule> DecodeRule(const v1::FusionRule& wire);

/// What else must be right about a rule; OK, or why not.
using RuleCheck = std::function<absl::Status(const Rule& rule)>;

/// Reads a FusionRules in protobuf's text format. InvalidArgument: "FILE:LINE: ...", where `name`
/// is what stands for FILE.
absl::StatusOr<Rules> ParseRulesText(std::string_view text, const std::string& name,
                                     const RuleCheck& check = nullptr);

/// The same of a file. Errors of reading it name it too.
absl::StatusOr<Rules> ReadRulesFile(const std::string& path, const RuleCheck& check = nullptr);

/// Everything that ReadRulesFile could have said; empty: the file is right.
std::vector<absl::Status> ProblemsOfRulesFile(const std::string& path,
                                              const RuleCheck& check = nullptr);

}  // namespace fusion
