#include "tests/support/random_scatters.h"

#include <algorithm>
#include <memory>
#include <random>

#include "core/graph/build/builder.h"

namespace fusion {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), builder_("scatters") {}

  Graph Run() {
    Dims dims(static_cast<size_t>(1 + Below(3)));
    for (int64_t& d : dims) d = Of({3, 4, 5, 8, 17, 24});
    TensorId y = Input(DType::kF32, dims);
    for (int64_t i = Below(2); i >= 0; --i) y = Below(2) == 0 ? Elements(y) : Rows(y);
    if (Below(2) == 0) y = Node("Add", {y, Input(DType::kF32, dims)});
    if (dims.size() == 2 && Below(2) == 0) {
      y = Node("MatMul", {y, Weight({dims[1], Of({5, 16})})});
    }
    builder_.MarkOutput(Node(Below(2) == 0 ? "Tanh" : "Neg", {y}));
    auto graph = builder_.Build();
    FUSION_CHECK(graph.ok(), Message(graph.status()));
    return *std::move(graph);
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t Of(std::initializer_list<int64_t> values) {
    return *(values.begin() + Below(static_cast<int64_t>(values.size())));
  }
  TensorId Input(DType type, const Dims& dims) {
    return builder_.AddInput(StrCat("in", names_++), {type, Shape(dims)});
  }
  TensorId Weight(const Dims& dims) {
    return builder_.AddWeight(StrCat("w", names_++), {DType::kF32, Shape(dims)});
  }
  TensorId Node(std::string_view op, const std::vector<TensorId>& inputs, AttrMap attrs = {}) {
    auto made = builder_.AddNode(op, inputs, std::move(attrs), StrCat("node", names_++));
    FUSION_CHECK(made.ok(), StrCat(op, ": ", Message(made.status())));
    return *made;
  }
  Dims DimsOf(TensorId id) const { return builder_.tensor(id).type.shape.ToDims(); }

  std::string Reduction() {
    constexpr const char* kReductions[] = {"none", "add", "add", "mul", "min", "max"};
    return kReductions[Below(6)];
  }

  // Inputs hold 0 to 3; some count from the end.
  TensorId Indices(const Dims& dims) {
    const TensorId index = Input(Below(4) == 0 ? DType::kI32 : DType::kI64, dims);
    if (Below(2) == 0) return index;
    HostTensor two(builder_.tensor(index).type.dtype, {});
    two.SetInt(0, 2);
    return Node("Sub", {index, builder_.AddConstant("", std::move(two))});
  }

  // Updates of these dims: given, or made of others.
  TensorId Updates(const Dims& dims) {
    switch (Below(4)) {
      case 0: {  // messages along edges
        Dims table = dims;
        table[0] = 4 + Below(6);
        const TensorId from = Input(DType::kI64, {dims[0]});
        const TensorId rows =
            Node("Gather", {Input(DType::kF32, table), from}, {{"axis", int64_t{0}}});
        return Node("Mul", {rows, Input(DType::kF32, dims)});
      }
      case 1:
        if (dims.size() == 2) {
          return Node("MatMul", {Input(DType::kF32, {dims[0], 7}), Weight({7, dims[1]})});
        }
        [[fallthrough]];
      case 2:
        return Node("Tanh", {Input(DType::kF32, dims)});
      default:
        return Input(DType::kF32, dims);
    }
  }

  TensorId Elements(TensorId data) {
    const Dims dims = DimsOf(data);
    const int64_t axis = Below(static_cast<int64_t>(dims.size()));
    Dims named = dims;
    named[static_cast<size_t>(axis)] = Of({1, 6, 19});
    TensorId index = 0;
    if (Below(2) == 0) {  // one for all that is beside the axis
      Dims one(dims.size(), 1);
      one[static_cast<size_t>(axis)] = named[static_cast<size_t>(axis)];
      index = Node("Expand", {Indices(one)}, {{"shape", named}});
    } else {
      index = Indices(named);
    }
    return Node("ScatterElements", {data, index, Updates(named)},
                {{"axis", axis}, {"reduction", Reduction()}});
  }

  TensorId Rows(TensorId data) {
    const Dims dims = DimsOf(data);
    const int64_t columns = 1 + Below(static_cast<int64_t>(dims.size()));
    const int64_t updates = Of({1, 7, 18, 40});
    Dims named = {updates};
    named.insert(named.end(), dims.begin() + columns, dims.end());
    if (Below(3) == 0) {
      auto known = std::make_shared<HostTensor>(DType::kI64, Dims{updates, columns});
      for (int64_t i = 0; i < known->elements(); ++i) {
        const int64_t extent = dims[static_cast<size_t>(i % columns)];
        known->SetInt(i, Below(std::min<int64_t>(extent, 3)) - (Below(4) == 0 ? extent : 0));
      }
      AttrMap attrs = {{"reduction", Reduction()}};
      attrs.Set("indices", std::shared_ptr<const HostTensor>(std::move(known)));
      return Node("ScatterND", {data, Updates(named)}, std::move(attrs));
    }
    const TensorId index = Indices({updates, columns});
    return Node("ScatterND", {data, Updates(named), index}, {{"reduction", Reduction()}});
  }

  std::mt19937_64 random_;
  GraphBuilder builder_;
  int names_ = 0;
};

}  // namespace

Graph RandomScatterGraph(uint64_t seed) { return Generator(seed).Run(); }

}  // namespace fusion
