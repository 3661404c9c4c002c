#include "core/plan/rules/rule_match.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace fusion {
namespace {

using Readers = std::vector<std::vector<NodeId>>;  // by tensor, each node once

Readers ReadersOf(const Graph& graph) {
  Readers readers(graph.tensors().size());
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    for (TensorId t : graph.nodes()[n].inputs) {
      if (t == kNoTensor) continue;
      std::vector<NodeId>& of = readers[static_cast<size_t>(t)];
      if (of.empty() || of.back() != static_cast<NodeId>(n)) of.push_back(static_cast<NodeId>(n));
    }
  }
  return readers;
}

}  // namespace

TensorId TensorAt(const Graph& graph, const std::vector<NodeId>& assigned, const RuleStep& tensor) {
  const Node& node = graph.node(assigned[static_cast<size_t>(tensor.node)]);
  const std::vector<TensorId>& side = tensor.output ? node.outputs : node.inputs;
  const auto position = static_cast<size_t>(tensor.position);
  return position < side.size() ? side[position] : kNoTensor;
}

namespace {

/// Operator types of which a node may have any.
class OpSet {
 public:
  explicit OpSet(const std::vector<std::string>& ops) {
    for (const std::string& op : ops) {
      any_ |= op == kAnyOp;
      defs_.push_back(FindModelOp(op));
    }
  }
  bool Holds(const Node& node) const {
    return any_ || std::find(defs_.begin(), defs_.end(), node.def) != defs_.end();
  }
  bool empty() const { return defs_.empty(); }

 private:
  std::vector<const OpDef*> defs_;
  bool any_ = false;
};

/// What a condition asks about a match.
class MatchFacts final : public RuleFacts {
 public:
  MatchFacts(const Graph& graph, const Readers& readers, const DeviceSpec& device,
             const std::vector<NodeId>& assigned)
      : graph_(graph), readers_(readers), device_(device), assigned_(assigned) {}

  void set_terms(const MatchTerms* terms) { terms_ = terms; }

  std::optional<double> Number(const RuleStep& step) const override {
    if (step.term == RuleTerm::kAttr) return Attribute(step);
    if (step.node >= 0) return OfTensor(step);
    if (step.term >= RuleTerm::kUsage) return OfKernel(step);
    switch (step.term) {
      case RuleTerm::kUnits:
        return device_.threads;
      case RuleTerm::kVectorBytes:
        return device_.vector_bytes;
      default:
        return Capacity(step.level);
    }
  }

  std::optional<std::string> Word(const RuleStep& step) const override {
    if (step.term == RuleTerm::kKind) {
      std::string kind = device_.kind;
      for (char& c : kind) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      return kind;
    }
    if (step.term == RuleTerm::kAttrText) {
      const Node& node = graph_.node(assigned_[static_cast<size_t>(step.node)]);
      if (const auto* text = node.attrs.Find<std::string>(step.name)) return *text;
      const bool given = node.attrs.Has(step.name) || step.absent_word.empty();
      return given ? std::nullopt : std::optional(step.absent_word);
    }
    const Tensor* tensor = TensorOf(step);
    if (tensor == nullptr) return std::nullopt;
    return std::string(DTypeName(tensor->type.dtype));
  }

 private:
  TensorId IdOf(const RuleStep& step) const { return TensorAt(graph_, assigned_, step); }

  std::optional<double> Attribute(const RuleStep& step) const {
    const AttrMap& attrs = graph_.node(assigned_[static_cast<size_t>(step.node)]).attrs;
    if (!attrs.Has(step.name)) return step.absent;
    if (step.element < 0) {
      if (const auto* integer = attrs.Find<int64_t>(step.name)) {
        return static_cast<double>(*integer);
      }
      const auto* real = attrs.Find<double>(step.name);
      return real == nullptr ? std::nullopt : std::optional(*real);
    }
    const auto at = static_cast<size_t>(step.element);
    if (const auto* integers = attrs.Find<std::vector<int64_t>>(step.name)) {
      return at < integers->size() ? std::optional(static_cast<double>((*integers)[at]))
                                   : std::nullopt;
    }
    const auto* reals = attrs.Find<std::vector<double>>(step.name);
    return reals == nullptr || at >= reals->size() ? std::nullopt : std::optional((*reals)[at]);
  }
  // Null: there is none.
  const Tensor* TensorOf(const RuleStep& step) const {
    TensorId id = IdOf(step);
    return id == kNoTensor ? nullptr : &graph_.tensor(id);
  }

  std::optional<double> OfTensor(const RuleStep& step) const {
    const Tensor* tensor = TensorOf(step);
    if (tensor == nullptr) return std::nullopt;
    Dims dims = tensor->type.shape.ToDims();
    auto elements = static_cast<double>(NumElements(dims));
    auto rank = static_cast<int>(dims.size());
    int dim = step.dim < 0 ? step.dim + rank : step.dim;
    switch (step.term) {
      case RuleTerm::kDim:
        if (dim < 0 || dim >= rank) return std::nullopt;
        return static_cast<double>(dims[static_cast<size_t>(dim)]);
      case RuleTerm::kRank:
        return rank;
      case RuleTerm::kElements:
        return elements;
      case RuleTerm::kBytes:
        return elements * static_cast<double>(DTypeBytes(tensor->type.dtype));
      case RuleTerm::kReaders:
        return static_cast<double>(readers_[static_cast<size_t>(IdOf(step))].size());
      default:
        return tensor->kind == TensorKind::kWeight || tensor->kind == TensorKind::kConstant ? 1 : 0;
    }
  }

  // nullptr: the device has no such level.
  const MemoryLevel* LevelOf(const std::string& name) const {
    if (name == "on_chip") return &device_.StagedLevel();
    auto found = std::find_if(device_.levels.begin(), device_.levels.end(),
                              [&](const MemoryLevel& level) { return level.name == name; });
    return found == device_.levels.end() ? nullptr : &*found;
  }

  std::optional<double> Capacity(const std::string& name) const {
    const MemoryLevel* level = LevelOf(name);
    if (level == nullptr) return std::nullopt;
    if (level->bytes == 0) return std::numeric_limits<double>::infinity();
    return static_cast<double>(level->bytes);
  }

  std::optional<double> OfKernel(const RuleStep& step) const {
    if (terms_ == nullptr) return std::nullopt;
    switch (step.term) {
      case RuleTerm::kUsage:
        if (LevelOf(step.level) == nullptr) return std::nullopt;
        return static_cast<double>(terms_->usage_bytes);
      case RuleTerm::kTimeUs:
        return terms_->time_us;
      case RuleTerm::kApartUs:
        return terms_->apart_us;
      case RuleTerm::kSpeedup:
        if (terms_->time_us <= 0) return std::nullopt;
        return terms_->apart_us / terms_->time_us;
      case RuleTerm::kSavedBytes:
        return static_cast<double>(terms_->saved_bytes);
      default:
        return static_cast<double>(terms_->launches);
    }
  }

  const Graph& graph_;
  const Readers& readers_;
  const DeviceSpec& device_;
  const std::vector<NodeId>& assigned_;
  const MatchTerms* terms_ = nullptr;
};

/// Finds the matches of one rule: node by node of the pattern, each next to one that has its place
/// already, back where nothing fits.
class Matcher {
 public:
  Matcher(const Graph& graph, const Readers& readers, const DeviceSpec& device, const Rule& rule,
          const AskKernel& ask, size_t most, int64_t* steps)
      : graph_(graph),
        readers_(readers),
        rule_(rule),
        ask_(ask),
        most_(most),
        steps_(*steps),
        assigned_(rule.nodes.size(), kNoNode),
        facts_(graph, readers, device, assigned_) {
    for (const RuleNode& node : rule.nodes) ops_.emplace_back(node.ops);
    for (const RuleEdge& edge : rule.edges) through_.emplace_back(edge.through);
    Order();
    SortConditions();
  }

  // Matches and the nodes assigned in each.
  absl::StatusOr<std::map<std::vector<NodeId>, std::vector<NodeId>>> Run() {
    RETURN_IF_ERROR(Extend(0));
    return std::move(found_);
  }

 private:
  // How the candidates for a position in the order are found.
  struct Step {
    int node = 0;      // of the pattern
    int edge = -1;     // along this one,
    bool down = true;  // from the writer to the reader, or back
    int input = -1;    // or by this entry of the rule's inputs
    int with = -1;     // from the place of this node
  };

  absl::Status Spend(int64_t steps) {
    steps_ -= steps;
    if (steps_ >= 0) return absl::OkStatus();
    return ResourceExhausted("rule ", Quote(rule_.name),
                             ": looking for its pattern takes too many steps in this graph");
  }

  // Starts with the most selective node; each next node is connected with earlier ones.
  void Order() {
    size_t first = 0;
    auto any = [&](size_t n) { return rule_.nodes[n].ops[0] == kAnyOp; };
    while (first + 1 < rule_.nodes.size() && any(first)) ++first;
    std::vector<bool> placed(rule_.nodes.size(), false);
    auto place = [&](const Step& step) {
      placed[static_cast<size_t>(step.node)] = true;
      order_.push_back(step);
    };
    auto is_placed = [&](int n) { return placed[static_cast<size_t>(n)]; };
    place({.node = static_cast<int>(first)});
    while (order_.size() < rule_.nodes.size()) {
      size_t before = order_.size();
      for (size_t e = 0; e < rule_.edges.size(); ++e) {
        const RuleEdge& edge = rule_.edges[e];
        if (is_placed(edge.from) == is_placed(edge.to)) continue;
        bool down = is_placed(edge.from);
        place({.node = down ? edge.to : edge.from,
               .edge = static_cast<int>(e),
               .down = down,
               .with = down ? edge.from : edge.to});
      }
      for (size_t i = 0; i < rule_.inputs.size(); ++i) {
        const std::vector<int>& nodes = rule_.inputs[i].nodes;
        auto with = std::find_if(nodes.begin(), nodes.end(), is_placed);
        auto fresh = std::find_if_not(nodes.begin(), nodes.end(), is_placed);
        if (with == nodes.end() || fresh == nodes.end()) continue;
        place({.node = *fresh, .input = static_cast<int>(i), .with = *with});
      }
      FUSION_CHECK(order_.size() > before, "patterns are connected");
    }
  }

  // Checks each condition as soon as all its nodes are assigned, so that dead ends are cut early.
  void SortConditions() {
    conditions_.resize(order_.size());
    std::vector<size_t> place_of(order_.size());
    for (size_t p = 0; p < order_.size(); ++p) place_of[static_cast<size_t>(order_[p].node)] = p;
    for (const RuleCondition& condition : rule_.when) {
      if (condition.AsksKernel()) {
        of_kernel_.push_back(&condition);
        continue;
      }
      size_t last = 0;
      for (const auto* side : {&condition.left, &condition.right}) {
        for (const RuleStep& step : *side) {
          if (step.node >= 0) last = std::max(last, place_of[static_cast<size_t>(step.node)]);
        }
      }
      conditions_[last].push_back(&condition);
    }
  }

  absl::Status Extend(size_t place) {
    if (place == order_.size()) return Found();
    const Step& step = order_[place];
    std::vector<NodeId> candidates;
    RETURN_IF_ERROR(Candidates(step, &candidates));
    NodeId& here = assigned_[static_cast<size_t>(step.node)];
    for (NodeId node : candidates) {
      if (std::find(assigned_.begin(), assigned_.end(), node) != assigned_.end()) continue;
      here = node;
      ASSIGN_OR_RETURN(bool fits, Fits(step, place));
      if (fits) RETURN_IF_ERROR(Extend(place + 1));
      here = kNoNode;
    }
    return absl::OkStatus();
  }

  absl::Status Candidates(const Step& step, std::vector<NodeId>* out) {
    if (step.with < 0) {
      for (size_t n = 0; n < graph_.nodes().size(); ++n) out->push_back(static_cast<NodeId>(n));
    } else if (step.edge >= 0) {
      NodeId with = assigned_[static_cast<size_t>(step.with)];
      RETURN_IF_ERROR(Reach(static_cast<size_t>(step.edge), with, step.down, out, nullptr));
    } else {
      const RuleInput& input = rule_.inputs[static_cast<size_t>(step.input)];
      for (TensorId t : SharedBy(input)) {
        const std::vector<NodeId>& readers = readers_[static_cast<size_t>(t)];
        RETURN_IF_ERROR(Spend(static_cast<int64_t>(readers.size())));
        out->insert(out->end(), readers.begin(), readers.end());
      }
    }
    const OpSet& ops = ops_[static_cast<size_t>(step.node)];
    std::erase_if(*out, [&](NodeId n) { return !ops.Holds(graph_.node(n)); });
    std::sort(out->begin(), out->end());
    out->erase(std::unique(out->begin(), out->end()), out->end());
    return absl::OkStatus();
  }

  // The tensors that all assigned nodes of the entry read there.
  std::vector<TensorId> SharedBy(const RuleInput& input) const {
    std::vector<TensorId> shared;
    bool first = true;
    for (int n : input.nodes) {
      NodeId node = assigned_[static_cast<size_t>(n)];
      if (node == kNoNode) continue;
      std::vector<TensorId> read = ReadsOf(node, input.input);
      if (first) {
        shared = std::move(read);
        std::erase_if(shared, [&](TensorId t) {
          TensorKind kind = graph_.tensor(t).kind;
          return kind == TensorKind::kWeight || kind == TensorKind::kConstant;
        });
      } else {
        std::erase_if(shared, [&](TensorId t) {
          return std::find(read.begin(), read.end(), t) == read.end();
        });
      }
      first = false;
    }
    return shared;
  }

  // Tensors that a node reads at an input, or at any.
  std::vector<TensorId> ReadsOf(NodeId n, int input) const {
    const std::vector<TensorId>& inputs = graph_.node(n).inputs;
    std::vector<TensorId> out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      bool wanted = input < 0 || static_cast<int>(i) == input;
      if (wanted && inputs[i] != kNoTensor) out.push_back(inputs[i]);
    }
    return out;
  }

  // Follows an edge from one end: the candidates for the other end, and the nodes passed on the way
  // (null: not needed).
  absl::Status Reach(size_t e, NodeId begin, bool down, std::vector<NodeId>* ends,
                     std::set<NodeId>* passed) {
    const RuleEdge& edge = rule_.edges[e];
    std::set<NodeId> seen;
    std::vector<NodeId> front = {begin};
    for (int hop = 0; hop <= edge.most && !front.empty(); ++hop) {
      std::vector<NodeId> next;
      for (NodeId n : front) {
        std::vector<NodeId> linked;
        if (down) {
          for (TensorId t : graph_.node(n).outputs) AppendReaders(t, edge.input, ends, &linked);
        } else {
          // Only the last step of the way leads into the input.
          for (TensorId t : ReadsOf(n, hop == 0 ? edge.input : -1)) {
            NodeId producer = graph_.tensor(t).producer;
            if (producer == kNoNode) continue;
            ends->push_back(producer);
            linked.push_back(producer);
          }
        }
        RETURN_IF_ERROR(Spend(static_cast<int64_t>(linked.size()) + 1));
        for (NodeId other : linked) {
          if (through_[e].Holds(graph_.node(other)) && seen.insert(other).second) {
            next.push_back(other);
          }
        }
      }
      front = std::move(next);
    }
    if (passed != nullptr) *passed = std::move(seen);
    return absl::OkStatus();
  }

  void AppendReaders(TensorId t, int input, std::vector<NodeId>* ends,
                     std::vector<NodeId>* linked) const {
    for (NodeId reader : readers_[static_cast<size_t>(t)]) {
      linked->push_back(reader);
      const std::vector<TensorId>& inputs = graph_.node(reader).inputs;
      auto position = static_cast<size_t>(std::max(input, 0));
      if (input < 0 || (position < inputs.size() && inputs[position] == t)) ends->push_back(reader);
    }
  }

  // Whether the node assigned last is consistent with the earlier ones.
  absl::StatusOr<bool> Fits(const Step& step, size_t place) {
    RETURN_IF_ERROR(Spend(1));
    for (const RuleCondition* condition : conditions_[place]) {
      if (!Holds(*condition, facts_)) return false;
    }
    for (const RuleInput& input : rule_.inputs) {
      auto placed = [&](int n) { return assigned_[static_cast<size_t>(n)] != kNoNode; };
      bool asked =
          std::find(input.nodes.begin(), input.nodes.end(), step.node) != input.nodes.end();
      if (asked && std::count_if(input.nodes.begin(), input.nodes.end(), placed) > 1 &&
          SharedBy(input).empty()) {
        return false;
      }
    }
    for (size_t e = 0; e < rule_.edges.size(); ++e) {
      const RuleEdge& edge = rule_.edges[e];
      if (static_cast<int>(e) == step.edge || (edge.from != step.node && edge.to != step.node)) {
        continue;
      }
      NodeId from = assigned_[static_cast<size_t>(edge.from)];
      NodeId to = assigned_[static_cast<size_t>(edge.to)];
      if (from == kNoNode || to == kNoNode) continue;
      std::vector<NodeId> ends;
      RETURN_IF_ERROR(Reach(e, from, /*down=*/true, &ends, nullptr));
      if (std::find(ends.begin(), ends.end(), to) == ends.end()) return false;
    }
    return true;
  }

  absl::Status Found() {
    std::set<NodeId> all(assigned_.begin(), assigned_.end());
    for (size_t e = 0; e < rule_.edges.size(); ++e) {
      if (through_[e].empty()) continue;
      const RuleEdge& edge = rule_.edges[e];
      std::vector<NodeId> ends;
      std::set<NodeId> below;
      std::set<NodeId> above;
      NodeId from = assigned_[static_cast<size_t>(edge.from)];
      NodeId to = assigned_[static_cast<size_t>(edge.to)];
      RETURN_IF_ERROR(Reach(e, from, /*down=*/true, &ends, &below));
      RETURN_IF_ERROR(Reach(e, to, /*down=*/false, &ends, &above));
      std::set_intersection(below.begin(), below.end(), above.begin(), above.end(),
                            std::inserter(all, all.end()));
    }
    std::vector<NodeId> nodes(all.begin(), all.end());
    if (found_.contains(nodes)) return absl::OkStatus();
    if (!of_kernel_.empty()) {
      ASSIGN_OR_RETURN(std::optional<MatchTerms> terms, ask_(nodes));
      facts_.set_terms(terms.has_value() ? &*terms : nullptr);
      bool holds = std::all_of(of_kernel_.begin(), of_kernel_.end(),
                               [&](const RuleCondition* c) { return Holds(*c, facts_); });
      facts_.set_terms(nullptr);
      if (!holds) return absl::OkStatus();
    }
    found_.emplace(std::move(nodes), assigned_);
    if (found_.size() <= most_) return absl::OkStatus();
    return ResourceExhausted("rule ", Quote(rule_.name), ": its pattern has more than ", most_,
                             " matches in this graph");
  }

  const Graph& graph_;
  const Readers& readers_;
  const Rule& rule_;
  const AskKernel& ask_;
  const size_t most_;
  int64_t& steps_;
  std::vector<OpSet> ops_;      // by node of the pattern
  std::vector<OpSet> through_;  // by edge
  std::vector<Step> order_;
  std::vector<std::vector<const RuleCondition*>> conditions_;  // by place in the order
  std::vector<const RuleCondition*> of_kernel_;
  std::vector<NodeId> assigned_;  // by node of the pattern; kNoNode: not yet
  MatchFacts facts_;
  std::map<std::vector<NodeId>, std::vector<NodeId>> found_;
};

absl::Status CheckOps(const Rule& rule, std::string_view what,
                      const std::vector<std::string>& ops) {
  for (const std::string& op : ops) {
    if (op == kAnyOp || FindModelOp(op) != nullptr) continue;
    return InvalidArgument("rule ", Quote(rule.name), ": ", what, ": ", Quote(op),
                           " is no operator of this build");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRuleOps(const Rule& rule) {
  for (const RuleNode& node : rule.nodes) {
    RETURN_IF_ERROR(CheckOps(rule, StrCat("ops of node ", Quote(node.id)), node.ops));
  }
  for (const RuleEdge& edge : rule.edges) {
    std::string what =
        StrCat("through of the edge ", Quote(rule.nodes[static_cast<size_t>(edge.from)].id), " > ",
               Quote(rule.nodes[static_cast<size_t>(edge.to)].id));
    RETURN_IF_ERROR(CheckOps(rule, what, edge.through));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RuleMatch>> MatchRules(const Graph& graph, const DeviceSpec& device,
                                                  const Rules& rules, const AskKernel& ask,
                                                  const MatchLimits& limits) {
  std::vector<RuleMatch> out;
  if (rules.empty()) return out;
  Readers readers = ReadersOf(graph);
  int64_t steps = limits.steps;
  for (size_t r = 0; r < rules.size(); ++r) {
    steps += static_cast<int64_t>(graph.nodes().size());
    Matcher matcher(graph, readers, device, rules[r], ask, limits.matches, &steps);
    ASSIGN_OR_RETURN(auto found, matcher.Run());
    for (auto& [nodes, assigned] : found) {
      out.push_back({.rule = static_cast<int>(r), .nodes = nodes, .assigned = assigned});
    }
  }
  return out;
}

std::optional<double> ValueAt(const Graph& graph, const DeviceSpec& device,
                              const std::vector<NodeId>& assigned,
                              const std::vector<RuleStep>& expression) {
  const bool counts = std::any_of(expression.begin(), expression.end(), [](const RuleStep& step) {
    return step.term == RuleTerm::kReaders;
  });
  const Readers readers = counts ? ReadersOf(graph) : Readers();
  return ValueOf(expression, MatchFacts(graph, readers, device, assigned));
}

}  // namespace fusion
