#include "core/wire/stored_texts.h"

#include "core/wire/basics/scalars.h"
#include "core/wire/plan.h"
#include "fusion/v1/fusion_service.pb.h"

namespace fusion {

void EncodeKernelTexts(const KernelTexts& texts, v1::KernelTexts* out) {
  out->set_key(DigestToWire(texts.key));
  out->set_content_sha256(DigestToWire(texts.content));
  out->set_source(TextToWire(texts.source));
  out->set_schedule(TextToWire(texts.schedule));
  out->set_reference(TextToWire(texts.reference));
  out->set_smg(TextToWire(texts.smg));
  out->set_compiler(TextToWire(texts.compiler));
}

absl::StatusOr<KernelTexts> DecodeKernelTexts(const v1::KernelTexts& wire) {
  KernelTexts texts;
  absl::StatusOr<Digest> key = DigestFromWire(wire.key());
  if (!key.ok()) return Annotate(key.status(), "kernel.key");
  texts.key = *key;
  absl::StatusOr<Digest> content = DigestFromWire(wire.content_sha256());
  if (!content.ok()) return Annotate(content.status(), "kernel.content_sha256");
  texts.content = *content;
  texts.source = wire.source();
  texts.schedule = wire.schedule();
  texts.reference = wire.reference();
  texts.smg = wire.smg();
  texts.compiler = wire.compiler();
  return texts;
}

absl::StatusOr<StoredPlanTexts> DecodeStoredTexts(const v1::GetStoredResponse& wire) {
  StoredPlanTexts out;
  ASSIGN_OR_RETURN(out.plan, DecodePlan(wire.plan()));
  for (const v1::KeyField& field : wire.fields()) {
    out.fields.push_back({field.name(), field.value()});
  }
  return out;
}

}  // namespace fusion
