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

/// Replaces the content of `out`.
void EncodeRules(const Rules& rules, v1::FusionRules* out);

/// Inverse of EncodeRules. InvalidArgument names rule and field, for conditions also the column:
/// `rules[1] "qkv": when[0]: line 1, column 5: expected ..., got ...`.
absl::StatusOr<Rules> DecodeRules(const v1::FusionRules& wire);

/// A single rule. InvalidArgument names the field.
absl::StatusOr<Rule> DecodeRule(const v1::FusionRule& wire);

/// An additional check of a rule; an error rejects the rule and is returned with its place. May be
/// null.
using RuleCheck = std::function<absl::Status(const Rule& rule)>;

/// Parses a v1::FusionRules in protobuf's text format. InvalidArgument: "NAME:LINE: ...", where
/// NAME is `name`.
absl::StatusOr<Rules> ParseRulesText(std::string_view text, const std::string& name,
                                     const RuleCheck& check = nullptr);

/// ParseRulesText for a file. InvalidArgument, naming the file, also if it cannot be read.
absl::StatusOr<Rules> ReadRulesFile(const std::string& path, const RuleCheck& check = nullptr);

/// All problems of a rules file, not only the first; empty: the file is valid.
std::vector<absl::Status> ProblemsOfRulesFile(const std::string& path,
                                              const RuleCheck& check = nullptr);

}  // namespace fusion
