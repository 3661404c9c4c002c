// Properties of generated kernel sources that hold for every kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "core/base/files/file.h"
#include "core/codegen/backend.h"
#include "core/compile/command.h"
#include "core/compile/toolchain.h"
#include "core/graph/build/builder.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/import/import.h"
#include "core/onnx/reference_weights.h"
#include "core/plan/planner.h"
#include "tests/models/models.h"
#include "tests/support/kernel_harness.h"
#include "tests/support/random_graph.h"

namespace fusion {
namespace {

constexpr const char* kDevices[] = {"generic-x86-64-v2", "generic-avx2", "generic-avx512"};

std::vector<std::string> Sources(const Graph& graph, const DeviceSpec& device,
                                 const PlanOptions& options = {}, const EmitOptions& emit = {}) {
  auto model = MakePlan(graph, device, options);
  FUSION_CHECK(model.ok(), Message(model.status()));
  const Backend* cpu = FindBackend("cpu").value();
  std::vector<std::string> sources;
  for (const PlannedKernel& kernel : model->kernels) {
    auto source = cpu->Emit(kernel.schedule, device, "fk_test", emit);
    FUSION_CHECK(source.ok(), Message(source.status()));
    EXPECT_EQ(source->symbol, "fk_test");
    sources.push_back(source->text);
  }
  return sources;
}

// A BERT layer of the structure of the real one, small enough for its weights not to matter.
const Graph& BertLayer() {
  static const Graph graph = [] {
    const ModelSpec* spec = FindModel("bert_layer");
    FUSION_CHECK(spec != nullptr, "the model generator knows bert_layer");
    ModelParams params = spec->defaults;
    params.seq = 40;
    params.hidden = 96;
    params.heads = 4;
    params.kv_heads = 4;
    params.ff = 200;
    GeneratedModel model = GenerateModel(*spec, params).value();
    Graph imported = ImportOnnx(ReferenceWeights(model.model).value()).value();
    return Canonicalise(imported).value().graph;
  }();
  return graph;
}

// Dims of one kernel whose names begin alike: d0, d01, d02.
Graph ManyDims() {
  return ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[32,56]
  %1 = const "half" : f32[] {0x1p-1}
  %2 = Add(%0, %1) : f32[32,56]  "" @ ""
  %3 = Expand(%2) {shape=[2, 32, 56]} : f32[2,32,56]  "" @ ""
  %4 = Sigmoid(%3) : f32[2,32,56]  "" @ ""
  output %4
  output %3
  output %2
}
)")
      .value();
}

// Printable, nothing included, no trigraph, no comment that a backslash makes swallow the next
// line.
void ExpectPlainText(const std::string& source) {
  for (std::string_view line : StrSplit(source, '\n')) {
    bool comment = line.find("//") != std::string_view::npos;
    EXPECT_FALSE(comment && line.ends_with('\\')) << line;
  }
  EXPECT_EQ(source.find("?"
                        "?"),
            std::string::npos);
  for (char c : source) {
    ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << "byte " << static_cast<int>(c);
  }
  for (size_t at = 0; (at = source.find("#include", at)) != std::string::npos; ++at) {
    ADD_FAILURE() << source.substr(at, 60);
  }
}

TEST(GeneratedSource, IsDeterministicAndPlainText) {
  for (const char* name : kDevices) {
    DeviceSpec device = DeviceNamed(name, 2);
    std::vector<std::string> once = Sources(BertLayer(), device);
    EXPECT_GE(once.size(), 5u);
    EXPECT_EQ(Sources(BertLayer(), device), once);
    for (const std::string& source : once) ExpectPlainText(source);
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Graph graph = Canonicalise(RandomGraph(seed)).value().graph;
      std::vector<std::string> sources = Sources(graph, device);
      EXPECT_EQ(Sources(graph, device), sources) << "seed " << seed;
      for (const std::string& source : sources) ExpectPlainText(source);
    }
  }
}

// The same graph, every name of which is `name` and a number.
Graph Named(const std::string& name) {
  GraphBuilder b(name);
  TensorId x = b.AddInput(name + "0", {DType::kF32, Shape{9, 20}});
  TensorId w = b.AddWeight(name + "1", {DType::kF32, Shape{20, 33}});
  TensorId mask = b.AddInput(name + "2", {DType::kBool, Shape{9, 33}});
  HostTensor low(DType::kF32, {});
  low.SetDouble(0, -1e9);
  TensorId constant = b.AddConstant(name + "3", low, true);
  TensorId mm = b.AddNode("MatMul", {x, w}, {}, name + "4", name + "5").value();
  TensorId where = b.AddNode("Where", {mask, mm, constant}, {}, name + "6", name + "7").value();
  TensorId y =
      b.AddNode("Softmax", {where}, {{"axis", int64_t{-1}}}, name + "8", name + "9").value();
  b.MarkOutput(y);
  return b.Build().value();
}

TEST(GeneratedSource, HoldsNoNameOfTheClient) {
  const std::string kNames[] = {"evil\"); system(\"id\"); //",
                                "evil*/ int evil; /*",
                                "evil\\\n",
                                "evil?"
                                "?/\n",
                                "evil\n#error ",
                                "evil\xff\xfe",
                                "%s%n",
                                std::string("ev\0il", 5),
                                "$T$V$N"};
  for (FusionMode mode : {FusionMode::kFused, FusionMode::kOpByOp}) {
    for (const char* device : kDevices) {
      std::vector<std::string> plain = Sources(Named("n"), DeviceNamed(device), {.fusion = mode});
      for (const std::string& name : kNames) {
        // Not even of a graph that nobody made canonical.
        EXPECT_EQ(Sources(Named(name), DeviceNamed(device), {.fusion = mode}), plain) << name;
      }
    }
  }
}

TEST(GeneratedSource, OfAConcatGrowsWithItsInputsNotTheirSquare) {
  auto size = [](int inputs) {
    GraphBuilder b;
    std::vector<TensorId> pieces;
    for (int i = 0; i < inputs; ++i) {
      pieces.push_back(b.AddInput(StrCat("x", i), {DType::kF32, {8, 16}}));
    }
    AttrMap attrs;
    attrs.Set("axis", int64_t{1});
    b.MarkOutput(b.AddNode("Concat", pieces, attrs).value());
    size_t bytes = 0;
    for (const std::string& source : Sources(b.Build().value(), DeviceNamed("generic-avx2"))) {
      bytes += source.size();
    }
    return static_cast<double>(bytes);
  };
  double prelude = size(1);
  EXPECT_LT(size(128) - prelude, 3 * (size(64) - prelude));
}

TEST(GeneratedSource, SaysWhatItComputes) {
  std::vector<std::string> sources = Sources(Named("n"), DeviceNamed("generic-avx2"));
  EXPECT_TRUE(std::any_of(sources.begin(), sources.end(), [](const std::string& s) {
    return s.find("MatMul+Where+") != std::string::npos;
  }));
}

// Compiles with every warning an error instead of the flag that silences them.
class Warnings : public ::testing::TestWithParam<const char*> {};

TEST_P(Warnings, AreNone) {
  std::string compiler = GetParam();
  if (!std::filesystem::exists(compiler)) GTEST_SKIP() << compiler << " is not installed";
  auto dir = TempDir::Create(::testing::TempDir(), "warnings-");
  ASSERT_TRUE(dir.ok()) << dir.status();
  std::unique_ptr<CommandRunner> runner = MakeProcessRunner(FUSION_EXEC);
  ToolchainOptions options;
  options.compiler = compiler;
  options.scratch_dir = dir->path();
  auto toolchain = Toolchain::Open(options, *runner);
  ASSERT_TRUE(toolchain.ok()) << toolchain.status();
  for (const char* name : kDevices) {
    DeviceSpec device = DeviceNamed(name, 2);
    Command command{.argv = toolchain->CompileArgv(device.isa, Numerics::kFp32Accumulate),
                    .dir = dir->path()};
    auto silence = std::find(command.argv.begin(), command.argv.end(), "-w");
    ASSERT_NE(silence, command.argv.end());
    *silence = "-Wall";
    // A kernel need not use every function in front of it.
    // A variable that hides another one would be of another dim of the same name.
    for (const char* flag :
         {"-Wextra", "-Wshadow", "-Werror", "-Wno-unused-function", "-fsyntax-only"}) {
      command.argv.emplace_back(flag);
    }
    std::vector<std::string> sources = Sources(BertLayer(), device);
    for (std::string& source : Sources(ManyDims(), device)) sources.push_back(std::move(source));
    for (const std::string& source : sources) {
      ASSERT_TRUE(Toolchain::WriteSource(dir->path(), source).ok());
      auto result = runner->Run(command);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE(result->end == CommandEnd::kExited && result->exit_code == 0)
          << name << ": " << result->output << "\n"
          << source;
      if (::testing::Test::HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compilers, Warnings, ::testing::Values("/usr/bin/g++", "/usr/bin/clang++"),
                         [](const auto& param) {
                           return std::string(param.param).find("clang") == std::string::npos
                                      ? "gcc"
                                      : "clang";
                         });

// A matrix by a vector has few accumulators: it keeps several sums, unless bits must be equal.
TEST(GeneratedSources, FewAccumulatorsKeepSumsApartButInBitwisePlans) {
  auto product = [](int64_t rows, int64_t depth) {
    return ParseGraph(StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[", rows, ",", depth,
                             "]\n  %1 = weight \"w\" : f32[", depth,
                             ",64]\n  %2 = MatMul(%0, %1) : f32[", rows,
                             ",64]  \"\" @ \"\"\n  output %2\n}\n"))
        .value();
  };
  auto all_of = [](const Graph& graph, const DeviceSpec& device, const PlanOptions& options) {
    std::string text;
    for (const std::string& source : Sources(graph, device, options)) text += source;
    return text;
  };
  PlanOptions bitwise;
  bitwise.numerics = Numerics::kBitwise;
  const std::regex several("mma<F32, 1, [0-9]+, (true|false), (true|false), [248]>");
  for (const char* name : kDevices) {
    const DeviceSpec device = DeviceNamed(name, 1);
    EXPECT_TRUE(std::regex_search(all_of(product(1, 256), device, {}), several)) << name;
    EXPECT_FALSE(std::regex_search(all_of(product(1, 256), device, bitwise), several)) << name;
    // Of no rows there is nothing to keep apart, however long the sum is.
    EXPECT_EQ(all_of(product(0, 5000), device, {}).find(", 16>("), std::string::npos) << name;
  }
}

// Rows that are read twice come from memory once: while they are read again the next step's are
// asked for, unless all of it lies near, or a check wants no address but those it knows.
TEST(GeneratedSources, RowsOfTheNextStepAreAskedFor) {
  auto norm = [](int64_t rows) {
    return ParseGraph(StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[", rows,
                             ",1024]\n  %1 = weight \"w\" : f32[1024]\n"
                             "  %2 = RMSNormalization(%0, %1) : f32[",
                             rows, ",1024]  \"\" @ \"\"\n  output %2\n}\n"))
        .value();
  };
  // As many elements further on as the loop makes rows in a step.
  const std::regex ahead(R"(fetch_behind\(p0 \+ d0 \* 1024 \+ d[0-9]+ \+ ([0-9]+)\))");
  const std::regex step("d0_1 \\+= ([0-9]+)");
  int in_steps = 0;
  for (const char* name : kDevices) {
    const DeviceSpec device = DeviceNamed(name, 1);
    const std::string large = Sources(norm(8192), device)[0];
    std::smatch rows;
    std::smatch elements;
    ASSERT_TRUE(std::regex_search(large, elements, ahead)) << name << "\n" << large;
    ASSERT_TRUE(std::regex_search(large, rows, step)) << name << "\n" << large;
    EXPECT_EQ(std::stoll(elements[1]), 1024 * std::stoll(rows[1])) << name;
    // 256 KiB of private cache have the rows and the results of 16, of 60 only one of the two.
    const std::string small = Sources(norm(16), device)[0];
    EXPECT_EQ(small.find("fetch_behind"), std::string::npos) << name;
    const std::string larger = Sources(norm(60), device)[0];
    if (std::regex_search(larger, step)) {  // else a task is one step
      EXPECT_NE(larger.find("fetch_behind"), std::string::npos) << name;
      ++in_steps;
    }
    const std::string guarded = Sources(norm(8192), device, {}, {.guard = true})[0];
    EXPECT_EQ(guarded.find("fetch_behind"), std::string::npos) << name;
  }
  EXPECT_GE(in_steps, 1);
  // What is added to a product waits for it.
  const Graph residual = ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[4000,64]
  %1 = weight "w" : f32[64,1000]
  %2 = input "y" : f32[4000,1000]
  %3 = MatMul(%0, %1) : f32[4000,1000]  "" @ ""
  %4 = Add(%3, %2) : f32[4000,1000]  "" @ ""
  output %4
}
)")
                             .value();
  const std::regex behind(R"(fetch_behind\(p2 \+ m \* 1000 \+ n \+ ([0-9]+)\))");
  const std::regex rows_of_block("m1 \\+= ([0-9]+)");
  for (const char* name : kDevices) {
    std::string text;
    for (const std::string& source : Sources(residual, DeviceNamed(name, 1))) text += source;
    std::smatch rows;
    std::smatch elements;
    ASSERT_TRUE(std::regex_search(text, elements, behind)) << name << "\n" << text;
    ASSERT_TRUE(std::regex_search(text, rows, rows_of_block)) << name << "\n" << text;
    EXPECT_EQ(std::stoll(elements[1]), 1000 * std::stoll(rows[1])) << name;
  }
}

// Tiles are released wherever a kernel that has them returns from its tasks; guards know none.
TEST(GeneratedSources, TilesAreReleasedBeforeAKernelReturns) {
  const DeviceSpec device = DeviceNamed("generic-avx512-amx", 1);
  const Graph graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : f32[45,149]
  %1 = weight "w" : f32[149,83]
  %2 = MatMul(%0, %1) : f32[45,83]  "" @ ""
  output %2
}
)")
                          .value();
  PlanOptions fast;
  fast.numerics = Numerics::kFast;
  auto count = [](const std::string& text, std::string_view word) {
    int n = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
    return n;
  };
  const std::string text = Sources(graph, device, fast).back();
  EXPECT_GT(count(text, " mma_tiles<TilesBF16, "), 0) << text;
  EXPECT_EQ(count(text, "leave_tiles();\n    return FUSION_KERNEL_OK;"),
            count(text, "return FUSION_KERNEL_OK;"));
  EXPECT_EQ(count(Sources(graph, device).back(), "leave_tiles"), 0);
  EXPECT_EQ(count(Sources(graph, device, fast, {.guard = true}).back(), "tile"), 0);
}

// The parts that blocks of rows ask for are the next panel, whatever its sum walks.
TEST(GeneratedSources, PartsOfAPanelOfPacksAreAllOfIt) {
  const DeviceSpec device = DeviceNamed("generic-avx512-vnni", 1);
  const Graph graph = ParseGraph(R"(graph "g" {
  %0 = input "x" : u8[1,64,30,30]
  %1 = weight "w" : i8[64,64,3,3]
  %2 = const "z" : u8[] {7}
  %3 = ConvInteger(%0, %1, %2) : i32[1,64,28,28]  "" @ ""
  output %3
}
)")
                          .value();
  std::string text;
  for (const std::string& source : Sources(graph, device)) text += source;
  const std::regex parts(R"(ahead_p[0-9]+_0 \+= ([0-9]+);)");
  const std::regex part_of_pack(R"(Ahead<[0-9]+>\{ahead_p[0-9]+_0, ([0-9]+)\})");
  std::smatch block, pack;
  ASSERT_TRUE(std::regex_search(text, block, parts)) << text;
  ASSERT_TRUE(std::regex_search(text, pack, part_of_pack)) << text;
  // 3 * 3 * 64 / 4 packs, in each block of rows.
  const int64_t all = 144 * std::stoll(pack[1]);
  EXPECT_LE(std::stoll(block[1]), all);
  EXPECT_GT(std::stoll(block[1]), all - 144);
}

// Each block of rows asks for its part of the panel behind the one that it multiplies by.
TEST(GeneratedSources, TheNextPanelIsAskedForInPartsWhileOneIsMultiplied) {
  auto product = [](int64_t rows) {
    return ParseGraph(StrCat("graph \"g\" {\n  %0 = input \"x\" : f32[", rows,
                             ",1536]\n  %1 = weight \"w\" : f32[1536,512]\n"
                             "  %2 = MatMul(%0, %1) : f32[",
                             rows, ",512]  \"\" @ \"\"\n  output %2\n}\n"))
        .value();
  };
  const std::regex parts(R"(Ahead<[0-9]+>\{ahead_p1_0, ([0-9]+)\})");
  const std::regex panel("n1 \\+= ([0-9]+)");
  const std::regex rows_of_block("m1 \\+= ([0-9]+)");
  for (const char* name : kDevices) {
    const DeviceSpec device = DeviceNamed(name, 1);
    const std::string text = Sources(product(40), device)[1];
    std::smatch bytes, columns, rows;
    ASSERT_TRUE(std::regex_search(text, bytes, parts)) << name << "\n" << text;
    ASSERT_TRUE(std::regex_search(text, columns, panel)) << name << "\n" << text;
    ASSERT_TRUE(std::regex_search(text, rows, rows_of_block)) << name << "\n" << text;
    const int64_t blocks = (40 + std::stoll(rows[1]) - 1) / std::stoll(rows[1]);
    EXPECT_GE(std::stoll(bytes[1]) * blocks, 4 * std::stoll(columns[1])) << name;
    EXPECT_LT((std::stoll(bytes[1]) - 1) * blocks, 4 * std::stoll(columns[1])) << name;
    // One block of rows reads each panel once; and a check wants no address but those it knows.
    EXPECT_EQ(Sources(product(2), device)[1].find(">{ahead_"), std::string::npos) << name;
    EXPECT_EQ(Sources(product(40), device, {}, {.guard = true})[1].find(">{ahead_"),
              std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace fusion
