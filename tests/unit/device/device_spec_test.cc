#include "core/device/device_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/check.h"
#include "core/base/files/file.h"

namespace fusion {
namespace {

TEST(DeviceSpec, BuiltInSpecsParseAndCoverEveryIsa) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok()) << specs.status();
  for (Isa isa : kIsas) {
    Target target{.isa = std::string(IsaName(isa)), .threads = 3};
    std::string warning;
    auto spec = ResolveTarget(*specs, target, &warning);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->isa, isa);
    EXPECT_EQ(spec->threads, 3);
    EXPECT_FALSE(warning.empty());
    EXPECT_GT(spec->OnChipBytes(), 0);
    EXPECT_EQ(spec->SharedLevel().name, "l3");
  }
}

// ---- the files ----

using Json = nlohmann::json;

DeviceSpec Named(std::string_view name) {
  auto spec = ResolveTarget(BuiltInSpecs().value(), {.name = std::string(name)}, nullptr);
  FUSION_CHECK(spec.ok(), Message(spec.status()));
  return *std::move(spec);
}

TEST(DeviceSpec, TheAcceleratorsAreThere) {
  for (const char* name : {"a100", "ascend_910", "ascend_910b", "h100", "h200"}) {
    DeviceSpec spec = Named(name);
    EXPECT_EQ(spec.name, name);
    EXPECT_NE(spec.kind, "CPU");
    EXPECT_TRUE(spec.explicit_memory);
    EXPECT_TRUE(spec.fixed_units);
  }
}

class SpecOf : public testing::TestWithParam<std::string> {};

TEST_P(SpecOf, NumbersAreSane) {
  DeviceSpec spec = Named(GetParam());
  EXPECT_GE(spec.threads, 1);
  EXPECT_GT(spec.flops_per_s, 1e9);
  EXPECT_LT(spec.flops_per_s * spec.threads, 1e15);
  EXPECT_GT(spec.scalar_ops_per_s, 1e9);
  for (const OtherType& other : spec.types_of_isas) {
    EXPECT_NE(other.type, DType::kF32) << "f32 is product_rate and scalar_rate";
    EXPECT_LT(other.unit.rates.flops_per_s * spec.threads, 1e16);
    // Four tiles of 16 rows and 16 columns hold the sums of a block.
    for (const RegisterBlock& block : other.unit.blocks) {
      EXPECT_LE(block.m, 32);
      EXPECT_LE(block.n, block.m > 16 ? 32 : 64);
    }
  }
  for (double part : {spec.product_efficiency, spec.overlap, spec.least_rate}) {
    EXPECT_GT(part, 0);
    EXPECT_LE(part, 1);
  }
  EXPECT_GT(spec.launch_s, 1e-7);
  EXPECT_LT(spec.launch_s, 1e-4);
  EXPECT_LT(spec.task_s, spec.launch_s);
  EXPECT_GT(spec.barrier_s, 1e-7);
  EXPECT_LE(spec.barrier_s, spec.launch_s) << "a further phase is no more than another launch";
  for (const MemoryLevel& level : spec.levels) {
    EXPECT_GT(level.bytes_per_s, 0) << level.name;
    EXPECT_GE(level.total_bytes_per_s, level.bytes_per_s) << level.name;
    EXPECT_GT(level.headroom, 0) << level.name;
    EXPECT_LE(level.headroom, 1) << level.name;
  }
  EXPECT_TRUE(spec.levels.back().shared);
  // Farther levels that all share are larger and slower.
  for (size_t i = 1; i < spec.levels.size(); ++i) {
    const MemoryLevel& near = spec.levels[i - 1];
    const MemoryLevel& far = spec.levels[i];
    if (!near.shared) continue;
    EXPECT_GE(near.total_bytes_per_s, far.total_bytes_per_s) << far.name;
    EXPECT_TRUE(far.bytes == 0 || far.bytes > near.bytes) << far.name;
  }
  EXPECT_GT(spec.OnChipBytes(), 0);
  EXPECT_GT(spec.BlockRate(DType::kF32, spec.blocks[0].m, spec.blocks[0].n), 0.75);
}

TEST_P(SpecOf, BlocksFitTheirAccumulators) {
  DeviceSpec spec = Named(GetParam());
  for (const RegisterBlock& block : spec.blocks) {
    if (!spec.explicit_memory) continue;
    EXPECT_LE(int64_t{4} * block.m * block.n, spec.level(spec.accumulator_level).UsableBytes());
    int64_t slices = int64_t{4} * (block.m + block.n) * spec.operand_slice * spec.operand_stages;
    EXPECT_LE(slices, spec.level(spec.operand_level).UsableBytes());
  }
}

TEST_P(SpecOf, TheKeyTellsItFromAllOthers) {
  DeviceSpec spec = Named(GetParam());
  int equal = 0;
  std::vector<DeviceSpec> all = BuiltInSpecs().value();
  for (const DeviceSpec& other : all) {
    equal += Named(other.name).KeyText() == spec.KeyText();
  }
  EXPECT_EQ(equal, 1);
}

// Calls `visit` for every number of a spec with the path to it.
void VisitNumbers(const Json& json, const std::string& path,
                  const std::function<void(const Json& holder, const std::string& path)>& visit) {
  if (json.is_object() && json.contains("value")) return visit(json, path);
  if (json.is_number()) return visit(Json(), path);
  if (!json.is_structured()) return;
  for (const auto& [key, value] : json.items()) VisitNumbers(value, StrCat(path, "/", key), visit);
}

TEST_P(SpecOf, EveryNumberHasAUnitAndASource) {
  std::string file = GetParam();
  std::replace(file.begin(), file.end(), '-', '_');
  std::string path = StrCat(FUSION_SPEC_DIR, "/", file, ".json");
  absl::StatusOr<std::string> text = ReadFile(path, 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  int numbers = 0;
  VisitNumbers(Json::parse(*text), "", [&](const Json& holder, const std::string& at) {
    // Shapes of the backend and numbers of the vendor's catalogue are no measurements.
    if (at.find("/register_blocks/") != std::string::npos || at.starts_with("/models/")) return;
    ++numbers;
    ASSERT_TRUE(holder.is_object()) << at << " is a bare number";
    EXPECT_GT(holder.value("source", "").size(), 2U) << at;
    EXPECT_FALSE(holder.value("unit", "").empty()) << at;
  });
  EXPECT_GT(numbers, 30);
}

std::vector<std::string> SpecNames() {
  std::vector<std::string> names;
  absl::StatusOr<std::vector<DeviceSpec>> specs = BuiltInSpecs();
  if (!specs.ok()) return names;
  for (const DeviceSpec& spec : *specs) names.push_back(spec.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(EverySpec, SpecOf, testing::ValuesIn(SpecNames()), [](const auto& param) {
  std::string name = param.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(DeviceSpec, AFixedDeviceHasItsUnits) {
  std::vector<DeviceSpec> specs = BuiltInSpecs().value();
  EXPECT_EQ(ResolveTarget(specs, {.name = "h100", .threads = 0}, nullptr)->threads, 132);
  EXPECT_EQ(ResolveTarget(specs, {.name = "h100", .threads = 66}, nullptr)->threads, 66);
  EXPECT_EQ(Message(ResolveTarget(specs, {.name = "h100", .threads = 133}, nullptr).status()),
            "target.threads: 133; h100 has 132 SMs");
  EXPECT_EQ(ResolveTarget(specs, {.name = "generic-avx2", .threads = 0}, nullptr)->threads, 1);
}

TEST(DeviceSpec, DashesAndUnderscoresNameTheSame) {
  EXPECT_EQ(Named("ascend-910b").name, "ascend_910b");
  EXPECT_EQ(Named("generic_avx2").name, "generic-avx2");
}

TEST(DeviceSpec, AWrongNameListsTheRightOnes) {
  auto wrong = ResolveTarget(BuiltInSpecs().value(), {.name = "h300"}, nullptr);
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kUnimplemented);
  for (const std::string& name : SpecNames()) {
    EXPECT_THAT(std::string(Message(wrong.status())), testing::HasSubstr(name));
  }
}

TEST(DeviceSpec, LevelsOfTilesMustExist) {
  absl::StatusOr<std::string> text = ReadFile(StrCat(FUSION_SPEC_DIR, "/h100.json"), 1 << 20);
  ASSERT_TRUE(text.ok());
  Json json = Json::parse(*text);
  json["staged_level"] = "l2";
  EXPECT_EQ(Message(ParseDeviceSpec(json.dump(), "x.json").status()),
            "device spec x.json: \"l2\" is no private level");
  json = Json::parse(*text);
  json["exchange_level"] = "shared";
  EXPECT_EQ(Message(ParseDeviceSpec(json.dump(), "x.json").status()),
            "device spec x.json: exchange_level: \"shared\" is no shared level");
  json = Json::parse(*text);
  json["launch"].erase("source");
  EXPECT_EQ(Message(ParseDeviceSpec(json.dump(), "x.json").status()),
            "device spec x.json: launch: expected {\"value\": number, \"unit\": \"s\", "
            "\"source\": text}");
}

TEST(DeviceSpec, UnitsOfOtherTypesAreChecked) {
  absl::StatusOr<std::string> text =
      ReadFile(StrCat(FUSION_SPEC_DIR, "/generic_avx512_amx.json"), 1 << 20);
  ASSERT_TRUE(text.ok());
  const Json good = Json::parse(*text);
  auto error = [&](auto change) {
    Json json = good;
    change(json["other_types"].back());
    return std::string(Message(ParseDeviceSpec(json.dump(), "x.json").status()));
  };
  ASSERT_TRUE(ParseDeviceSpec(good.dump(), "x.json").ok());
  EXPECT_EQ(error([](Json& last) { last.erase("isa"); }),
            "device spec x.json other_types[3]: field \"isa\" is missing");
  EXPECT_THAT(error([](Json& last) { last["isa"] = "avx9"; }),
              testing::HasSubstr("ISA \"avx9\" is not supported"));
  EXPECT_EQ(error([](Json& last) { last["isa"] = "avx2"; }),
            "device spec x.json other_types[3]: isa: the vectors of avx2 are not as wide as those "
            "of the spec");
  EXPECT_EQ(error([](Json& last) { last["isa"] = "avx512-vnni"; }),
            "device spec x.json other_types[3]: isa: avx512-vnni of i8 stands behind avx512-vnni; "
            "expected ascending levels");
  EXPECT_EQ(error([](Json& last) { last["register_blocks"] = Json::array(); }),
            "device spec x.json other_types[3]: register_blocks: expected one at least");
  EXPECT_EQ(error([](Json& last) { last.erase("register_blocks"); }),
            "device spec x.json other_types[3]: field \"register_blocks\" is missing");
  EXPECT_EQ(error([](Json& last) { last["row_grain"]["value"] = 0; }),
            "device spec x.json other_types[3]: row_grain: 0");
  EXPECT_EQ(error([](Json& last) { last.erase("row_grain"); }),
            "device spec x.json other_types[3]: field \"row_grain\" is missing");
  EXPECT_EQ(error([](Json& last) { last["register_blocks"][0][1] = 1024; }),
            "device spec x.json other_types[3] register_blocks[0]: register block 32x1024");
  Json low = good;
  low["isa"] = "avx512-bf16";
  EXPECT_EQ(Message(ParseDeviceSpec(low.dump(), "x.json").status()),
            "device spec x.json other_types[2]: isa: avx512-amx is above that of the spec");
}

TEST(DeviceSpec, TheTargetKnowsItsCachesBetter) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok());
  Target target{.vendor = "GenuineIntel",
                .family = 6,
                .model = 85,
                .isa = "avx512",
                .l2_bytes = 2 << 20,
                .threads = 2};
  auto spec = ResolveTarget(*specs, target, nullptr);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "intel-skylake-server");
  EXPECT_EQ(spec->level("l2").bytes, 2 << 20);
  // A part of a machine says how large the cache of the whole is.
  target.l3_bytes = int64_t{480} << 20;
  EXPECT_EQ(ResolveTarget(*specs, target, nullptr)->level("l3").bytes, int64_t{64} << 20);
  target.l3_bytes = int64_t{40} << 20;
  EXPECT_EQ(ResolveTarget(*specs, target, nullptr)->level("l3").bytes, int64_t{40} << 20);
  Target other = target;
  other.l2_bytes = 1 << 20;
  EXPECT_NE(spec->KeyText(), ResolveTarget(*specs, other, nullptr)->KeyText());
}

// Sapphire Rapids has the instructions for bf16, which are slower there than those for f32: nothing
// is rounded for their sake. Asked for by level, they are a generic CPU's.
TEST(DeviceSpec, ARateSaysWhatInstructionsAreFor) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok());
  std::string warning;
  auto spec = ResolveTarget(
      *specs, {.vendor = "GenuineIntel", .family = 6, .model = 143, .isa = "avx512-bf16"},
      &warning);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->name, "intel-sapphire-rapids");
  EXPECT_EQ(spec->isa, Isa::kAvx512Bf16);
  EXPECT_TRUE(spec->other_types.contains(DType::kI8));
  EXPECT_FALSE(spec->other_types.contains(DType::kBF16));
  EXPECT_EQ(warning, "");
  EXPECT_EQ(spec->BlocksOf(DType::kI8).size(), spec->blocks.size());
  // Where the system lets its process use tiles, they multiply both.
  auto tiles = ResolveTarget(
      *specs, {.vendor = "GenuineIntel", .family = 6, .model = 143, .isa = "avx512-amx"}, &warning);
  ASSERT_TRUE(tiles.ok()) << tiles.status();
  EXPECT_EQ(tiles->isa, Isa::kAvx512Amx);
  for (DType type : {DType::kI8, DType::kBF16}) {
    EXPECT_GT(tiles->Rates(type).flops_per_s, tiles->flops_per_s);
    EXPECT_EQ(tiles->BlocksOf(type)[0].m, 32);
    EXPECT_EQ(tiles->RowGrainOf(type), 16);
    EXPECT_EQ(tiles->BlockRate(type, 32, 32), 1);
    EXPECT_EQ(tiles->BlockRate(type, 16, 32), 0.5);
    EXPECT_EQ(tiles->LeastSumOf(type), type == DType::kI8 ? 64 : 32);
  }
  EXPECT_EQ(tiles->BlocksOf(DType::kF32)[0].m, spec->blocks[0].m);
  EXPECT_GT(tiles->Rates(DType::kI8).flops_per_s, spec->Rates(DType::kI8).flops_per_s);
  EXPECT_NE(tiles->KeyText(), spec->KeyText());
  // The same CPU by its name, for a process that has no leave.
  auto named =
      ResolveTarget(*specs, {.name = "intel-sapphire-rapids", .isa = "avx512-bf16"}, &warning);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->isa, Isa::kAvx512Bf16);
  EXPECT_EQ(named->KeyText(),
            ResolveTarget(
                *specs, {.vendor = "GenuineIntel", .family = 6, .model = 143, .isa = "avx512-bf16"},
                &warning)
                ->KeyText());
  auto generic = ResolveTarget(*specs, {.isa = "avx512-bf16"}, &warning);
  ASSERT_TRUE(generic.ok()) << generic.status();
  EXPECT_TRUE(generic->other_types.contains(DType::kBF16));
}

// A level with the same vectors is the same CPU: a client that has never heard of the instructions
// for bf16 does not say them, and a CPU may have them where the others of its spec do not.
TEST(DeviceSpec, TheLowerOneOfTwoLevelsWithTheSameVectorsCounts) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok());
  Target zen4{.vendor = "AuthenticAMD", .family = 25, .model = 17, .isa = "avx512-bf16"};
  std::string warning;
  auto known = ResolveTarget(*specs, zen4, &warning);
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->isa, Isa::kAvx512Bf16);
  EXPECT_TRUE(known->other_types.contains(DType::kBF16));
  zen4.isa = "avx512";
  auto older = ResolveTarget(*specs, zen4, &warning);
  ASSERT_TRUE(older.ok()) << older.status();
  EXPECT_EQ(older->name, "amd-zen4");
  EXPECT_EQ(older->isa, Isa::kAvx512);
  EXPECT_EQ(older->arch, "avx512");
  EXPECT_TRUE(older->other_types.empty());
  EXPECT_NE(older->KeyText(), known->KeyText());
  zen4.isa = "avx512-vnni";
  auto between = ResolveTarget(*specs, zen4, &warning);
  ASSERT_TRUE(between.ok()) << between.status();
  EXPECT_TRUE(between->other_types.contains(DType::kI8));
  EXPECT_FALSE(between->other_types.contains(DType::kBF16));
  auto newer = ResolveTarget(
      *specs, {.vendor = "GenuineIntel", .family = 6, .model = 85, .isa = "avx512-bf16"}, &warning);
  ASSERT_TRUE(newer.ok()) << newer.status();
  EXPECT_EQ(newer->name, "intel-skylake-server");
  EXPECT_EQ(newer->isa, Isa::kAvx512);
  EXPECT_EQ(warning, "");
  // Narrower vectors are another machine.
  zen4.isa = "avx2";
  EXPECT_EQ(ResolveTarget(*specs, zen4, &warning)->name, "generic-avx2");
  EXPECT_NE(warning, "");
}

TEST(DeviceSpec, TheSharedLevelIsTheNearestOne) {
  DeviceSpec device;
  device.levels = {{.name = "l1"}, {.name = "l2", .shared = true}, {.name = "l3", .shared = true}};
  EXPECT_EQ(device.SharedLevel().name, "l2");
  device.levels = {{.name = "l1"}, {.name = "memory"}};
  EXPECT_EQ(device.SharedLevel().name, "memory");
}

// The passes of a loop find what the pass before left, as near as it fits.
TEST(DeviceSpec, LoopsStartSoonerAndFindWhatFitsTheCaches) {
  DeviceSpec one = Named("amd-zen4");
  one.threads = 1;
  const int64_t own = one.OnChipBytes();
  const int64_t shared = one.SharedLevel().UsableBytes();
  for (int64_t bytes : {own, own + 1, shared + 1}) {
    const DeviceSpec loop = one.InLoop(bytes);
    EXPECT_EQ(loop.launch_s, one.call_s);
    EXPECT_LE(loop.barrier_s, loop.launch_s);
    const double far = loop.levels.back().bytes_per_s;
    if (bytes == own) {
      EXPECT_GT(far, 1e15);
    } else {
      EXPECT_EQ(far, (bytes <= shared ? one.SharedLevel() : one.levels.back()).bytes_per_s);
    }
  }
  DeviceSpec two = one;
  two.threads = 2;
  EXPECT_EQ(two.InLoop(own).launch_s, two.relaunch_s);
  EXPECT_EQ(two.InLoop(own).levels.back().bytes_per_s, two.SharedLevel().bytes_per_s);
  // A host starts the kernels of a loop like all others.
  const DeviceSpec gpu = Named("h100");
  EXPECT_EQ(gpu.InLoop(1).launch_s, gpu.launch_s);
  EXPECT_EQ(gpu.InLoop(1).levels.back().bytes_per_s, gpu.levels.back().bytes_per_s);
}

TEST(Target, WhatIsWrittenForAvx512RunsBesideBf16AndVnni) {
  for (Isa isa : {Isa::kAvx512Vnni, Isa::kAvx512Bf16, Isa::kAvx512Amx})
    EXPECT_EQ(VectorLevel(isa), Isa::kAvx512);
  for (Isa isa : {Isa::kX86V2, Isa::kAvx2, Isa::kAvx512}) EXPECT_EQ(VectorLevel(isa), isa);
}

TEST(DeviceSpec, UnknownTargetsAreNamed) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok());
  auto isa = ResolveTarget(*specs, {.isa = "avx1024"}, nullptr);
  EXPECT_EQ(Message(isa.status()),
            "ISA \"avx1024\" is not supported; supported: x86-64-v2, avx2, avx512, avx512-vnni, "
            "avx512-bf16, avx512-amx");
  EXPECT_EQ(ResolveTarget(*specs, {.name = "nope"}, nullptr).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ResolveTarget(*specs, {}, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      ResolveTarget(*specs, {.name = "generic-avx512", .isa = "avx2"}, nullptr).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(DeviceSpec, NumbersOutOfRangeAreTold) {
  auto specs = BuiltInSpecs();
  ASSERT_TRUE(specs.ok());
  auto wrong = [&](const Target& target) {
    return std::string(Message(ResolveTarget(*specs, target, nullptr).status()));
  };
  EXPECT_EQ(wrong({.isa = "avx2", .threads = 4097}), "target.threads: 4097; expected 0..4096");
  EXPECT_EQ(wrong({.isa = "avx2", .l2_bytes = -5}), "target: a cache of -5 bytes");
}

TEST(DeviceSpec, BrokenFilesNameTheField) {
  EXPECT_EQ(Message(ParseDeviceSpec("{", "x.json").status()), "device spec x.json: not JSON");
  EXPECT_EQ(Message(ParseDeviceSpec("{}", "x.json").status()),
            "device spec x.json: field \"name\" is missing");
}

}  // namespace
}  // namespace fusion
