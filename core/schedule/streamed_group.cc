#include "core/schedule/streamed_group.h"

namespace fusion {
namespace {

// The certificate of a form, and what else people may want to know of it.
std::vector<std::string> CertificateOf(Streamed* form) {
  std::vector<std::string> out = std::move(form->certificate);
  if (!form->apart.empty()) {
    out.push_back(StrCat("what walks the same input is streamed one after the other, for one pass ",
                         "has no form: ", form->apart.ToString()));
  }
  if (!form->needed.empty()) {
    out.emplace_back("tiles that masks hide are left out: a NaN in them is not seen");
  }
  if (!form->underflow.needed.empty()) {
    out.emplace_back(
        "tiles that underflow behind their masks are left out: a NaN in them is not "
        "seen");
  }
  return out;
}

}  // namespace

std::shared_ptr<const StreamedGroup> StreamGroup(const FusionGroup& group, DimId dim,
                                                 Refusal* why) {
  Streamed streamed = StreamAlong(group.smg, group.outputs, dim);
  if (streamed.kind == Streamed::kRefused) {
    if (why != nullptr) *why = std::move(streamed.refusal);
    return nullptr;
  }
  auto out = std::make_shared<StreamedGroup>();
  out->group = {.smg = std::move(streamed.smg),
                .outputs = group.outputs,
                .views = group.views,
                .loose = streamed.loose,
                .flushes = group.flushes,
                .certificate = CertificateOf(&streamed)};
  out->ops = std::move(streamed.ops);
  out->dim = dim;
  out->rewritten = streamed.rewritten;
  out->needed = std::move(streamed.needed);
  out->underflow = std::move(streamed.underflow);
  return out;
}

}  // namespace fusion
