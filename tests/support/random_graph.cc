#include "tests/support/random_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

#include "core/graph/build/builder.h"
#include "core/graph/build/text.h"
#include "core/op/repeat.h"

namespace fusion {
namespace {

// Bound of the elements of a tensor above which it is squashed: rounding errors grow with it.
constexpr double kLargest = 30;
constexpr int64_t kMostElements = 4000;

class Generator {
 public:
  Generator(uint64_t seed, bool chains, bool passes, bool opaque = false)
      : random_(seed),
        // Coordinates stay coordinates, as importers leave them: masks are derived from them.
        builder_("random", chains ? BuilderOptions{.fold_limit_bytes = 0} : BuilderOptions{}),
        chains_(chains),
        passes_(passes),
        opaque_(opaque) {}

  Graph Run() {
    for (int i = 0; i < 1 + Below(3); ++i) NewInput(RandomDims());
    int steps = chains_ ? 1 + Below(4) : 3 + Below(9);
    if (chains_) Chain();
    for (int i = 0; i < steps || nodes_ == 0; ++i) Step();
    for (int i = 0; passes_ && i < 1 + Below(2); ++i) {
      Passes(pool_[Pick()]);
      Unary(pool_.back());
    }
    for (int i = 0; opaque_ && i < 1 + Below(3); ++i) {
      Opaque(pool_[Pick()]);
      Step();
    }
    // What nothing reads, and sometimes what something reads, is an output.
    int outputs = 0;
    for (size_t i = pool_.size(); i-- > 0;) {
      if (!pool_[i].computed) continue;
      if (outputs > 0 && pool_[i].read && Below(8) != 0) continue;
      builder_.MarkOutput(pool_[i].id);
      ++outputs;
    }
    auto graph = builder_.Build();
    FUSION_CHECK(graph.ok(), Message(graph.status()));
    return *std::move(graph);
  }

 private:
  struct Entry {
    TensorId id = 0;
    Dims dims;
    double largest = 3;  // bound of the magnitude of most elements
    bool computed = false;
    bool read = false;
  };

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  int64_t RandomExtent() {
    constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 32, 33, 40};
    if (Below(60) == 0) return 0;
    return kExtents[Below(static_cast<int>(std::size(kExtents)))];
  }

  Dims RandomDims() {
    for (;;) {
      Dims dims(static_cast<size_t>(Below(10) == 0 ? 0 : 1 + Below(3)));
      for (int64_t& d : dims) d = RandomExtent();
      if (NumElements(dims) <= kMostElements) return dims;
    }
  }

  // `dims` with some extents 1 and some leading ones missing: broadcasts to it.
  Dims BroadcastDims(const Dims& dims) {
    Dims out = dims;
    for (int64_t& d : out) d = Below(4) == 0 ? 1 : d;
    out.erase(out.begin(), out.begin() + Below(static_cast<int>(out.size()) + 1));
    return out;
  }

  static TensorType Float(const Dims& dims) { return {DType::kF32, Shape(dims)}; }

  size_t NewInput(const Dims& dims) {
    return Put({builder_.AddInput(StrCat("in", pool_.size()), Float(dims)), dims});
  }
  size_t NewWeight(const Dims& dims) {
    return Put({builder_.AddWeight(StrCat("w", pool_.size()), Float(dims)), dims});
  }
  size_t NewSource(const Dims& dims) { return Below(2) == 0 ? NewInput(dims) : NewWeight(dims); }
  TensorId Constant(double value) {
    HostTensor t(DType::kF32, {});
    t.SetDouble(0, value);
    return builder_.AddConstant("", std::move(t));
  }

  size_t Put(Entry entry) {
    pool_.push_back(std::move(entry));
    return pool_.size() - 1;
  }

  // Adds a node on pool entries and constants; its bound is squashed if need be.
  size_t Add(std::string_view op, const std::vector<TensorId>& inputs, AttrMap attrs,
             double largest) {
    for (Entry& e : pool_) {
      e.read |= std::find(inputs.begin(), inputs.end(), e.id) != inputs.end();
    }
    auto made = builder_.AddNode(op, inputs, std::move(attrs), StrCat("node", nodes_++));
    FUSION_CHECK(made.ok(), Message(made.status()));
    size_t at = Put({*made, builder_.tensor(*made).type.shape.ToDims(), largest, true});
    if (largest <= kLargest) return at;
    return Add("Tanh", {*made}, {}, 1);
  }

  size_t Pick() {
    // Late tensors are better: chains get long.
    size_t a = static_cast<size_t>(Below(static_cast<int64_t>(pool_.size())));
    size_t b = static_cast<size_t>(Below(static_cast<int64_t>(pool_.size())));
    return std::max(a, b);
  }

  void Step() {
    if (chains_ && Below(3) == 0) return Chain();
    Entry x = pool_[Pick()];
    switch (Below(14)) {
      case 0:
      case 1:
        return Unary(x);
      case 2:
      case 3:
      case 4:
        return Binary(x);
      case 5:
        return Reduce(x);
      case 6:
        return Normalise(x);
      case 7:
      case 8:
        return Product(x);
      case 9:
        return Transpose(x);
      case 10:
        return Reshape(x);
      case 11:
        return SliceOrConcat(x);
      case 12:
        return GatherOrExpand(x);
      default:
        return Select(x);
    }
  }

  void Unary(const Entry& x) {
    struct Function {
      const char* op;
      double largest;  // 0: as its argument
    };
    constexpr Function kFunctions[] = {{"Relu", 0}, {"Tanh", 1}, {"Sigmoid", 1}, {"Neg", 0},
                                       {"Abs", 0},  {"Erf", 1},  {"Sin", 1},     {"Cos", 1}};
    const Function& f = kFunctions[Below(static_cast<int>(std::size(kFunctions)))];
    // Sin and Cos of thousands are as wrong as those are rounded.
    const char* op = f.op[0] != 'T' && f.largest == 1 && x.largest > kLargest ? "Tanh" : f.op;
    size_t y = Add(op, {x.id}, {}, f.largest == 0 ? x.largest : f.largest);
    // Of what lies in -1..1 also the functions that are not defined or too large elsewhere.
    if (f.largest != 1 || Below(2) == 0) return;
    size_t bounded = Add("Add", {pool_[y].id, Constant(2)}, {}, 3);
    constexpr const char* kMore[] = {"Exp", "Log", "Sqrt", "Reciprocal"};
    Add(kMore[Below(4)], {pool_[bounded].id}, {}, 21);
  }

  void Binary(const Entry& x) {
    constexpr const char* kOps[] = {"Add", "Sub", "Mul", "Max", "Min"};
    const char* op = kOps[Below(5)];
    TensorId other = 0;
    double largest = 3;
    size_t same = Pick();
    if (Below(4) == 0) {
      other = Constant(0.5);
    } else if (Below(2) == 0 && pool_[same].dims == x.dims) {
      other = pool_[same].id;
      largest = pool_[same].largest;
    } else {
      other = pool_[NewSource(BroadcastDims(x.dims))].id;
    }
    bool product = std::string_view(op) == "Mul";
    Add(op, Below(3) == 0 ? std::vector{other, x.id} : std::vector{x.id, other}, {},
        product ? x.largest * largest : x.largest + largest);
  }

  void Reduce(const Entry& x) {
    if (x.dims.empty()) return;
    constexpr const char* kOps[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"};
    std::vector<int64_t> axes;
    int64_t points = 1;
    for (size_t d = 0; d < x.dims.size(); ++d) {
      if (Below(2) == 0) continue;
      axes.push_back(static_cast<int64_t>(d));
      points *= x.dims[d];
    }
    if (axes.empty()) {
      axes = {-1};
      points = x.dims.back();
    }
    int op = points == 0 ? 0 : Below(4);  // only an empty sum is a number
    size_t y = Add(kOps[op], {x.id}, {{"axes", axes}, {"keepdims", int64_t{Below(2)}}},
                   op == 0 ? x.largest * static_cast<double>(points) / 4 : x.largest);
    if (Below(2) != 0 || pool_[y].dims.size() != x.dims.size()) return;
    Add("Sub", {x.id, pool_[y].id}, {}, x.largest + pool_[y].largest);
  }

  void Normalise(const Entry& x) {
    if (x.dims.empty()) return;
    if (Below(2) == 0) {
      Add("Softmax", {x.id}, {{"axis", Below(static_cast<int64_t>(x.dims.size()))}}, 1);
      return;
    }
    // A row that is constant but for rounding has no reproducible normal form.
    if (x.computed && x.dims.back() < 3) return;
    TensorId scale = pool_[NewWeight({x.dims.back()})].id;
    TensorId bias = pool_[NewWeight({x.dims.back()})].id;
    Add("LayerNormalization", {x.id, scale, bias}, {{"axis", int64_t{-1}}, {"epsilon", 0.125}}, 9);
  }

  void Product(const Entry& x) {
    if (x.dims.empty()) return;
    int64_t k = x.dims.back();
    double largest = x.largest * (1 + std::sqrt(static_cast<double>(k)));
    Dims other = {k, RandomExtent()};
    // Batched, where x has a batch and both operands vary with the run.
    if (x.dims.size() == 3 && Below(2) == 0) other.insert(other.begin(), x.dims[0]);
    if (NumElements(other) > kMostElements) return;
    size_t y = Add("MatMul", {x.id, pool_[NewSource(other)].id}, {}, largest);
    if (Below(2) == 0 || pool_[y].dims.empty()) return;
    TensorId bias = pool_[NewWeight({pool_[y].dims.back()})].id;
    Add("Add", {pool_[y].id, bias}, {}, pool_[y].largest + 3);
  }

  void Transpose(const Entry& x) {
    std::vector<int64_t> perm(x.dims.size());
    for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
    std::shuffle(perm.begin(), perm.end(), random_);
    Add("Transpose", {x.id}, {{"perm", perm}}, x.largest);
  }

  void Reshape(const Entry& x) {
    std::vector<int64_t> shape(x.dims.begin(), x.dims.end());
    int64_t elements = NumElements(x.dims);
    if (Below(3) == 0 && elements > 0) {
      // Any other shape of as many elements, often without common factors.
      int64_t rows = 1 + Below(int64_t{12});
      while (elements % rows != 0) --rows;
      shape = {rows, elements / rows};
    } else if (shape.size() >= 2 && Below(2) == 0) {
      auto at = shape.begin() + Below(static_cast<int>(shape.size()) - 1);
      *at *= at[1];
      shape.erase(at + 1);
    } else if (!shape.empty()) {
      auto at = shape.begin() + Below(static_cast<int>(shape.size()));
      int64_t part = *at % 4 == 0 && *at > 0 ? 4 : *at % 3 == 0 && *at > 0 ? 3 : 1;
      *at /= part;
      shape.insert(at, part);
    } else {
      shape = {1, 1};
    }
    Add("Reshape", {x.id}, {{"shape", shape}, {"allowzero", int64_t{1}}}, x.largest);
  }

  void SliceOrConcat(const Entry& x) {
    if (x.dims.empty()) return;
    auto axis = static_cast<size_t>(Below(static_cast<int>(x.dims.size())));
    std::vector<int64_t> axes = {static_cast<int64_t>(axis)};
    if (Below(2) == 0) {
      int64_t begin = Below(x.dims[axis] / 2 + 1);
      int64_t end = x.dims[axis] - Below(x.dims[axis] / 3 + 1);
      Add("Slice", {x.id},
          {{"axes", axes},
           {"starts", std::vector<int64_t>{begin}},
           {"ends", std::vector<int64_t>{end}},
           {"steps", std::vector<int64_t>{1 + Below(2) * Below(2)}}},
          x.largest);
      return;
    }
    size_t same = Pick();
    TensorId other = x.id;
    if (pool_[same].dims == x.dims) {
      other = pool_[same].id;
    } else if (Below(2) == 0) {
      Dims dims = x.dims;
      dims[axis] = 1 + Below(5);
      other = pool_[NewInput(dims)].id;
    }
    Add("Concat", {x.id, other}, {{"axis", axes[0]}}, std::max(x.largest, pool_[same].largest));
  }

  // One place, evenly spaced ones, or any, some from the end.
  TensorId ConstantIndices(int64_t extent) {
    int64_t n = Below(4);
    HostTensor ids(DType::kI64, n == 0 ? Dims{} : Dims{n});
    int64_t step = Below(2);
    for (int64_t i = 0; i < ids.elements(); ++i) {
      int64_t at = Below(2) == 0 ? i * step % extent : Below(static_cast<int>(extent));
      ids.SetInt(i, Below(3) == 0 ? at - extent : at);
    }
    return builder_.AddConstant("", std::move(ids));
  }

  void GatherOrExpand(const Entry& x) {
    if (!x.dims.empty() && x.dims.back() > 0 && Below(2) == 0) {
      TensorId ids = ConstantIndices(x.dims.back());
      Add("Gather", {x.id, ids}, {{"axis", static_cast<int64_t>(x.dims.size()) - 1}}, x.largest);
      return;
    }
    if (!x.dims.empty() && x.dims[0] >= 4 && !x.computed) {
      TensorId ids =
          builder_.AddInput(StrCat("ids", nodes_), {DType::kI64, Shape(Dims{1 + Below(6)})});
      Add("Gather", {x.id, ids}, {{"axis", int64_t{0}}}, x.largest);
      return;
    }
    std::vector<int64_t> shape(x.dims.begin(), x.dims.end());
    for (int64_t& d : shape) d = d == 1 ? 5 : d;
    if (shape.size() < 3) shape.insert(shape.begin(), 2);
    if (NumElements(shape) > kMostElements) return;
    Add("Expand", {x.id}, {{"shape", shape}}, x.largest);
  }

  void Select(const Entry& x) {
    TensorId mask =
        builder_.AddInput(StrCat("mask", nodes_), {DType::kBool, Shape(BroadcastDims(x.dims))});
    Add("Where", {mask, x.id, Constant(-2)}, {}, std::max(x.largest, 2.0));
  }

  // A pass for each element of the first dim: state = tanh(state / 2 + element), which forgets what
  // rounding did to it.
  void Passes(const Entry& x) {
    if (x.dims.empty()) return;
    const Dims element(x.dims.begin() + 1, x.dims.end());
    const int64_t passes = x.dims[0];  // x goes where the pool of entries grows
    const std::string type = StrCat("f32", DimsToString(element));
    std::vector<TensorId> operands = {x.id, pool_[NewSource(element)].id};
    std::string text =
        StrCat("repeat ", passes, " {", Below(2) == 0 ? "element " : "element_from_end ", type,
               ", carried ", type);
    const bool product = !element.empty() && element.back() <= 40;
    if (product) {
      const Dims weight = {element.back(), Length()};
      operands.push_back(pool_[NewSource(weight)].id);
      StrAppend(&text, StrCat(", whole f32", DimsToString(weight)));
    }
    const size_t first = operands.size();
    auto value = [&](size_t i) { return StrCat("%", first + i); };
    StrAppend(&text, StrCat(", ", value(0), " = const f32[] {0.5}, ", value(1), " = Mul(%1, ",
                            value(0), "), ", value(2), " = Add(", value(1), ", %0), ", value(3),
                            " = Tanh(", value(2), ")"));
    if (product) StrAppend(&text, StrCat(", ", value(4), " = MatMul(", value(3), ", %2)"));
    StrAppend(&text, StrCat(", out ", value(3), Below(2) == 0 ? ", out " : ", out_from_end ",
                            value(product ? 4 : 3), "}"));
    Lexer in(text);
    auto repeat = ParseRepeat(in);
    FUSION_CHECK(repeat.ok(), Message(repeat.status()));
    AttrMap attrs;
    attrs.Set("body", std::make_shared<const Repeat>(*std::move(repeat)));
    auto results = builder_.AddMultiNode(*FindOp("Repeat"), operands, std::move(attrs),
                                         StrCat("node", nodes_++), {"", ""});
    FUSION_CHECK(results.ok(), Message(results.status()));
    for (Entry& e : pool_) {
      e.read |= std::find(operands.begin(), operands.end(), e.id) != operands.end();
    }
    for (TensorId id : *results) {
      Put({id, builder_.tensor(id).type.shape.ToDims(), id == (*results)[0] ? 1.0 : kLargest,
           true});
    }
  }

  // Running folds and orders, between what loops say.
  void Opaque(const Entry& x) {
    if (x.dims.empty()) return;
    const auto axis = Below(static_cast<int64_t>(x.dims.size()));
    const int64_t extent = x.dims[static_cast<size_t>(axis)];
    const int64_t last = static_cast<int64_t>(x.dims.size()) - 1;
    switch (Below(4)) {
      case 0:
        Add("CumSum", {x.id},
            {{"axis", Dims{axis}},
             {"exclusive", int64_t{Below(2)}},
             {"reverse", int64_t{Below(2)}}},
            x.largest * (1 + static_cast<double>(extent) / 4));
        return;
      case 1:
        Add("RunningFold", {x.id},
            {{"axis", axis},
             {"monoid", std::string(Below(2) == 0 ? "max" : "min")},
             {"reverse", int64_t{Below(2)}}},
            x.largest);
        return;
      case 2:
        // In order whole, which rounding changes by no more than itself.
        if (extent < 17) return;
        Add("TopK", {x.id}, {{"k", extent - Below(int64_t{9})}, {"axis", axis}}, x.largest);
        return;
      default: {
        // Where they are hangs on rounding unless nothing was rounded.
        if (x.computed || extent == 0) return;
        const TensorId order =
            Made("RowOrder", {x.id}, {{"axis", axis}, {"count", 1 + Below(extent)}});
        if (axis == last && Below(2) == 0) {
          Add("GatherElements", {x.id, order}, {{"axis", axis}}, x.largest);
        } else {
          Add("Cast", {order}, {{"to", std::string("f32")}}, static_cast<double>(extent));
        }
      }
    }
  }

  // ---- chains ----

  void Chain() {
    switch (Below(7)) {
      case 0:
      case 1:
      case 2:
        return Attention();
      case 3:
        return SpelledSoftmax();
      case 4:
        return SpelledNormalisation();
      case 5:
        return SideBySide();
      default:
        return OtherTypes();
    }
  }

  // A tensor of rank 2 or 3 without empty dims, new if none was picked.
  Entry Matrix() {
    for (int i = 0; i < 3; ++i) {
      const Entry& x = pool_[Pick()];
      bool fits = x.dims.size() >= 2 && NumElements(x.dims) > 0 && NumElements(x.dims) <= 1600;
      if (fits && x.largest <= kLargest) return x;
    }
    Dims dims = {Length(), Length()};
    if (Below(2) == 0) dims.insert(dims.begin(), 1 + Below(int64_t{3}));
    return pool_[NewInput(dims)];
  }

  int64_t Length() {
    constexpr int64_t kLengths[] = {3, 5, 8, 12, 17, 24};
    return kLengths[Below(static_cast<int>(std::size(kLengths)))];
  }

  TensorId Coordinates(int64_t extent) {
    auto number = [](int64_t value) {
      auto t = std::make_shared<HostTensor>(DType::kI64, Dims{});
      t->SetInt(0, value);
      return std::shared_ptr<const HostTensor>(std::move(t));
    };
    auto made = builder_.AddNode(
        "Range", {}, {{"start", number(0)}, {"limit", number(extent)}, {"delta", number(1)}},
        StrCat("node", nodes_++));
    FUSION_CHECK(made.ok(), Message(made.status()));
    return *made;
  }

  TensorId Made(std::string_view op, const std::vector<TensorId>& inputs, AttrMap attrs = {}) {
    auto made = builder_.AddNode(op, inputs, std::move(attrs), StrCat("node", nodes_++));
    FUSION_CHECK(made.ok(), Message(made.status()));
    return *made;
  }

  // Where a query may look, [rows, columns].
  TensorId Mask(int64_t rows, int64_t columns) {
    if (Below(3) == 0) {
      return builder_.AddInput(StrCat("mask", nodes_), {DType::kBool, Shape(Dims{rows, columns})});
    }
    TensorId row = Made("Unsqueeze", {Coordinates(rows)}, {{"axes", std::vector<int64_t>{1}}});
    TensorId column = Coordinates(columns);
    TensorId causal = Made("LessOrEqual", {column, row});
    if (Below(2) == 0) return causal;
    HostTensor window(DType::kI64, {});
    window.SetInt(0, 1 + Below(int64_t{6}));
    TensorId last = Made("Add", {column, builder_.AddConstant("", std::move(window))});
    return Made("And", {causal, Made("Greater", {last, row})});
  }

  void Attention() {
    Entry x = Matrix();
    int64_t rows = x.dims[x.dims.size() - 2];
    int64_t columns = Below(2) == 0 ? rows : Length();
    Dims key = {x.dims.back(), columns};
    Dims value = {columns, Length()};
    if (x.dims.size() == 3) {
      key.insert(key.begin(), x.dims[0]);
      value.insert(value.begin(), x.dims[0]);
    }
    // Rows of about one unit each, however long.
    double largest = x.largest * std::sqrt(static_cast<double>(x.dims.back()));
    size_t scores = Add("MatMul", {x.id, pool_[NewInput(key)].id}, {}, std::min(largest, kLargest));
    size_t at = Add("Mul", {pool_[scores].id, Constant(0.25)}, {}, 8);
    int masked = Below(4);
    // The plan computes masks of coordinates alone once, before the first run; this one it cannot.
    bool lower = Below(2) == 0;
    if (lower) {
      at = Add("Trilu", {pool_[at].id}, {{"upper", int64_t{0}}}, 8);
      Add("MatMul", {pool_[at].id, pool_[NewInput(value)].id}, {}, kLargest);
      return;
    }
    if (masked != 0) {
      double hidden = masked == 1 ? -10000 : -std::numeric_limits<double>::infinity();
      TensorId mask = Mask(rows, columns);
      at = Add("Where", {mask, pool_[at].id, Constant(hidden)}, {}, 8);
      // Of what is made of it otherwise a rounding error is too large to tell from a wrong result.
      if (std::isfinite(hidden)) pool_[at].largest = -hidden;
    }
    size_t shares =
        Below(3) == 0 ? Spelled(at) : Add("Softmax", {pool_[at].id}, {{"axis", int64_t{-1}}}, 1);
    Add("MatMul", {pool_[shares].id, pool_[NewInput(value)].id}, {}, 3);
  }

  // Softmax along the last dim, op by op.
  size_t Spelled(size_t x) {
    AttrMap last = {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{1}}};
    size_t largest = Add("ReduceMax", {pool_[x].id}, last, 8);
    // Nothing else reads it: whether an element is 0 hangs on rounding, and 0 times infinity is
    // NaN.
    TensorId below = Made("Sub", {pool_[x].id, pool_[largest].id});
    size_t powers = Add("Exp", {below}, {}, 1);
    size_t sum = Add("ReduceSum", {pool_[powers].id}, last, 24);
    return Add("Div", {pool_[powers].id, pool_[sum].id}, {}, 1);
  }

  void SpelledSoftmax() {
    Entry x = Matrix();
    size_t shares = Spelled(Add("Tanh", {x.id}, {}, 1));
    if (Below(2) == 0) return;
    Add("MatMul", {pool_[shares].id, pool_[NewWeight({x.dims.back(), Length()})].id}, {}, 3);
  }

  void SpelledNormalisation() {
    Entry x = Matrix();
    AttrMap last = {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{1}}};
    size_t centred = Put(x);
    if (Below(2) == 0) {
      size_t mean = Add("ReduceMean", {x.id}, last, x.largest);
      centred = Add("Sub", {x.id, pool_[mean].id}, {}, std::min(2 * x.largest, kLargest));
    }
    TensorId c = pool_[centred].id;
    size_t variance = Add("ReduceMean", {Made("Mul", {c, c})}, last, 9);
    size_t root = Add("Sqrt", {Made("Add", {pool_[variance].id, Constant(0.125)})}, {}, 3);
    size_t y = Add("Div", {c, pool_[root].id}, {}, 9);
    if (Below(3) == 0) return;
    double largest = 3 * std::sqrt(static_cast<double>(x.dims.back()));
    Add("MatMul", {pool_[y].id, pool_[NewWeight({x.dims.back(), Length()})].id}, {}, largest);
  }

  // Products that read one input and not each other; two of them perhaps as a gate.
  void SideBySide() {
    Entry x = Matrix();
    double largest = x.largest * (1 + std::sqrt(static_cast<double>(x.dims.back())));
    bool gated = Below(2) == 0;
    int64_t columns = Length();
    std::vector<size_t> made;
    for (int more = 2 + Below(2); more > 0; --more) {
      int64_t n = gated ? columns : Length();
      made.push_back(Add("MatMul", {x.id, pool_[NewWeight({x.dims.back(), n})].id}, {}, largest));
    }
    if (!gated) return;
    size_t gate = Add("Sigmoid", {pool_[made[0]].id}, {}, 1);
    Add("Mul", {pool_[gate].id, pool_[made[1]].id}, {}, pool_[made[1]].largest);
  }

  void OtherTypes() {
    Dims dims = {Length(), Length()};
    auto to = [](const char* type) { return AttrMap{{"to", std::string(type)}}; };
    switch (Below(3)) {
      case 0: {  // stored in 16 bits
        DType narrow = Below(2) == 0 ? DType::kF16 : DType::kBF16;
        TensorId x = builder_.AddInput(StrCat("half", nodes_), {narrow, Shape(dims)});
        size_t wide = Add("Cast", {x}, to("f32"), 3);
        Add("Softmax", {pool_[wide].id}, {{"axis", int64_t{-1}}}, 1);
        return;
      }
      case 1: {  // sums in f64
        Entry x = Matrix();
        TensorId wide = Made("Cast", {x.id}, to("f64"));
        TensorId sum = Made("ReduceSum", {wide},
                            {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{1}}});
        size_t y =
            Add("Cast", {sum}, to("f32"), x.largest * static_cast<double>(x.dims.back()) / 4);
        Add("Sub", {x.id, pool_[y].id}, {}, x.largest + pool_[y].largest);
        return;
      }
      default: {  // counts
        TensorId x = builder_.AddInput(StrCat("count", nodes_), {DType::kI32, Shape(dims)});
        TensorId y = builder_.AddInput(StrCat("other", nodes_), {DType::kI32, Shape({dims[1]})});
        TensorId both = Made(Below(2) == 0 ? "Mul" : "Max", {x, y});
        TensorId sum = Made("ReduceMax", {both},
                            {{"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{1}}});
        Add("Cast", {Made("Sub", {both, sum})}, to("f32"), 9);
      }
    }
  }

  std::mt19937_64 random_;
  GraphBuilder builder_;
  const bool chains_;
  const bool passes_;
  const bool opaque_;
  std::vector<Entry> pool_;
  int nodes_ = 0;
};

}  // namespace

Graph RandomGraph(uint64_t seed) {
  return Generator(seed, /*chains=*/false, /*passes=*/false).Run();
}

Graph RandomChainGraph(uint64_t seed) {
  return Generator(seed, /*chains=*/true, /*passes=*/false).Run();
}

Graph RandomLoopGraph(uint64_t seed) {
  return Generator(seed, /*chains=*/false, /*passes=*/true).Run();
}

Graph RandomOpaqueGraph(uint64_t seed) {
  return Generator(seed, /*chains=*/false, /*passes=*/false, /*opaque=*/true).Run();
}

Graph WithRandomStrides(const Graph& graph, uint64_t seed) {
  std::mt19937_64 chance(seed);
  auto pick = [&](uint64_t most) { return static_cast<int64_t>(chance() % (most + 1)); };
  std::string text = ToString(graph);
  text.resize(text.size() - 2);  // "}\n"
  for (const bool output : {false, true}) {
    const std::vector<TensorId>& list = output ? graph.outputs() : graph.inputs();
    for (size_t i = 0; i < list.size(); ++i) {
      const Dims dims = graph.tensor(list[i]).type.shape.ToDims();
      if (pick(1) == 0 || dims.empty()) continue;
      std::vector<size_t> order(dims.size());
      std::iota(order.begin(), order.end(), size_t{0});
      if (pick(1) == 0) std::shuffle(order.begin(), order.end(), chance);
      Dims strides(dims.size());
      int64_t next = 1 + (pick(2) == 0 ? pick(2) : 0);
      for (size_t k = order.size(); k-- > 0;) {
        strides[order[k]] = next;
        next = next * std::max<int64_t>(dims[order[k]], 1) + pick(2) * pick(5);
      }
      text +=
          StrCat("  strides ", output ? "output " : "input ", i, " ", DimsToString(strides), "\n");
    }
  }
  absl::StatusOr<Graph> strided = ParseGraph(text + "}\n");
  FUSION_CHECK(strided.ok(), Message(strided.status()));
  return *std::move(strided);
}

}  // namespace fusion
