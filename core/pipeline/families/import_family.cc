#include "core/pipeline/families/import_family.h"

#include <algorithm>
#include <utility>

#include "core/base/hash.h"
#include "core/graph/build/builder.h"
#include "core/pipeline/families/family_checks.h"
#include "core/pipeline/families/family_points.h"

namespace fusion {
namespace {

DimValues DimsAt(const PlanOptions& options, const Units& units) {
  DimValues dims = options.dim_bindings;
  size_t s = 0;
  for (const auto& [name, range] : options.dim_ranges) dims[name] = units[s++] * range.multiple;
  return dims;
}

std::vector<DimRange> SymbolsOf(const PlanOptions& options) {
  std::vector<DimRange> out;
  for (const auto& [name, range] : options.dim_ranges) out.push_back(range);
  return out;
}

// Graph::shape_classes, from the shapes of each tensor in all members; empty if a member has other
// tensors.
std::vector<int> ShapeClasses(const Graph& largest, const std::vector<FamilyMember>& members) {
  std::map<std::vector<std::string>, int> classes;
  std::vector<int> out;
  for (size_t t = 0; t < largest.tensors().size(); ++t) {
    std::vector<std::string> shapes = {largest.tensors()[t].type.shape.ToString()};
    bool same = true;
    for (const FamilyMember& member : members) {
      if (member.graph.tensors().size() != largest.tensors().size()) return {};
      shapes.push_back(member.graph.tensors()[t].type.shape.ToString());
      same = same && shapes.back() == shapes.front();
    }
    const int next = static_cast<int>(classes.size()) + 1;
    out.push_back(same ? 0 : classes.try_emplace(std::move(shapes), next).first->second);
  }
  return out;
}

// The family with classes, and its largest member.
void Classify(ShapeFamily* family, Graph* largest) {
  const std::vector<int> classes = ShapeClasses(*largest, family->members);
  if (classes.empty()) return;
  auto classify = [&](Graph* graph) {
    if (graph->tensors().size() != classes.size()) return;
    *graph = GraphBuilder::WithShapeClasses(std::move(*graph), classes);
  };
  classify(largest);
  for (FamilyMember& member : family->members) classify(&member.graph);
  for (FamilyMember& sample : family->samples) classify(&sample.graph);
  if (family->few.has_value()) classify(&family->few->graph);
}

class FamilyImporter {
 public:
  FamilyImporter(const PlanOptions& options, const Importer& import, const CancelToken* cancel,
                 const CanonicalGraph& largest)
      : options_(options),
        import_(import),
        cancel_(cancel),
        largest_(largest),
        family_(std::make_shared<ShapeFamily>()) {
    family_->symbols = SymbolsOf(options);
    for (const auto& entry : options.dim_ranges) family_->names.push_back(entry.first);
    family_->node_names = largest.node_names;
  }

  absl::StatusOr<std::shared_ptr<ShapeFamily>> Run(std::string* key) {
    const CheckPointList points = CheckPoints(family_->symbols);
    for (const Units& units : points.units) {
      ASSIGN_OR_RETURN(CheckedPoint point, PointAt(units));
      points_.push_back(std::move(point));
    }
    if (!points.exhaustive) RETURN_IF_ERROR(CheckDecisions(*family_, points_));
    // The last refusal is reported, because it is about values within the ranges.
    absl::Status fits = absl::OkStatus();
    std::set<std::vector<Units>> tried;
    for (const Inside& inside : MemberPlaces(family_->symbols)) {
      if (!tried.insert(MemberPoints(family_->symbols, inside)).second) continue;
      fits = SetMembers(inside);
      if (fits.ok() || WasGivenUp(fits)) break;
    }
    RETURN_IF_ERROR(fits);
    points_.clear();
    AddSamples();
    AddKey(key);
    return family_;
  }

 private:
  std::string Shown(const Units& units) const {
    std::vector<std::string> shown;
    for (size_t s = 0; s < units.size(); ++s) {
      shown.push_back(StrCat(family_->names[s], "=", units[s] * family_->symbols[s].multiple));
    }
    return StrJoin(shown, ", ");
  }

  // A value of the range for which the model itself does not hold.
  absl::Status WithWayOut(const absl::Status& refused) const {
    if (!absl::IsInvalidArgument(refused)) return refused;
    return InvalidArgument(Message(refused), "; ", WayOut(family_->names));
  }

  absl::StatusOr<CheckedPoint> PointAt(const Units& units) const {
    if (cancel_ != nullptr) RETURN_IF_ERROR(cancel_->Check());
    CheckedPoint point{.units = units};
    absl::StatusOr<Graph> graph = import_(DimsAt(options_, units), {.trace = &point.trace});
    if (!graph.ok()) return WithWayOut(Annotate(graph.status(), StrCat("with ", Shown(units))));
    ASSIGN_OR_RETURN(CanonicalGraph canonical, Canonicalise(*graph));
    point.graph = std::move(canonical.graph);
    point.node_names = std::move(canonical.node_names);
    return point;
  }

  // The graph where the symbols have these values; its nodes are those of the largest one.
  absl::StatusOr<FamilyMember> MemberAt(const Units& units, std::string* digest) const {
    if (cancel_ != nullptr) RETURN_IF_ERROR(cancel_->Check());
    absl::StatusOr<Graph> graph = import_(DimsAt(options_, units), {});
    if (!graph.ok()) return Annotate(graph.status(), Shown(units));
    ASSIGN_OR_RETURN(CanonicalGraph canonical, Canonicalise(*graph));
    if (canonical.node_names != largest_.node_names) {
      return OtherNodes(canonical.node_names, units);
    }
    *digest = Sha256(canonical.key_text).ToHex();
    return FamilyMember{units, std::move(canonical.graph)};
  }

  // The graph for `units` has other nodes than the largest one.
  absl::Status OtherNodes(const std::vector<std::string>& names, const Units& units) const {
    const std::vector<std::string>& most = largest_.node_names;
    std::string node;
    for (size_t n = 0; node.empty() && n < std::max(names.size(), most.size()); ++n) {
      if (n < names.size() && n < most.size() && names[n] == most[n]) continue;
      node = n < most.size() ? most[n] : names[n];
    }
    return FailedPrecondition(
        "node ", QuoteShort(node), ": the value of dim ", StrJoin(family_->names, ", "),
        " decides whether the model needs it: with ", Shown(units),
        " the graph has other nodes than with the largest values; ", WayOut(family_->names));
  }

  absl::Status SetMembers(const Inside& inside) {
    family_->members.clear();
    digests_.clear();
    for (const Units& units : MemberPoints(family_->symbols, inside)) {
      std::string digest;
      ASSIGN_OR_RETURN(FamilyMember member, MemberAt(units, &digest));
      family_->members.push_back(std::move(member));
      digests_.push_back(std::move(digest));
    }
    return CheckPrograms(*family_, ProgramOptionsFor(options_), points_, cancel_);
  }

  void AddSamples() {
    // A sample whose graph has other nodes is left out.
    for (const Units& units : SamplePoints(family_->symbols)) {
      std::string digest;
      absl::StatusOr<FamilyMember> sample = MemberAt(units, &digest);
      if (!sample.ok()) continue;
      family_->samples.push_back(*std::move(sample));
      digests_.push_back(std::move(digest));
    }
    family_->few_symbols = FewRanges(family_->symbols);
    if (family_->few_symbols.empty()) return;
    std::string digest;
    absl::StatusOr<FamilyMember> few = MemberAt(MostUnits(family_->few_symbols), &digest);
    if (!few.ok()) return;
    family_->few = *std::move(few);
    digests_.push_back(std::move(digest));
  }

  void AddKey(std::string* key) const {
    FieldHasher h;
    for (const DimRange& range : family_->symbols) {
      h.Add("least", range.least).Add("most", range.most);
      h.Add("multiple", range.multiple).Add("likely", range.likely);
    }
    for (const std::string& digest : digests_) h.Add("member", digest);
    *key = h.bytes();
  }

  const PlanOptions& options_;
  const Importer& import_;
  const CancelToken* cancel_;
  const CanonicalGraph& largest_;
  std::shared_ptr<ShapeFamily> family_;
  std::vector<CheckedPoint> points_;
  std::vector<std::string> digests_;  // of the graphs of the family
};

}  // namespace

void BindSingleValues(PlanOptions* options) {
  for (auto it = options->dim_ranges.begin(); it != options->dim_ranges.end();) {
    const auto& [name, range] = *it;
    const bool single = range.least == range.most && !options->dim_bindings.contains(name);
    if (single) options->dim_bindings[name] = range.most;
    it = single ? options->dim_ranges.erase(it) : std::next(it);
  }
}

absl::StatusOr<DimValues> LargestDims(const PlanOptions& options) {
  DimValues dims = options.dim_bindings;
  for (const auto& [name, range] : options.dim_ranges) {
    if (!dims.emplace(name, range.most).second) {
      return InvalidArgument("options.dim_ranges[", Quote(name),
                             "]: options.dim_bindings has a value for it");
    }
    if (range.most < 2) {
      return InvalidArgument("options.dim_ranges[", Quote(name), "]: ", range.least, "..",
                             range.most, "; expected a largest value above 1");
    }
  }
  return dims;
}

std::set<std::string> OpenTables(const PlanOptions& options, const Importer& import) {
  std::set<std::string> open;
  if (options.dim_ranges.empty()) return open;
  std::map<std::string, Dims> one;
  std::map<std::string, Dims> other;
  bool known = false;
  const std::vector<Inside> places = MemberPlaces(SymbolsOf(options));
  for (const Inside& inside : {places.front(), places.back()}) {
    const std::vector<Units> points = MemberPoints(SymbolsOf(options), inside);
    known = known || (import(DimsAt(options, points[0]), {.folded = &one}).ok() &&
                      import(DimsAt(options, points[1]), {.folded = &other}).ok());
  }
  if (!known) return open;
  for (const auto& [name, dims] : one) {
    auto found = other.find(name);
    if (found != other.end() && found->second != dims) open.insert(name);
  }
  return open;
}

absl::StatusOr<std::shared_ptr<const ShapeFamily>> ImportFamily(const PlanOptions& options,
                                                                const Importer& import,
                                                                const CancelToken* cancel,
                                                                CanonicalGraph* largest,
                                                                std::string* key) {
  ASSIGN_OR_RETURN(std::shared_ptr<ShapeFamily> family,
                   FamilyImporter(options, import, cancel, *largest).Run(key));
  Classify(family.get(), &largest->graph);
  return std::shared_ptr<const ShapeFamily>(std::move(family));
}

}  // namespace fusion
