#include "core/bundle/plan_lock.h"

namespace fusion {
namespace {

void Add(std::string_view label, const std::optional<Digest>& digest, FieldHasher* h) {
  h->Add(label, digest.has_value() ? BytesOf(*digest) : std::string_view());
}

void Add(const LockedTiling& tiling, FieldHasher* h) {
  h->Add("grid", static_cast<int64_t>(tiling.grid.size()));
  for (const LockedTile& t : tiling.grid) h->Add("dim", t.dim).Add("tile", t.tile);
  if (tiling.streamed.has_value()) {
    h->Add("streamed", tiling.streamed->dim).Add("tile", tiling.streamed->tile);
  }
  h->Add("products", static_cast<int64_t>(tiling.products.size()));
  for (const LockedProduct& p : tiling.products) {
    h->Add("op", p.op).Add("swap", p.swap).Add("rows", p.rows).Add("columns", p.columns);
    h->Add("stage_rows", p.stage_rows);
  }
  if (tiling.split.has_value()) h->Add("split", tiling.split->dim).Add("parts", tiling.split->tile);
  h->Add("phases", static_cast<int64_t>(tiling.phases.size()));
  for (const LockedTiling& phase : tiling.phases) Add(phase, h);
}

// Of a PlanLock or a LockedBody.
template <typename Locked>
void AddDecisions(const Locked& of, FieldHasher* h) {
  h->Add("groups", static_cast<int64_t>(of.groups.size()));
  for (const LockedGroup& group : of.groups) {
    h->Add("choice", group.choice).Add("body", group.body);
    h->Add("ops", static_cast<int64_t>(group.ops.size()));
    for (int op : group.ops) h->Add("op", op);
  }
  h->Add("choices", static_cast<int64_t>(of.choices.size()));
  for (const LockedChoice& choice : of.choices) {
    h->Add("parts", static_cast<int64_t>(choice.parts.size()));
    for (const LockedTiling& tiling : choice.parts) Add(tiling, h);
    h->Add("turns", static_cast<int64_t>(choice.turns.size()));
    for (const LockedSequentialPhase& turn : choice.turns) {
      h->Add("choice", turn.choice).Add("ops", static_cast<int64_t>(turn.ops.size()));
      for (int op : turn.ops) h->Add("op", op);
    }
    h->Add("pipelines", static_cast<int64_t>(choice.pipelines.size()));
    for (const LockedPipeline& pipeline : choice.pipelines) {
      h->Add("first", pipeline.first).Add("phases", pipeline.phases);
      h->Add("slices", static_cast<int64_t>(pipeline.slices.size()));
      for (const LockedTile& slice : pipeline.slices)
        h->Add("dim", slice.dim).Add("tile", slice.tile);
    }
  }
  h->Add("bodies", static_cast<int64_t>(of.bodies.size()));
  for (const LockedBody& body : of.bodies) AddDecisions(body, h);
}

template <typename Locked>
absl::Status CheckDecisions(const Locked& of) {
  auto check = [](const std::string& field, int at, size_t count) {
    auto most = static_cast<int64_t>(count) - 1;
    if (at >= 0 && at <= most) return absl::OkStatus();
    if (count == 0) return InvalidArgument(field, ": ", at, "; there are none");
    return InvalidArgument(field, ": ", at, "; expected 0..", most);
  };
  for (size_t c = 0; c < of.choices.size(); ++c) {
    const std::vector<LockedSequentialPhase>& turns = of.choices[c].turns;
    for (size_t t = 0; t < turns.size(); ++t) {
      const std::string field = StrCat("choices[", c, "].turns[", t, "].choice");
      RETURN_IF_ERROR(check(field, turns[t].choice, of.choices.size()));
      if (of.choices[static_cast<size_t>(turns[t].choice)].turns.empty()) continue;
      return InvalidArgument(field, ": ", turns[t].choice, " has turns itself");
    }
  }
  for (size_t g = 0; g < of.groups.size(); ++g) {
    const LockedGroup& group = of.groups[g];
    if (group.body < 0) {
      RETURN_IF_ERROR(check(StrCat("groups[", g, "].choice"), group.choice, of.choices.size()));
    } else {
      RETURN_IF_ERROR(check(StrCat("groups[", g, "].body"), group.body, of.bodies.size()));
    }
  }
  for (size_t b = 0; b < of.bodies.size(); ++b) {
    absl::Status sound = CheckDecisions(of.bodies[b]);
    if (!sound.ok()) return InvalidArgument("bodies[", b, "].", Message(sound));
  }
  return absl::OkStatus();
}

}  // namespace

Digest DigestOf(const PlanLock& lock) {
  FieldHasher h;
  h.Add("planner", lock.planner_version).Add("codegen", lock.codegen_version);
  h.Add("target", lock.target).Add("graph", BytesOf(lock.graph));
  Add("device", lock.device, &h);
  h.Add("fusion", static_cast<int64_t>(lock.fusion));
  h.Add("numerics", static_cast<int64_t>(lock.numerics));
  AddDecisions(lock, &h);
  h.Add("variants", static_cast<int64_t>(lock.variants.size()));
  for (const LockedVariant& variant : lock.variants) {
    h.Add("most", variant.most);
    AddDecisions(variant.decisions, &h);
  }
  h.Add("kernels", static_cast<int64_t>(lock.kernels.size()));
  for (const LockedKernel& kernel : lock.kernels) {
    h.Add("label", kernel.label);
    Add("schedule", kernel.schedule, &h);
    Add("source", kernel.source, &h);
    Add("key", kernel.key, &h);
  }
  Add("plan", lock.plan, &h);
  return h.Finish();
}

PlanLock LockOf(const LockedBody& body, LockUse use) {
  PlanLock lock;
  lock.groups = body.groups;
  lock.choices = body.choices;
  lock.bodies = body.bodies;
  lock.use = use;
  return lock;
}

absl::Status CheckChoices(const PlanLock& lock) {
  for (size_t v = 0; v < lock.variants.size(); ++v) {
    absl::Status sound = CheckDecisions(lock.variants[v].decisions);
    if (!sound.ok()) return InvalidArgument("variants[", v, "].decisions.", Message(sound));
  }
  return CheckDecisions(lock);
}

}  // namespace fusion
