#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/text/text.h"

namespace fusion {

/// The parts of a transformer layer, as bits of a SectionSet. core/plan/outline derives them from
/// what a model computes.
enum Section : uint8_t {
  kQkvSection = 1,            // projections to queries, keys and values
  kAttentionSection = 2,      // scores, softmax, weighted sum
  kPostAttentionSection = 4,  // output projection, residual, norm
  kFeedForwardSection = 8,    // two products with an activation between them, residual, norm
};
/// 0: no part of a layer.
using SectionSet = uint8_t;
inline constexpr std::array<Section, 4> kAllSections = {kQkvSection, kAttentionSection,
                                                        kPostAttentionSection, kFeedForwardSection};
inline constexpr SectionSet kEverySection = 15;

/// "QKV + attention"; "other" for 0.
inline std::string SectionNames(SectionSet sections) {
  constexpr std::array<const char*, 4> kNames = {"QKV", "attention", "post-attention", "FFN"};
  std::string out;
  for (size_t i = 0; i < kAllSections.size(); ++i) {
    if ((sections & kAllSections[i]) == 0) continue;
    StrAppend(&out, StrCat(out.empty() ? "" : " + ", kNames[i]));
  }
  return out.empty() ? "other" : out;
}

/// Facts about the model of a plan that reports show beside its measured times. No kernel and no
/// key depends on them.
struct PlanOutline {
  /// By position in Plan::groups. Empty: the model has no attention, or the plan was made before
  /// there were outlines.
  std::vector<SectionSet> sections;
  /// Peak bytes of the intermediate tensors if the nodes run one after the other, each to the end.
  /// 0: not known.
  int64_t op_by_op_peak_bytes = 0;

  bool operator==(const PlanOutline&) const = default;
};

}  // namespace fusion
