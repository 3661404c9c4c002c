#include "tests/support/plan_corpus.h"

#include <algorithm>
#include <random>

#include "core/graph/build/builder.h"

namespace fusion {
namespace {

constexpr int kLeastOps = 6;
constexpr int kMostOps = 10;
constexpr int64_t kMostElements = 4 << 20;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  // A graph that has what the header promises, or nothing of use.
  Graph Run() {
    int wanted = kLeastOps + Below(kMostOps - kLeastOps + 1);
    do {
      builder_ = GraphBuilder("corpus");
      pool_.clear();
      ops_ = reductions_ = 0;
      int64_t rows = Extent();
      int64_t columns = Extent();
      NewInput({rows, columns});
      if (Below(2) == 0) NewInput({rows, columns});
      for (int tries = 0; ops_ < wanted && tries < 200; ++tries) Step();
    } while (ops_ < wanted || reductions_ < 2 || !FansOut());
    for (const Entry& e : pool_) {
      if (e.computed && e.reads == 0) builder_.MarkOutput(e.id);
    }
    auto graph = builder_.Build();
    FUSION_CHECK(graph.ok(), Message(graph.status()));
    return *std::move(graph);
  }

 private:
  struct Entry {
    TensorId id = 0;
    Dims dims;
    bool computed = false;
    int reads = 0;
  };

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int64_t Extent() {
    constexpr int64_t kExtents[] = {8, 32, 64, 128, 197, 256, 512, 768, 1024, 2048};
    return kExtents[Below(static_cast<int>(std::size(kExtents)))];
  }
  static TensorType Float(const Dims& dims) { return {DType::kF32, Shape(dims)}; }
  void NewInput(const Dims& dims) {
    pool_.push_back({builder_.AddInput(StrCat("in", pool_.size()), Float(dims)), dims});
  }
  TensorId NewWeight(const Dims& dims) {
    return builder_.AddWeight(StrCat("w", weights_++), Float(dims));
  }
  // Late values are better: chains get long.
  size_t Pick() {
    auto n = static_cast<int>(pool_.size());
    return static_cast<size_t>(std::max(Below(n), Below(n)));
  }
  bool FansOut() const {
    return std::any_of(pool_.begin(), pool_.end(),
                       [](const Entry& e) { return e.computed && e.reads > 1; });
  }

  void Add(std::string_view op, const std::vector<TensorId>& inputs, AttrMap attrs = {}) {
    for (Entry& e : pool_) {
      e.reads += std::find(inputs.begin(), inputs.end(), e.id) != inputs.end() ? 1 : 0;
    }
    auto made = builder_.AddNode(op, inputs, std::move(attrs), StrCat("op", ops_++));
    FUSION_CHECK(made.ok(), Message(made.status()));
    pool_.push_back({*made, builder_.tensor(*made).type.shape.ToDims(), true});
  }

  void Step() {
    Entry x = pool_[Pick()];
    switch (Below(10)) {
      case 0:
      case 1:
      case 2: {
        constexpr const char* kFunctions[] = {"Relu", "Tanh", "Exp", "Neg", "Erf", "Sqrt"};
        return Add(kFunctions[Below(6)], {x.id});
      }
      case 3:
      case 4:
      case 5:
        return Combine(x);
      case 6:
        return Add(Below(2) == 0 ? "Add" : "Mul", {x.id, NewWeight({x.dims[1]})});
      case 7:
      case 8:
        return Reduce(x);
      default:
        return Product(x);
    }
  }

  // With another value that broadcasts to this one, or this to that.
  void Combine(const Entry& x) {
    constexpr const char* kOps[] = {"Add", "Mul", "Sub", "Max"};
    Entry y = pool_[Pick()];
    auto fits = [](int64_t a, int64_t b) { return a == b || a == 1 || b == 1; };
    if (y.id == x.id || !fits(x.dims[0], y.dims[0]) || !fits(x.dims[1], y.dims[1])) return;
    Add(kOps[Below(4)], {x.id, y.id});
  }

  void Reduce(const Entry& x) {
    int64_t axis = Below(4) == 0 ? 0 : 1;
    if (x.dims[static_cast<size_t>(axis)] == 1) return;
    ++reductions_;
    Add(Below(2) == 0 ? "ReduceSum" : "ReduceMax", {x.id},
        {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{1}}});
  }

  void Product(const Entry& x) {
    int64_t k = x.dims[1];
    if (k == 1) return;
    Entry y = pool_[Pick()];
    bool other = y.id != x.id && y.dims[0] == k && y.dims[1] > 1 && Below(2) == 0;
    Dims dims = other ? y.dims : Dims{k, Extent()};
    if (x.dims[0] * dims[1] > kMostElements || k * dims[1] > kMostElements) return;
    ++reductions_;
    Add("MatMul", {x.id, other ? y.id : NewWeight(dims)});
  }

  std::mt19937_64 random_;
  GraphBuilder builder_;
  std::vector<Entry> pool_;
  int ops_ = 0;
  int reductions_ = 0;
  int weights_ = 0;
};

}  // namespace

Graph PlanCorpusGraph(uint64_t seed) { return Generator(seed).Run(); }

}  // namespace fusion
