// replay_test [--update]: the sources of every kernel of tests/support/sample_graphs.h, compared
// with what they were when tests/replay was last written. A change that means to leave generated
// code alone leaves this test passing. --update writes anew; look at the difference before you
// commit it.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "core/base/files/file.h"
#include "core/base/hash.h"
#include "core/codegen/backend.h"
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "core/plan/planner.h"
#include "tests/support/sample_graphs.h"

namespace fusion {
namespace {

constexpr const char* kDigests = FUSION_REPLAY_DIR "/digests.txt";
constexpr std::string_view kDevices[] = {"generic-x86-64-v2", "generic-avx2", "generic-avx512"};
// Products whose operands are narrow: rounded by fast plans, read as they are stored by others.
constexpr SampleGraph kNarrowGraphs[] = {{"narrow_few_rows", R"(graph "narrow_few_rows" {
  %0 = input "x" : f32[3,80]
  %1 = weight "w" : f32[80,70]
  %2 = weight "b" : f32[70]
  %3 = Gemm(%0, %1, %2) : f32[3,70]  "" @ ""
  %4 = Relu(%3) : f32[3,70]  "" @ ""
  output %4
}
)"},
                                         {"narrow_many_rows", R"(graph "narrow_many_rows" {
  %0 = input "x" : f32[33,80]
  %1 = weight "w" : f32[80,70]
  %2 = MatMul(%0, %1) : f32[33,70]  "" @ ""
  output %2
}
)"},
                                         {"narrow_as_stored", R"(graph "narrow_as_stored" {
  %0 = input "x" : f32[1,80]
  %1 = weight "q" : i8[80,70]
  %2 = weight "s" : f32[70]
  %3 = DequantizeLinear(%1, %2) {axis=1} : f32[80,70]  "" @ ""
  %4 = MatMul(%0, %3) : f32[1,70]  "" @ ""
  output %4
}
)"},
                                         {"narrow_on_both_sides", R"(graph "narrow_on_both_sides" {
  %0 = input "x" : u8[33,80]
  %1 = weight "q" : i8[80,70]
  %2 = weight "s" : f32[70]
  %3 = const "t" : f32[] {0.03125}
  %4 = const "z" : u8[] {128}
  %5 = DequantizeLinear(%0, %3, %4) : f32[33,80]  "" @ ""
  %6 = DequantizeLinear(%1, %2) {axis=1} : f32[80,70]  "" @ ""
  %7 = MatMul(%5, %6) : f32[33,70]  "" @ ""
  output %7
}
)"}};
constexpr std::string_view kNarrowDevices[] = {"generic-x86-64-v2",   "generic-avx2",
                                               "generic-avx512",      "generic-avx512-vnni",
                                               "generic-avx512-bf16", "generic-avx512-amx"};
// Kept as a whole: what generated code looks like.
constexpr std::string_view kWhole[] = {
    "matmul_add_relu generic-avx2 0", "softmax_rows generic-avx512 0",
    "attention generic-avx2 0",       "layer_norm generic-x86-64-v2 0",
    "gather_rows generic-avx2 0",     "narrow_on_both_sides generic-avx512-amx 2"};

struct Kernel {
  Digest schedule;
  Digest source;
  std::string text;  // of the source; empty if it comes from the file
};

struct Record {
  int codegen_version = 0;
  int planner_version = 0;
  std::map<std::string, Kernel> kernels;  // by "graph device number", of fast plans "device/fast"
};

absl::Status AddPlan(const SampleGraph& sample, std::string_view name, Numerics numerics,
                     Record* record) {
  ASSIGN_OR_RETURN(const Graph graph, ParseGraph(sample.text));
  ASSIGN_OR_RETURN(const CanonicalGraph canonical, Canonicalise(graph));
  ASSIGN_OR_RETURN(const std::vector<DeviceSpec> specs, BuiltInSpecs());
  ASSIGN_OR_RETURN(
      const DeviceSpec device,
      ResolveTarget(specs, {.name = std::string(name), .threads = 2}, /*warning=*/nullptr));
  ASSIGN_OR_RETURN(const Backend* backend, FindBackend(device.backend));
  record->codegen_version = backend->version();
  ASSIGN_OR_RETURN(const PlannedModel model,
                   MakePlan(canonical.graph, device, {.numerics = numerics}));
  const std::string place =
      StrCat(sample.name, " ", name, numerics == Numerics::kFast ? "/fast " : " ");
  for (size_t k = 0; k < model.kernels.size(); ++k) {
    const PlannedKernel& kernel = model.kernels[k];
    ASSIGN_OR_RETURN(const KernelSource source,
                     backend->Emit(kernel.schedule, device, StrCat("fk_replay_", k)));
    record->kernels[StrCat(place, k)] = {Sha256(kernel.text), Sha256(source.text), source.text};
  }
  return absl::OkStatus();
}

absl::StatusOr<Record> Generate() {
  Record record{.planner_version = kPlannerVersion};
  for (const SampleGraph& sample : kSampleGraphs) {
    for (std::string_view name : kDevices) {
      RETURN_IF_ERROR(AddPlan(sample, name, Numerics::kFp32Accumulate, &record));
    }
  }
  for (const SampleGraph& sample : kNarrowGraphs) {
    for (std::string_view name : kNarrowDevices) {
      for (Numerics numerics : {Numerics::kFp32Accumulate, Numerics::kFast}) {
        RETURN_IF_ERROR(AddPlan(sample, name, numerics, &record));
      }
    }
  }
  return record;
}

std::string ToText(const Record& record) {
  std::string out = StrCat(
      "# Written by replay_test --update. graph, device, number of the kernel in the plan,\n"
      "# SHA-256 of its schedule, SHA-256 of its source.\ncodegen ",
      record.codegen_version, "\nplanner ", record.planner_version, "\n");
  for (const auto& [name, kernel] : record.kernels) {
    StrAppend(&out, StrCat(name, " ", kernel.schedule.ToHex(), " ", kernel.source.ToHex(), "\n"));
  }
  return out;
}

absl::StatusOr<Record> ReadRecord(std::string_view text) {
  Record record;
  for (std::string_view line : StrSplit(text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    std::vector<std::string_view> words = StrSplit(line, ' ');
    if (words.size() == 2) {
      int version = std::atoi(std::string(words[1]).c_str());
      (words[0] == "codegen" ? record.codegen_version : record.planner_version) = version;
      continue;
    }
    Kernel kernel;
    if (words.size() != 5 || !Digest::FromHex(words[3], &kernel.schedule) ||
        !Digest::FromHex(words[4], &kernel.source)) {
      return InvalidArgument("not a line of ours: ", QuoteShort(line));
    }
    record.kernels[StrCat(words[0], " ", words[1], " ", words[2])] = kernel;
  }
  return record;
}

// "graph device" of a kernel's name.
std::string PlanOf(std::string_view name) { return std::string(name.substr(0, name.rfind(' '))); }

// Which kernels changed and what that asks for; empty if none did.
std::string Changes(const Record& was, const Record& is) {
  std::vector<std::string> sources;  // of equal schedules
  std::vector<std::string> plans;
  std::vector<std::string> additions;  // of graphs and devices that are new to the corpus
  std::set<std::string> planned;
  for (const auto& [name, kernel] : was.kernels) planned.insert(PlanOf(name));
  for (const auto& [name, kernel] : is.kernels) {
    auto old = was.kernels.find(name);
    if (!planned.contains(PlanOf(name))) {
      additions.push_back(name);
    } else if (old == was.kernels.end() || old->second.schedule != kernel.schedule) {
      plans.push_back(name);
    } else if (old->second.source != kernel.source) {
      sources.push_back(name);
    }
  }
  for (const auto& [name, kernel] : was.kernels) {
    if (!is.kernels.contains(name)) plans.push_back(StrCat(name, " (gone)"));
  }
  std::string out;
  if (!sources.empty()) {
    StrAppend(&out, StrCat("the sources of ", sources.size(), " kernels changed while their ",
                           "schedules did not:\n  ", StrJoin(sources, "\n  "), "\n"));
    if (was.codegen_version == is.codegen_version) {
      StrAppend(&out, StrCat("if that is meant, raise the backend's version(), now ",
                             is.codegen_version, ": stored kernels are found by it\n"));
    }
  }
  if (!plans.empty()) {
    StrAppend(&out, StrCat("the schedules of ", plans.size(), " kernels changed:\n  ",
                           StrJoin(plans, "\n  "), "\n"));
    if (was.planner_version == is.planner_version) {
      StrAppend(&out, StrCat("if that is meant, raise kPlannerVersion, now ", is.planner_version,
                             ": stored plans are found by it\n"));
    }
  }
  if (!additions.empty()) {
    StrAppend(&out, StrCat(additions.size(), " kernels are new, nothing is stored of their graphs",
                           ":\n  ", StrJoin(additions, "\n  "), "\n"));
  }
  if (out.empty() &&
      (was.codegen_version != is.codegen_version || was.planner_version != is.planner_version)) {
    out = "only a version changed\n";
  }
  return out;
}

std::string WholePath(std::string_view name) {
  std::vector<std::string_view> words = StrSplit(name, ' ');
  return StrCat(FUSION_REPLAY_DIR "/sources/", words[0], ".", words[1], ".cc");
}

const absl::StatusOr<Record>& Generated() {
  static const absl::StatusOr<Record> generated = Generate();
  return generated;
}

TEST(Replay, SourcesAreWhatTheyWere) {
  ASSERT_TRUE(Generated().ok()) << Generated().status();
  absl::StatusOr<std::string> text = ReadFile(kDigests, int64_t{1} << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  absl::StatusOr<Record> was = ReadRecord(*text);
  ASSERT_TRUE(was.ok()) << was.status();
  std::string changes = Changes(*was, *Generated());
  EXPECT_TRUE(changes.empty()) << changes << "then run replay_test --update";
}

TEST(Replay, WholeSourcesAreWhatTheyWere) {
  ASSERT_TRUE(Generated().ok()) << Generated().status();
  for (std::string_view name : kWhole) {
    auto kernel = Generated()->kernels.find(std::string(name));
    ASSERT_NE(kernel, Generated()->kernels.end()) << name;
    absl::StatusOr<std::string> source = ReadFile(WholePath(name), int64_t{1} << 20);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_TRUE(*source == kernel->second.text)
        << name << " changed; see it by replay_test --update and git diff tests/replay";
  }
}

TEST(Replay, AChangedSourceAsksForAVersion) {
  Kernel old{Sha256("schedule"), Sha256("source"), ""};
  Kernel now{Sha256("schedule"), Sha256("another source"), ""};
  Record was{.codegen_version = 7, .planner_version = 3, .kernels = {{"g d 0", old}}};
  Record is{.codegen_version = 7, .planner_version = 3, .kernels = {{"g d 0", now}}};
  EXPECT_EQ(Changes(was, was), "");
  EXPECT_EQ(ToText(*ReadRecord(ToText(was))), ToText(was));
  EXPECT_NE(Changes(was, is).find("raise the backend's version(), now 7"), std::string::npos);
  is.codegen_version = 8;
  EXPECT_EQ(Changes(was, is).find("raise"), std::string::npos);
  EXPECT_NE(Changes(was, is).find("\n  g d 0\n"), std::string::npos);
  is.kernels["new d 0"] = now;
  EXPECT_EQ(Changes(was, is).find("raise"), std::string::npos);
  EXPECT_NE(Changes(was, is).find("1 kernels are new"), std::string::npos);
  EXPECT_NE(Changes(was, is).find("\n  new d 0\n"), std::string::npos);
  is.kernels.erase("new d 0");
  is.kernels["g d 1"] = now;  // the plan of a graph that was there has one kernel more
  EXPECT_NE(Changes(was, is).find("raise kPlannerVersion, now 3"), std::string::npos);
  is.kernels.erase("g d 1");
  is.kernels["g d 0"].schedule = Sha256("another schedule");
  EXPECT_NE(Changes(was, is).find("raise kPlannerVersion, now 3"), std::string::npos);
}

absl::Status Update() {
  RETURN_IF_ERROR(Generated().status());
  absl::StatusOr<std::string> text = ReadFile(kDigests, int64_t{1} << 20);
  if (text.ok()) {
    ASSIGN_OR_RETURN(Record was, ReadRecord(*text));
    fputs(Changes(was, *Generated()).c_str(), stdout);
  }
  RETURN_IF_ERROR(WriteFile(kDigests, ToText(*Generated())));
  for (std::string_view name : kWhole) {
    auto kernel = Generated()->kernels.find(std::string(name));
    if (kernel == Generated()->kernels.end()) return NotFound("kernel ", name);
    RETURN_IF_ERROR(WriteFile(WholePath(name), kernel->second.text));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 1) return RUN_ALL_TESTS();
  if (argc != 2 || std::strcmp(argv[1], "--update") != 0) {
    fprintf(stderr, "usage: replay_test [--update]\n");
    return 2;
  }
  absl::Status written = fusion::Update();
  if (!written.ok()) fprintf(stderr, "replay_test: %s\n", written.ToString().c_str());
  return written.ok() ? 0 : 1;
}
