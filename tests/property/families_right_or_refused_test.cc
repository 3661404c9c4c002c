// What a length decides (comparisons, minima, slices, branches, passes) is right in a plan for a
// range of lengths, or the range is refused. Program and graph are compared on the evaluator, so
// that many models take little time; tests/acceptance/faults.sh runs such models on kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "core/base/clock.h"
#include "core/codegen/generalise.h"
#include "core/graph/evaluate/evaluate.h"
#include "core/graph/evaluate/test_values.h"
#include "core/import/graph_source.h"
#include "core/onnx/weight_source.h"
#include "core/pipeline/families/family_points.h"
#include "core/pipeline/requests/resolve.h"
#include "core/tensor/compare.h"
#include "tests/models/models.h"
#include "tests/models/random.h"
#include "tests/support/fake_toolchain.h"

namespace fusion {
namespace {

using testing::HasSubstr;

using Units = std::vector<int64_t>;

// Models of a run; more with FUSION_RANDOM_MODELS.
uint64_t Models() {
  const char* word = std::getenv("FUSION_RANDOM_MODELS");
  return word == nullptr ? 150 : std::strtoull(word, nullptr, 10);
}

class FamiliesTest : public testing::Test {
 protected:
  FamiliesTest()
      : toolchain_(Toolchain::Open(FakeToolchainOptions(), tools_).value()),
        resolver_(BuiltInSpecs().value(), toolchain_, int64_t{1} << 20) {}

  static onnx::ModelProto ModelOf(const char* name, uint64_t seed) {
    ModelParams params = FindModel(name)->defaults;
    params.seed = seed;
    params.dynamic = true;
    return GenerateModel(*FindModel(name), params)->model;
  }

  void ExpectRightOrRefused(const char* name,
                            const std::function<std::pair<DimRange, DimRange>(Random*)>& ranges_of);

  absl::StatusOr<std::shared_ptr<const Resolved>> Resolve(const std::string& model,
                                                          std::map<std::string, DimRange> ranges) {
    PlanRequest request;
    request.source.onnx_model = model;
    request.target.isa = "avx2";
    request.mode = PlanMode::kPlanOnly;
    request.options.dim_ranges = std::move(ranges);
    CancelToken patient;
    StageContext stages{patient, Clock::Real()};
    return resolver_.Resolve(request, stages);
  }

  FakeTools tools_;
  Toolchain toolchain_;
  Resolver resolver_;
};

// A model, and what a client would know of it.
struct Client {
  explicit Client(const onnx::ModelProto& proto)
      : model(proto.SerializeAsString()), weights(proto) {}

  std::string model;
  WeightSource weights;
};

// The values of a program's outputs. `names`: of its weights, by index.
absl::StatusOr<std::vector<HostTensor>> ValuesOf(const Program& program,
                                                 const std::vector<HostTensor>& inputs,
                                                 const std::vector<std::string>& names,
                                                 const WeightSource& source) {
  std::vector<Box> boxes;
  for (ValueId v : program.outputs) {
    boxes.push_back(Box::Whole(program.value(v).type.shape.ToDims()));
  }
  std::vector<HostTensor> weights;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(HostTensor weight, source.Load(name));
    weights.push_back(std::move(weight));
  }
  return EvaluateBoxes(program, boxes, [&](ValueId v) -> const HostTensor* {
    const auto index = static_cast<size_t>(program.value(v).index);
    if (program.value(v).kind == TensorKind::kInput) return &inputs[index];
    return program.value(v).kind == TensorKind::kWeight ? &weights[index] : nullptr;
  });
}

// What the plan of a family computes where its symbols have these values.
absl::StatusOr<Program> FamilyProgramAt(const Work& work, const Units& units) {
  std::vector<Units> points;
  std::vector<std::string> texts;
  for (const FamilyMember& member : work.family->members) {
    ASSIGN_OR_RETURN(Program program, BuildProgram(member.graph, ProgramOptionsFor(work.options)));
    points.push_back(member.units);
    texts.push_back(ToString(program));
  }
  ASSIGN_OR_RETURN(GeneralText text, GeneralText::Of(points, texts));
  ASSIGN_OR_RETURN(std::string at, text.At(units));
  return ParseProgram(at);
}

// Why a family is wrong at a point; nullopt: it is right.
std::optional<std::string> WrongAt(const Resolved& resolved, const Client& client,
                                   const Units& units) {
  absl::StatusOr<Program> family = FamilyProgramAt(*resolved.work, units);
  if (!family.ok()) return StrCat("its program: ", Message(family.status()));
  absl::StatusOr<Graph> graph = ImportGraph(
      {.onnx_model = client.model}, {.dim_bindings = {{"batch", units[0]}, {"seq", units[1]}}});
  if (!graph.ok()) return StrCat("the model itself: ", Message(graph.status()));
  absl::StatusOr<CanonicalGraph> canonical = Canonicalise(*graph);
  absl::StatusOr<Program> own = BuildProgram(canonical->graph, {.absorb_views = false});
  if (!own.ok()) return StrCat("the model's program: ", Message(own.status()));
  const std::vector<HostTensor> inputs = RandomInputs(*own, 3, /*adversarial=*/false);
  absl::StatusOr<std::vector<HostTensor>> wanted =
      ValuesOf(*own, inputs, canonical->weight_names, client.weights);
  absl::StatusOr<std::vector<HostTensor>> got =
      ValuesOf(*family, inputs, resolved.binding.weights, client.weights);
  if (!wanted.ok()) return StrCat("evaluating the model: ", Message(wanted.status()));
  if (!got.ok()) return StrCat("evaluating the family: ", Message(got.status()));
  for (size_t i = 0; i < wanted->size(); ++i) {
    const Difference difference = Compare((*got)[i], (*wanted)[i]);
    if (!difference.ok()) return StrCat("output ", i, ": ", difference.ToString());
  }
  return std::nullopt;
}

using Ranges = std::pair<DimRange, DimRange>;  // of "batch" and "seq"

int64_t Pick(Random* random, int64_t n) {
  return static_cast<int64_t>(random->Next() % static_cast<uint64_t>(n));
}

// The corners, where both dims are equal if they can be, and some points between.
std::set<Units> PointsToTry(const Ranges& ranges, Random* random) {
  const auto& [batch, seq] = ranges;
  auto value = [&](const DimRange& range) {
    return range.least + Pick(random, range.most - range.least + 1);
  };
  std::set<Units> points;
  for (Units& corner : Corners({batch, seq})) points.insert(std::move(corner));
  const int64_t both = std::clamp(seq.least, batch.least, batch.most);
  points.insert({both, std::clamp(both, seq.least, seq.most)});
  for (int i = 0; i < 4; ++i) points.insert({value(batch), value(seq)});
  return points;
}

// Of random models of this name, and ranges of their dims by seed.
void FamiliesTest::ExpectRightOrRefused(const char* name,
                                        const std::function<Ranges(Random*)>& ranges_of) {
  const uint64_t models = Models();
  uint64_t accepted = 0;
  uint64_t refused = 0;
  uint64_t invalid = 0;
  for (uint64_t seed = 1; seed <= models; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed, 5);
    const Client client(ModelOf(name, seed));
    const Ranges ranges = ranges_of(&random);
    const auto& [batch, seq] = ranges;
    invalid += ImportGraph({.onnx_model = client.model},
                           {.dim_bindings = {{"batch", batch.most}, {"seq", seq.most}}})
                       .ok()
                   ? 0
                   : 1;
    absl::StatusOr<std::shared_ptr<const Resolved>> resolved =
        Resolve(client.model, {{"batch", batch}, {"seq", seq}});
    if (!resolved.ok()) {
      ++refused;
      EXPECT_THAT(Message(resolved.status()), HasSubstr("node \"")) << "what is refused has a name";
      continue;
    }
    ++accepted;
    for (const Units& units : PointsToTry(ranges, &random)) {
      const std::optional<std::string> wrong = WrongAt(**resolved, client, units);
      EXPECT_EQ(wrong, std::nullopt) << "batch=" << units[0] << " of " << batch.least << ".."
                                     << batch.most << ", seq=" << units[1] << " of " << seq.least
                                     << ".." << seq.most << ": " << wrong.value_or("");
    }
  }
  RecordProperty("accepted", static_cast<int>(accepted));
  RecordProperty("refused", static_cast<int>(refused));
  std::cout << accepted << " right, " << refused << " refused, " << invalid << " invalid\n";
  EXPECT_GT(accepted, models / 20) << "refusing everything is no answer";
  EXPECT_GT(refused, models / 20) << "the models have nothing that a length decides";
  EXPECT_LT(invalid, models / 10)
      << "a model that does not hold at its largest lengths tests nothing";
}

TEST_F(FamiliesTest, OfRandomLengthArithmeticAreRightOrRefused) {
  ExpectRightOrRefused("lengths", [](Random* random) {
    const int64_t least = 1 + Pick(random, 8);
    const int64_t more = 1 + (Pick(random, 2) == 0 ? Pick(random, 12) : Pick(random, 300));
    return Ranges({.least = 1, .most = 2}, {.least = least, .most = least + more});
  });
}

// Ranges of the two lengths are the same, touch, lie one in the other, or apart.
TEST_F(FamiliesTest, OfTwoLengthsTogetherAreRightOrRefused) {
  ExpectRightOrRefused("two_lengths", [](Random* random) {
    const int64_t least = 1 + Pick(random, 4);
    const DimRange a{.least = least, .most = least + 1 + Pick(random, 8)};
    const int64_t after = a.most + 1;
    const DimRange others[] = {a,
                               {.least = a.most, .most = after + Pick(random, 8)},
                               {.least = 1, .most = a.most + Pick(random, 40)},
                               {.least = after, .most = after + 1 + Pick(random, 300)}};
    const DimRange& b = others[Pick(random, 4)];
    return Pick(random, 2) == 0 ? Ranges(a, b) : Ranges(b, a);
  });
}

}  // namespace
}  // namespace fusion
