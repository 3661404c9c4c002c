#include "core/pipeline/requests/plan_request.h"

#include "core/base/hash.h"
#include "core/bundle/plan_lock.h"

namespace fusion {

std::string RequestKey(const PlanRequest& request) {
  FieldHasher h;
  h.Add("onnx", request.source.onnx_model);
  const Target& t = request.target;
  h.Add("name", t.name).Add("vendor", t.vendor).Add("family", t.family).Add("model", t.model);
  h.Add("isa", t.isa).Add("features", StrJoin(t.features, "\n", Quote));
  h.Add("l1", t.l1_bytes).Add("l2", t.l2_bytes).Add("l3", t.l3_bytes).Add("threads", t.threads);
  if (t.measured) h.Add("measured", KeyText(*t.measured));
  const PlanOptions& o = request.options;
  h.Add("fusion", static_cast<int64_t>(o.fusion));
  h.Add("numerics", static_cast<int64_t>(o.numerics));
  h.Add("memory_pressure", HexDouble(o.hints.memory_pressure));
  h.Add("compute_pressure", HexDouble(o.hints.compute_pressure));
  h.Add("batch_size", o.hints.batch_size);
  h.Add("low_latency", o.hints.low_latency);
  for (const auto& [name, value] : o.dim_bindings) h.Add("dim", name).Add("value", value);
  for (const auto& [name, r] : o.dim_ranges) {
    h.Add("range", name).Add("least", r.least).Add("most", r.most);
    h.Add("multiple", r.multiple).Add("likely", r.likely);
  }
  for (const std::string& name : o.keep_outputs) h.Add("keep", name);
  for (const SharedNames& s : o.shared_buffers) {
    h.Add("shared input", s.input).Add("output", s.output).Add("capacity", s.capacity);
  }
  for (const NamedStrides& s : o.bound_strides) {
    h.Add("bound", s.tensor).Add("strides", DimsToString(s.strides));
  }
  h.Add("custom_ops", o.custom_ops);
  h.Add("rules", KeyText(o.rules));
  h.Add("frontier", o.frontier).Add("debug", o.debug).Add("guard", o.guard);
  h.Add("opt_level", o.opt_level);
  h.Add("allow_fused", request.allow_fused);
  if (!o.tenant.empty()) h.Add("tenant", o.tenant);
  if (o.lock != nullptr) h.Add("lock", DigestOf(*o.lock).ToHex());
  return h.bytes();
}

}  // namespace fusion
