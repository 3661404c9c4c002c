#include "core/smg/structure.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "core/base/hash.h"

namespace fusion {
namespace {

using Colour = uint64_t;
using Colours = std::vector<Colour>;

// Mixes the words of a colour. Must never change: hashes are compared between versions.
class Mixer {
 public:
  explicit Mixer(char tag) { Add(static_cast<unsigned char>(tag)); }
  Mixer& Add(uint64_t word) {
    // splitmix64
    uint64_t z = (state_ ^ word) + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    state_ = z ^ z >> 31;
    return *this;
  }
  Mixer& Add(std::string_view text) {
    for (char c : text) Add(static_cast<unsigned char>(c));
    return Add(text.size());
  }
  /// As a multiset.
  Mixer& AddBag(Colours bag) {
    std::sort(bag.begin(), bag.end());
    for (Colour c : bag) Add(c);
    return Add(bag.size());
  }
  /// As a set.
  Mixer& AddSet(Colours set) {
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    return AddBag(std::move(set));
  }
  Colour colour() const { return state_; }

 private:
  uint64_t state_ = 0;
};

bool Commutes(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
    case ScalarOp::kMul:
    case ScalarOp::kMax:
    case ScalarOp::kMin:
    case ScalarOp::kEq:
    case ScalarOp::kNe:
    case ScalarOp::kAnd:
    case ScalarOp::kOr:
      return true;
    default:
      return false;
  }
}

bool Computes(const SmgOp& op) {
  Expr value = op.value;
  while (value.op() == ScalarOp::kCast) value = value.arg(0);
  return op.reduce.has_value() || value.op() != ScalarOp::kInput;
}

size_t Distinct(Colours colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

// Colours of the ops, dims and inputs of an SMG, refined until they separate no more of them.
class Refinement {
 public:
  explicit Refinement(const Smg& smg)
      : smg_(smg), ops_(smg.ops.size()), dims_(smg.dims.size(), Mixer('d').colour()) {
    for (size_t i = 0; i < smg.ops.size(); ++i) {
      const SmgOp& op = smg.ops[i];
      ops_[i] = Mixer('o').Add(op.reduce ? std::string_view(op.reduce->name()) : "").colour();
      for (const SmgRead& read : op.reads) {
        if (read.producer < 0) inputs_[read.value] = Mixer('i').colour();
      }
      walked_.insert(op.dims.begin(), op.dims.end());
    }
    for (size_t known = 0; known != Known(); Refine()) known = Known();
  }

  /// Of what was found.
  Colour Whole() const { return Mixer('p').AddBag(ops_).colour(); }

 private:
  size_t Known() const {
    Colours inputs;
    for (const auto& [value, colour] : inputs_) inputs.push_back(colour);
    Colours dims;
    for (DimId d : walked_) dims.push_back(OfDim(d));
    return Distinct(ops_) + Distinct(std::move(dims)) + Distinct(std::move(inputs));
  }

  Colour OfDim(DimId d) const { return dims_[static_cast<size_t>(d)]; }

  // What a read reads.
  Colour Source(const SmgRead& read) const {
    bool inside = read.producer >= 0;
    return inside ? ops_[static_cast<size_t>(read.producer)] : inputs_.at(read.value);
  }

  // Which dims an index walks, and how.
  Colour OfIndex(const SmgOp& op, const IndexExpr& e) const {
    Colours walked;
    bool reduced = false;
    bool free = false;
    bool backwards = false;
    for (const IndexExpr::Term& term : e.terms()) {
      walked.push_back(OfDim(term.axis));
      (op.Reduces(term.axis) ? reduced : free) = true;
      backwards |= term.coefficient < 0;
    }
    Mixer mixer('x');
    mixer.AddSet(std::move(walked)).Add(uint64_t{e.constant() != 0});
    mixer.Add(uint64_t{reduced && free}).Add(uint64_t{backwards});
    if (e.indirect() >= 0) mixer.Add(OfRead(op, op.reads[static_cast<size_t>(e.indirect())]));
    return mixer.colour();
  }

  Colour OfRead(const SmgOp& op, const SmgRead& read) const {
    Colours indices;
    for (const IndexExpr& e : read.index) {
      if (!e.IsConstant() || e.constant() != 0) indices.push_back(OfIndex(op, e));
    }
    Colours guarded;
    for (const Guard& g : read.guards) guarded.push_back(OfDim(g.axis));
    return Mixer('r')
        .Add(Source(read))
        .AddSet(std::move(indices))
        .AddSet(std::move(guarded))
        .colour();
  }

  Colour OfExpr(const SmgOp& op, const Expr& e,
                std::unordered_map<const void*, Colour>* done) const {
    auto known = done->find(e.id());
    if (known != done->end()) return known->second;
    Colour colour = 0;
    switch (e.op()) {
      case ScalarOp::kInput:
        colour = OfRead(op, op.reads[static_cast<size_t>(e.index())]);
        break;
      case ScalarOp::kAxis:
      case ScalarOp::kWithin:
        colour = Mixer('a').Add(GetScalarInfo(e.op()).name).Add(OfDim(e.index())).colour();
        break;
      case ScalarOp::kCast:
        colour = OfExpr(op, e.arg(0), done);
        break;
      default: {
        Colours args;
        for (const Expr& arg : e.args()) args.push_back(OfExpr(op, arg, done));
        Mixer mixer('e');
        mixer.Add(GetScalarInfo(e.op()).name);
        if (Commutes(e.op())) std::sort(args.begin(), args.end());
        for (Colour c : args) mixer.Add(c);
        colour = mixer.colour();
      }
    }
    return (*done)[e.id()] = colour;
  }

  Colours OfDims(const std::vector<DimId>& dims) const {
    Colours out;
    for (DimId d : dims) out.push_back(OfDim(d));
    return out;
  }

  void Refine() {
    std::vector<Colours> readers(smg_.ops.size());
    std::map<ValueId, Colours> readers_of_input;
    std::vector<Colours> walkers(smg_.dims.size());
    Colours ops;
    for (size_t i = 0; i < smg_.ops.size(); ++i) {
      const SmgOp& op = smg_.ops[i];
      std::unordered_map<const void*, Colour> done;
      ops.push_back(Mixer('o')
                        .Add(ops_[i])
                        .Add(OfExpr(op, op.value, &done))
                        .AddSet(OfDims(op.OutputDims()))
                        .AddSet(OfDims(op.reduced))
                        .colour());
      for (const SmgRead& read : op.reads) {
        if (read.producer >= 0) readers[static_cast<size_t>(read.producer)].push_back(ops_[i]);
        if (read.producer < 0) readers_of_input[read.value].push_back(ops_[i]);
      }
      for (DimId d : op.dims) {
        Colours operands;  // that vary along it
        for (const SmgRead& read : op.reads) {
          bool named = std::any_of(read.index.begin(), read.index.end(),
                                   [d](const IndexExpr& e) { return e.CoefficientOf(d) != 0; });
          if (named) operands.push_back(Source(read));
        }
        Mixer walker('w');
        walker.Add(ops_[i]).Add(uint64_t{op.Reduces(d)}).AddBag(std::move(operands));
        walkers[static_cast<size_t>(d)].push_back(walker.colour());
      }
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      ops[i] = Mixer('o').Add(ops[i]).AddBag(std::move(readers[i])).colour();
    }
    for (auto& [value, colour] : inputs_) {
      colour = Mixer('i').Add(colour).AddBag(std::move(readers_of_input[value])).colour();
    }
    for (size_t d = 0; d < dims_.size(); ++d) {
      dims_[d] = Mixer('d').Add(dims_[d]).AddBag(std::move(walkers[d])).colour();
    }
    ops_ = std::move(ops);
  }

  const Smg& smg_;
  Colours ops_;
  Colours dims_;
  std::set<DimId> walked_;
  std::map<ValueId, Colour> inputs_;
};

// The connected components of the ops, each as an SMG of its own.
std::vector<Smg> Components(const Smg& smg) {
  std::vector<int> root(smg.ops.size());
  std::iota(root.begin(), root.end(), 0);
  std::function<int(int)> find = [&](int i) {
    int& up = root[static_cast<size_t>(i)];
    return up == i ? i : up = find(up);
  };
  for (size_t i = 0; i < smg.ops.size(); ++i) {
    for (const SmgRead& read : smg.ops[i].reads) {
      if (read.producer < 0) continue;
      int reader = find(static_cast<int>(i));
      root[static_cast<size_t>(reader)] = find(read.producer);
    }
  }
  std::map<int, Smg> parts;
  std::vector<int> moved;  // by op: position in its part
  for (size_t i = 0; i < smg.ops.size(); ++i) {
    Smg& part = parts[find(static_cast<int>(i))];
    part.dims = smg.dims;
    moved.push_back(static_cast<int>(part.ops.size()));
    part.ops.push_back(smg.ops[i]);
    for (SmgRead& read : part.ops.back().reads) {
      if (read.producer >= 0) read.producer = moved[static_cast<size_t>(read.producer)];
    }
  }
  std::vector<Smg> out;
  for (auto& [first, part] : parts) out.push_back(std::move(part));
  return out;
}

}  // namespace

std::string StructureHash(const std::vector<const Smg*>& parts) {
  int64_t computing = 0;
  Colours colours;
  for (const Smg* smg : parts) {
    computing += std::count_if(smg->ops.begin(), smg->ops.end(), Computes);
    for (const Smg& part : Components(*smg)) colours.push_back(Refinement(part).Whole());
  }
  if (computing < 2) return "";
  Colour whole = Mixer('g').AddBag(std::move(colours)).colour();
  return Sha256(StrCat("structure ", whole)).ToHex().substr(0, 16);
}

}  // namespace fusion
