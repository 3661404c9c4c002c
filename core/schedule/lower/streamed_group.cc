#include "core/schedule/lower/streamed_group.h"

#include <algorithm>
#include <set>

#include "core/op/body/simplify.h"
#include "core/schedule/lower/nests.h"

namespace fusion {
namespace {

// The code of a slice is written once for each part.
constexpr size_t kMostParts = 4;

// Coordinates along `dim` at which some op begins or ends to read something.
std::vector<int64_t> BordersAlong(const Smg& smg, DimId dim) {
  std::set<int64_t> borders = {0, smg.dim(dim).extent};
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t at : {begin, end}) {
      if (at > 0 && at < smg.dim(dim).extent) borders.insert(at);
    }
  };
  for (const SmgOp& op : smg.ops) {
    for (const SmgRead& read : op.reads) {
      for (const Guard& g : read.guards) {
        if (g.axis == dim) add(g.begin, g.end);
      }
    }
    op.value.VisitOnce([&](const Expr& e) {
      if (e.op() == ScalarOp::kWithin && e.index() == dim) add(e.integer(), e.end());
    });
  }
  return {borders.begin(), borders.end()};
}

// Simplifies `op` for coordinates of `dim` between two borders, where none of its own borders is.
void Narrow(DimId dim, int64_t begin, SmgOp* op) {
  op->value = Simplify(op->value.MapLeaves([&](const Expr& leaf) -> Expr {
    if (leaf.op() != ScalarOp::kWithin || leaf.index() != dim) return leaf;
    return Expr::ConstInt(DType::kBool, leaf.integer() <= begin && begin < leaf.end() ? 1 : 0);
  }));
  for (SmgRead& read : op->reads) {
    std::erase_if(read.guards, [&](const Guard& g) {
      return g.axis == dim && g.begin <= begin && begin < g.end;
    });
  }
}

// The read of the param that an op passes on unchanged; null: none.
const SmgRead* ShownBy(const FusionGroup& group, const SmgOp& op) {
  if (op.reduce.has_value() || op.value.op() != ScalarOp::kInput) return nullptr;
  const SmgRead& read = op.reads[static_cast<size_t>(op.value.index())];
  const bool direct = read.relation == SmgRead::kInput && read.guards.empty() &&
                      !group.view(read.value).constant &&
                      std::none_of(read.index.begin(), read.index.end(),
                                   [](const IndexExpr& e) { return e.indirect() >= 0; });
  return direct ? &read : nullptr;
}

// Lets products read params directly instead of through ops that only pass them on. Returns the
// number of changed reads.
int ReadDirectly(FusionGroup* group) {
  int changed = 0;
  const Smg before = group->smg;
  for (size_t i = 0; i < before.ops.size(); ++i) {
    if (Classify(*group, static_cast<int>(i)) != OpClass::kProduct) continue;
    for (SmgRead& read : group->smg.ops[i].reads) {
      if (read.producer < 0 || read.relation != SmgRead::kAligned) continue;
      const SmgRead* shown = ShownBy(*group, before.op(read.producer));
      if (shown == nullptr) continue;
      read = *shown;
      ++changed;
    }
  }
  return changed;
}

// The parts of the streamed dim; empty if none lets a product read another param.
std::vector<StreamedPart> PartsOf(const FusionGroup& group, DimId dim) {
  const std::vector<int64_t> borders = BordersAlong(group.smg, dim);
  if (borders.size() < 3 || borders.size() > kMostParts + 1) return {};
  std::vector<StreamedPart> parts;
  int direct = 0;
  for (size_t b = 0; b + 1 < borders.size(); ++b) {
    StreamedPart part{borders[b], borders[b + 1], group};
    for (SmgOp& op : part.group.smg.ops) Narrow(dim, part.begin, &op);
    direct += ReadDirectly(&part.group);
    for (int i = 0; i < static_cast<int>(group.smg.ops.size()); ++i) {
      if (Classify(part.group, i) != Classify(group, i)) return {};
    }
    parts.push_back(std::move(part));
  }
  return direct > 0 ? std::move(parts) : std::vector<StreamedPart>();
}

// The certificate of a form, with notes for people.
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
  out->parts = PartsOf(out->group, dim);
  if (!out->parts.empty()) {
    out->group.certificate.push_back(
        StrCat(out->parts.size(), " inputs that lie side by side along ", group.smg.dim(dim).name,
               " are read in place, each in a loop of its own"));
  }
  return out;
}

}  // namespace fusion
