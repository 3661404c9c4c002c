#include "core/schedule/streamed_group.h"

namespace fusion {

std::shared_ptr<const StreamedGroup> StreamGroup(const FusionGroup& group, DimId dim, Refusal* why,
                                                 const AlgebraRules& rules) {
  Streamed streamed = StreamAlong(group.smg, group.outputs, dim, rules);
  if (streamed.kind == Streamed::kRefused) {
    if (why != nullptr) *why = std::move(streamed.refusal);
    return nullptr;
  }
  auto out = std::make_shared<StreamedGroup>();
  out->group = {.smg = std::move(streamed.smg),
                .outputs = group.outputs,
                .views = group.views,
                .loose = streamed.loose};
  out->ops = std::move(streamed.ops);
  out->dim = dim;
  out->kind = streamed.kind;
  out->rewritten = streamed.rewritten;
  out->needed = std::move(streamed.needed);
  out->underflow = std::move(streamed.underflow);
  out->certificate = std::move(streamed.certificate);
  return out;
}

}  // namespace fusion
