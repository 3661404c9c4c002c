#include "core/wire/plan.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fusion/v1/plan.pb.h"
#include "tests/support/message_checks.h"
#include "tests/support/sample_bundle.h"

namespace fusion {
namespace {

v1::Plan SampleWire() {
  v1::Plan wire;
  EncodePlan(SamplePlan(), &wire);
  return wire;
}

TEST(WirePlan, EveryStructFieldHasAWireField) {
  // Plan.version is the wire's own. A new field of a struct fails here until the wire carries it.
  EXPECT_EQ(FieldCount<Plan>() + 1, WireFieldCount<v1::Plan>());
  EXPECT_EQ(FieldCount<PlanTensor>(), WireFieldCount<v1::PlanTensor>());
  EXPECT_EQ(FieldCount<Estimate>(), WireFieldCount<v1::Estimate>());
  EXPECT_EQ(FieldCount<PlanKernel>(), WireFieldCount<v1::PlanKernel>());
  EXPECT_EQ(FieldCount<PlanGroup>(), WireFieldCount<v1::PlanGroup>());
  EXPECT_EQ(FieldCount<CostTerms>(), WireFieldCount<v1::CostTerms>());
  EXPECT_EQ(FieldCount<CostFactors>(), WireFieldCount<v1::CostFactors>());
  EXPECT_EQ(FieldCount<PlanCalibration>(), WireFieldCount<v1::PlanCalibration>());
  EXPECT_EQ(FieldCount<PlanLaunch>(), WireFieldCount<v1::PlanLaunch>());
  EXPECT_EQ(FieldCount<PlanDecision>(), WireFieldCount<v1::PlanDecision>());
  EXPECT_EQ(FieldCount<DecisionPlace>(), WireFieldCount<v1::DecisionPlace>());
  EXPECT_EQ(FieldCount<WhatIf>(), WireFieldCount<v1::PlanFlip>());
  EXPECT_EQ(FieldCount<PlanFallback>(), WireFieldCount<v1::PlanFallback>());
  EXPECT_EQ(FieldCount<PlanTotals>(), WireFieldCount<v1::PlanTotals>());
  EXPECT_EQ(FieldCount<PlanDevice>(), WireFieldCount<v1::PlanDevice>());
  EXPECT_EQ(FieldCount<PlanLevel>(), WireFieldCount<v1::PlanLevel>());
  EXPECT_EQ(FieldCount<PlanPoint>(), WireFieldCount<v1::PlanPoint>());
  EXPECT_EQ(FieldCount<PlanVariant>(), WireFieldCount<v1::PlanVariant>());
}

TEST(WirePlan, EncodingWritesEveryField) {
  // Variants have no ledger and nothing to choose from.
  EXPECT_THAT(UnsetFields(SampleWire()),
              testing::UnorderedElementsAre(
                  "variants.plan.decisions", "variants.plan.candidates", "variants.plan.frontier",
                  "variants.plan.samples", "variants.plan.variants", "variants.plan.search",
                  "variants.plan.calibration",
                  // Of the first cut: others have them.
                  "search.kernels.tried.choice.parts.split", "search.kernels.tried.choice.turns",
                  "search.kernels.tried.choice.pipelines"));
}

TEST(WirePlan, ValuesLandInTheFieldOfTheirName) {
  v1::Plan wire = SampleWire();
  EXPECT_EQ(TextOf(wire.tensors(0)),
            "data_type: DATA_TYPE_F16\ndims: 2\ndims: 3\nstrides: 3\nstrides: 1\n"
            "space: SPACE_INPUT\nindex: 1\noffset: 11\nbytes: 12\n"
            "sizes {\n  terms {\n    coefficient: 1\n    symbols: 0\n  }\n}\n"
            "sizes {\n  terms {\n    coefficient: 3\n  }\n}\n"
            "sizes {\n  terms {\n    coefficient: 3\n  }\n}\n"
            "sizes {\n  terms {\n    coefficient: 1\n  }\n}\n");
  EXPECT_EQ(TextOf(wire.groups(0).estimate()),
            "time_us: 1.5\ncompute_us: 2.5\nmemory_us: 3.5\nlaunch_us: 4.5\ntiling_loss_us: 5.5\n"
            "flops: 6.5\nactivation_bytes: 7\nrecompute_bytes: 8\nweight_bytes: 9\n"
            "on_chip_bytes: 10\ntasks: 11\nwaves: 12.5\nstall_us: 0.75\nproduct_us: 1.25\n"
            "off_chip_us: 1.75\nlocal_us: 1.125\n");
  EXPECT_EQ(TextOf(wire.groups(0).terms()),
            "product_type: \"bf16\"\nproduct_us: 1.25\nelement_us: 2.25\nidle_us: 3.25\n"
            "spill_us: 4.25\nshared_us: 5.25\nmemory_us: 6.25\nlaunch_us: 7.25\n"
            "barrier_us: 8.25\ntask_us: 9.25\nexposed: 0.25\nserial_us: 10.25\n"
            "local_us: 11.25\n");
  EXPECT_EQ(TextOf(wire.prepare(0)), "group: 1\nkernel: 1\ntensors: 1\ntensors: 2\n");
  EXPECT_EQ(TextOf(wire.launches(0)), "group: 1\nkernel: 1\ntensors: 2\ntensors: 1\n");
  EXPECT_EQ(TextOf(wire.op_by_op()),
            "kernels: 6\nlaunches: 7\nactivation_bytes: 8\nweight_bytes: 9\nestimated_us: 10.5\n");
  v1::PlanDecision decision = wire.decisions(0);
  EXPECT_EQ(decision.first().time_us(), 1.5);
  EXPECT_EQ(decision.second().stall_us(), 0.75);
  EXPECT_EQ(decision.together().off_chip_us(), 1.75);
  for (auto clear : {&v1::PlanDecision::clear_first, &v1::PlanDecision::clear_second,
                     &v1::PlanDecision::clear_together}) {
    (decision.*clear)();
  }
  EXPECT_EQ(TextOf(decision),
            "benefit_us: -2.5\nsubject: DECISION_SUBJECT_PAIR\nverdict: VERDICT_NO_GAIN\n"
            "code: \"no-gain\"\nreason: \"9.1 us together, 6.6 us apart\"\n"
            "flips {\n  what: \"launch-us\"\n  value: 3.5\n  words: \"if a launch cost\"\n}\n"
            "places {\n  first_nodes: 1\n  first_nodes: 2\n  second_nodes: 4\n  first_group: 1\n"
            "  second_group: 1\n  between: 1\n}\ntimes: 12\n");
  EXPECT_EQ(TextOf(wire.frontier(0)),
            "name: \"least-memory\"\nlatency_us: 1.25\npeak_bytes: 2\ncompile_s: 3.25\n"
            "launches: 4\nkernels: 5\nchosen: true\nreason: \"memory\"\n");
  EXPECT_EQ(wire.arena_bytes(), 4096);
  EXPECT_EQ(wire.prepared_bytes(), 8192);
  EXPECT_EQ(wire.numerics(), v1::NUMERICS_FAST);
}

TEST(WirePlan, DecodingReadsEveryField) {
  v1::Plan wire = SampleWire();
  absl::StatusOr<Plan> plan = DecodePlan(wire);
  ASSERT_TRUE(plan.ok()) << plan.status();
  v1::Plan again;
  EncodePlan(*plan, &again);
  EXPECT_EQ(TextOf(again), TextOf(wire));
  EXPECT_EQ(plan->kernels[1].key, Sha256("other kernel"));
  EXPECT_EQ(plan->constants[0]->GetInt(0), 77);
}

TEST(WirePlan, BytesAreDeterministicAndReadBack) {
  std::string bytes = PlanToBytes(SamplePlan());
  EXPECT_EQ(bytes, PlanToBytes(SamplePlan()));
  EXPECT_EQ(PlanToBytes(PlanFromBytes(bytes).value()), bytes);
  // The ledger comes apart, and together with the rest as if it had not.
  EXPECT_EQ(PlanFromBytes(bytes)->decisions.size(), 0u);
  std::string ledger = LedgerToBytes(SamplePlan());
  Plan whole = PlanFromBytes(bytes + ledger).value();
  EXPECT_EQ(whole.candidates, 34);
  EXPECT_EQ(LedgerToBytes(whole), ledger);
}

// Estimates of vast graphs take years, and some are infinite.
TEST(WirePlan, AnEstimateOfAnyLengthIsReadBack) {
  for (double us : {1e13, 1e99, 1e308, HUGE_VAL, std::nan("")}) {
    Plan plan = SamplePlan();
    plan.groups[0].terms = {.product_type = "f32",
                            .product_us = us,
                            .element_us = us,
                            .idle_us = us,
                            .spill_us = us,
                            .serial_us = us,
                            .shared_us = us,
                            .memory_us = us,
                            .launch_us = us,
                            .barrier_us = us,
                            .task_us = us,
                            .exposed = us};
    absl::StatusOr<Plan> read = PlanFromBytes(PlanToBytes(plan));
    ASSERT_TRUE(read.ok()) << us << ": " << read.status();
    const CostTerms& terms = read->groups[0].terms;
    EXPECT_EQ(terms.product_us, std::isnan(us) ? 0 : std::min(us, 1e100));
    EXPECT_EQ(terms.task_us, terms.product_us);
  }
}

struct BadPlan {
  const char* what;
  std::function<void(v1::Plan*)> damage;
  const char* message;
};

TEST(WirePlan, HostileFieldsAreNamed) {
  const BadPlan kCases[] = {
      {"version", [](v1::Plan* p) { p->set_version(9); }, "plan.version: 9"},
      {"isa", [](v1::Plan* p) { p->clear_isa(); }, "plan.isa: empty"},
      {"device", [](v1::Plan* p) { p->mutable_device()->set_on_chip_bytes(-1); },
       "plan.device.on_chip_bytes: -1 is negative"},
      {"level", [](v1::Plan* p) { p->mutable_device()->mutable_levels(0)->set_bytes(-7); },
       "plan.device.levels[0]: bytes: -7 is negative"},
      {"search", [](v1::Plan* p) { p->mutable_search()->set_level(4); },
       "plan.search.level: 4; expected 0..3"},
      {"epoch", [](v1::Plan* p) { p->mutable_calibration()->set_epoch(0); },
       "plan.calibration.epoch: 0; expected at least 1"},
      {"factor",
       [](v1::Plan* p) { p->mutable_calibration()->mutable_factors()->set_memory(std::nan("")); },
       "plan.calibration.factors: memory: nan; expected 0.015625..64"},
      {"factor of products",
       [](v1::Plan* p) {
         (*p->mutable_calibration()->mutable_factors()->mutable_product())["f32"] = 1e9;
       },
       "plan.calibration.factors: product[f32]: 1e+09"},
      {"factor of a class",
       [](v1::Plan* p) {
         p->mutable_calibration()->mutable_factors()->mutable_classes(0)->set_factor(3);
       },
       "plan.calibration.factors: classes: 3; expected 0.5..2"},
      {"a class twice",
       [](v1::Plan* p) {
         v1::CostFactors* factors = p->mutable_calibration()->mutable_factors();
         *factors->add_classes() = factors->classes(0);
       },
       "plan.calibration.factors: classes: memory and copy stand twice"},
      {"chosen tiles", [](v1::Plan* p) { p->mutable_search()->mutable_kernels(0)->set_chosen(4); },
       "plan.search.kernels[0].chosen: 4; expected 0..3"},
      {"tiles of no group",
       [](v1::Plan* p) { p->mutable_search()->mutable_kernels(0)->set_group(2); },
       "plan.search.kernels[0].group: 2; expected -1..1"},
      {"a cut",
       [](v1::Plan* p) {
         p->mutable_search()->mutable_kernels(0)->mutable_tried(1)->clear_choice();
       },
       "plan.search.kernels[0].tried[1].choice.parts: 0 entries; expected 1.."},
      {"point", [](v1::Plan* p) { p->mutable_frontier(0)->set_latency_us(INFINITY); },
       "plan.frontier[0]: latency_us: inf is not finite"},
      {"peak", [](v1::Plan* p) { p->mutable_frontier(0)->set_peak_bytes(-1); },
       "plan.frontier[0]: peak_bytes: -1 is negative"},
      {"name of a point",
       [](v1::Plan* p) { p->mutable_frontier(0)->set_name(std::string(5000, 'x')); },
       "plan.frontier[0]: name: 5000 bytes"},
      {"two chosen", [](v1::Plan* p) { *p->add_frontier() = p->frontier(0); },
       "plan.frontier: 2 of 2 points are chosen, expected 1"},
      {"none chosen", [](v1::Plan* p) { p->mutable_frontier(0)->set_chosen(false); },
       "plan.frontier: 0 of 1 points are chosen, expected 1"},
      {"threads", [](v1::Plan* p) { p->set_threads(0); }, "plan.threads: 0"},
      {"numerics", [](v1::Plan* p) { p->set_numerics(static_cast<v1::Numerics>(9)); },
       "plan.numerics: unknown value 9"},
      {"dtype", [](v1::Plan* p) { p->mutable_tensors(1)->clear_data_type(); },
       "plan.tensors[1]: data_type: unknown value 0; expected 1..25"},
      {"space", [](v1::Plan* p) { p->mutable_tensors(0)->set_space(static_cast<v1::Space>(-3)); },
       "plan.tensors[0]: space: unknown value -3"},
      {"rank",
       [](v1::Plan* p) {
         for (int i = 0; i < 100; ++i) p->mutable_tensors(0)->add_dims(1);
       },
       "plan.tensors[0]: dims: rank 102"},
      {"arena", [](v1::Plan* p) { p->mutable_tensors(1)->set_offset(4090); },
       "plan tensor 1: outside its space"},
      {"offset overflow", [](v1::Plan* p) { p->mutable_tensors(1)->set_offset(INT64_MAX); },
       "plan tensor 1: outside its space"},
      {"constant", [](v1::Plan* p) { p->mutable_constants(0)->set_data("abc"); },
       "plan.constants[0]: tensor i64[1]: 3 bytes of data, expected 8"},
      {"constant overflow", [](v1::Plan* p) { p->mutable_constants(0)->set_dims(0, INT64_MAX); },
       "plan.constants[0]: shape"},
      {"key", [](v1::Plan* p) { p->mutable_kernels(1)->set_key("short"); },
       "plan.kernels[1]: key: a digest of 5 bytes; expected 32"},
      {"symbol", [](v1::Plan* p) { p->mutable_kernels(0)->set_symbol("fk;rm"); },
       "plan.kernels[0]: symbol: \"fk;rm\"; expected letters, digits and '_'"},
      {"phases", [](v1::Plan* p) { p->mutable_kernels(0)->set_phases(-1); },
       "plan.kernels[0]: phases: -1"},
      {"estimate", [](v1::Plan* p) { p->mutable_groups(1)->mutable_estimate()->set_flops(NAN); },
       "plan.groups[1]: estimate: flops: nan is not finite"},
      {"launch", [](v1::Plan* p) { p->mutable_launches(0)->set_kernel(2); },
       "a plan launch names kernel 2"},
      {"launch tensor", [](v1::Plan* p) { p->mutable_prepare(0)->set_tensors(0, 6); },
       "plan launch names tensor 6"},
      {"loop launches", [](v1::Plan* p) { p->mutable_loops(0)->set_launches(2); },
       "plan loop 0: launches 1..2 of 2"},
      {"loop without launches", [](v1::Plan* p) { p->mutable_loops(0)->set_launches(0); },
       "plan loop 0: launches 1..0 of 2"},
      {"loop passes",
       [](v1::Plan* p) {
         p->mutable_loops(0)->clear_open_most();
         p->mutable_loops(0)->set_most(-1);
       },
       "plan loop 0: -1 passes, expected 0..2147483648"},
      {"loops that cross",
       [](v1::Plan* p) {
         p->mutable_loops(0)->set_first(0);
         *p->add_loops() = p->loops(0);
         p->mutable_loops(1)->set_launches(2);
       },
       "plan loop 1: launches 0..1; expected them within or behind"},
      {"loops too deep",
       [](v1::Plan* p) {
         v1::PlanLoop plain;
         plain.set_first(1);
         plain.set_launches(1);
         for (auto set :
              {&v1::PlanLoop::set_count, &v1::PlanLoop::set_begins, &v1::PlanLoop::set_goes_on,
               &v1::PlanLoop::set_pass, &v1::PlanLoop::set_passes}) {
           (plain.*set)(-1);
         }
         for (int i = 0; i < 64; ++i) *p->add_loops() = plain;
       },
       "plan loop 64: lies in 64 others"},
      {"loop place", [](v1::Plan* p) { p->mutable_loops(0)->mutable_carried(0)->set_after(1); },
       "plan loop 0: place 1 is given twice"},
      {"loop place out of range",
       [](v1::Plan* p) { p->mutable_loops(0)->mutable_elements(0)->set_place(4); },
       "plan loop 0: place 4 of 4 for 8 bytes"},
      {"loop element", [](v1::Plan* p) { p->mutable_loops(0)->mutable_elements(0)->set_whole(3); },
       "plan loop 0: tensor 3 is [], expected 4 elements, as many as passes"},
      {"loop elements",
       [](v1::Plan* p) {
         p->mutable_loops(0)->clear_open_most();
         p->mutable_loops(0)->set_most(5);
       },
       "plan loop 0: tensor 5 is [4], expected 5 elements, as many as passes"},
      {"loop passes", [](v1::Plan* p) { p->mutable_loops(0)->set_most(5); },
       "plan loop 0: size s0*2; expected 0..5, and 5 where symbols are largest"},
      {"place of no loop",
       [](v1::Plan* p) {
         p->clear_loops();
         p->mutable_tensors(5)->set_space(v1::SPACE_PASS);
         p->mutable_tensors(5)->set_index(7);
       },
       "plan tensor 5: 32 bytes at place 7"},
      {"loop state", [](v1::Plan* p) { p->mutable_loops(0)->mutable_carried(0)->set_initial(3); },
       "plan loop 0: tensor 3 has 8 bytes, expected 32"},
      {"loop writes", [](v1::Plan* p) { p->mutable_tensors(5)->set_space(v1::SPACE_PREPARED); },
       "plan loop 0: tensor 5 is not its to write"},
      {"loop count", [](v1::Plan* p) { p->mutable_loops(0)->set_count(4); },
       "plan loop 0: tensor 4 has 1 bytes, expected 8"},
      {"loop tensor", [](v1::Plan* p) { p->mutable_loops(0)->set_goes_on(6); },
       "plan loop 0: names tensor 6"},
      {"place of no loop",
       [](v1::Plan* p) {
         p->mutable_tensors(3)->set_space(v1::SPACE_PASS);
         p->mutable_tensors(3)->set_index(4);
       },
       "plan loop 0: tensor 3 is at a place of no loop around it"},
      {"place outside of its loop",
       [](v1::Plan* p) {
         p->mutable_tensors(2)->set_space(v1::SPACE_PASS);
         p->mutable_tensors(2)->set_index(1);
         p->clear_weights();
       },
       "a plan launch uses place 1 outside of its loop"},
      {"variant of a variant",
       [](v1::Plan* p) {
         *p->mutable_variants(0)->mutable_plan()->add_variants() = p->variants(0);
       },
       "plan.variants[0]: plan.variants: of a variant"},
      {"variant that is not sound",
       [](v1::Plan* p) {
         p->mutable_variants(0)->mutable_plan()->mutable_launches(0)->set_kernel(2);
       },
       "plan.variants[0]: a plan launch names kernel 2"},
      {"variant without a plan", [](v1::Plan* p) { p->mutable_variants(0)->clear_plan(); },
       "plan.variants[0]: plan.version: 0"},
      {"variants",
       [](v1::Plan* p) {
         for (int i = 0; i < 8; ++i) *p->add_variants() = p->variants(0);
       },
       "plan.variants: 9 entries; expected 0..8"},
      {"variant measure",
       [](v1::Plan* p) {
         p->mutable_variants(0)->mutable_measure()->mutable_terms(0)->set_symbols(0, 1);
       },
       "plan variant 0: of 1 symbols, measured by s1*7"},
      {"variant for more", [](v1::Plan* p) { p->mutable_symbols(0)->set_min(16); },
       "plan variant 0: symbol 0 is 8..16, which is not within the plan's"},
      {"variant in other steps",
       [](v1::Plan* p) {
         p->mutable_variants(0)->mutable_plan()->mutable_symbols(0)->set_multiple(4);
       },
       "plan.variants[0]: "},
      {"variant kernel",
       [](v1::Plan* p) {
         p->mutable_variants(0)->mutable_plan()->mutable_kernels(0)->set_key(std::string(32, 'x'));
       },
       "plan variant 0: kernel fk_0123456789abcdef is none of the plan's"},
      {"variant target",
       [](v1::Plan* p) { p->mutable_variants(0)->mutable_plan()->set_isa("other"); },
       "plan variant 0: for another target, graph or kind of fusion"},
      {"variant numerics",
       [](v1::Plan* p) {
         p->mutable_variants(0)->mutable_plan()->set_numerics(v1::NUMERICS_BITWISE);
       },
       "plan variant 0: for another target, graph or kind of fusion"},
      {"variant for less than nothing", [](v1::Plan* p) { p->mutable_variants(0)->set_most(-1); },
       "plan variant 0: for at most -1 elements"},
      {"variant with samples",
       [](v1::Plan* p) { *p->mutable_variants(0)->mutable_plan()->add_samples() = p->samples(0); },
       "plan variant 0: with a ledger, samples, a frontier or a search of its own"},
      {"fallback of a variant without symbols",
       [](v1::Plan* p) {
         p->clear_variants();
         p->mutable_fallbacks(0)->set_node(-1);
         p->mutable_fallbacks(0)->set_registered("gelu");
       },
       "plan.fallbacks[0].node: -1; expected 0.."},
      {"variant input",
       [](v1::Plan* p) { p->mutable_variants(0)->mutable_plan()->set_inputs(0, 0); },
       "plan variant 0: input 0 is not of the type that it has in the plan"},
      {"variant output type",
       [](v1::Plan* p) {
         v1::Plan* variant = p->mutable_variants(0)->mutable_plan();
         variant->set_outputs(0, 5);
         variant->mutable_tensors(5)->set_data_type(v1::DATA_TYPE_I64);
       },
       "plan variant 0: output 0 is not of the type that it has in the plan"},
      {"variant outputs",
       [](v1::Plan* p) {
         p->mutable_variants(0)->mutable_plan()->clear_output_extents();
         p->mutable_variants(0)->mutable_plan()->mutable_outputs()->RemoveLast();
       },
       "plan variant 0: 3 outputs; the plan has 4"},
      {"variant weight",
       [](v1::Plan* p) { p->mutable_variants(0)->mutable_plan()->set_weights(0, 2); },
       "plan variant 0: weight 0 is not of the type that it has in the plan"},
      {"variant buffers",
       [](v1::Plan* p) { p->mutable_variants(0)->mutable_plan()->clear_shared_buffers(); },
       "plan variant 0: output extents, shared buffers or strides are not those of the plan"},
      {"variant strides",
       [](v1::Plan* p) { p->mutable_variants(0)->mutable_plan()->clear_bound_strides(); },
       "plan variant 0: output extents, shared buffers or strides are not those of the plan"},
      {"strides of none", [](v1::Plan* p) { p->mutable_bound_strides(0)->set_position(4); },
       "plan bound_strides: output 4 of 3"},
      {"strides of a count", [](v1::Plan* p) { p->mutable_bound_strides(0)->set_position(3); },
       "plan bound_strides: output 3 of 3"},
      {"strides twice", [](v1::Plan* p) { *p->add_bound_strides() = p->bound_strides(0); },
       "plan bound_strides: output 2 has strides twice, or shares a buffer"},
      {"strides of what is shared",
       [](v1::Plan* p) { p->mutable_bound_strides(0)->set_position(1); },
       "plan bound_strides: output 1 has strides twice, or shares a buffer"},
      {"strides of another tensor",
       [](v1::Plan* p) { p->mutable_bound_strides(0)->set_strides(0, 4); },
       "plan bound_strides: output 2 is [4], tensor 1 has [1]"},
      {"strides that overlap", [](v1::Plan* p) { p->mutable_bound_strides(0)->set_strides(0, 0); },
       "plan bound_strides: output 2: stride 0 of dim 0"},
      {"strides of what nobody reads",
       [](v1::Plan* p) {
         for (v1::Plan* plan : {p, p->mutable_variants(0)->mutable_plan()}) {
           plan->mutable_bound_strides(0)->set_output(false);
           plan->mutable_bound_strides(0)->set_position(0);
           plan->mutable_bound_strides(0)->clear_strides();
           for (int i = 0; i < 65; ++i) plan->mutable_bound_strides(0)->add_strides(1);
         }
       },
       "plan bound_strides: input 0: 65 strides"},
      {"scratch", [](v1::Plan* p) { p->mutable_kernels(0)->set_scratch_bytes(-1); },
       "plan.kernels[0]: scratch_bytes: -1; expected 0.."},
      {"count", [](v1::Plan* p) { p->mutable_output_extents(0)->set_count(4); },
       "plan output_extents: dim 1 of output 1 has as many elements as output 4 says"},
      {"counted dim", [](v1::Plan* p) { p->mutable_output_extents(0)->set_dim(-1); },
       "plan output_extents: dim -1 of output 1"},
      {"shared output", [](v1::Plan* p) { p->mutable_shared_buffers(0)->set_output(3); },
       "plan shared_buffers: dim 1 of input 1 and output 3 for 3 elements; expected both to lie"},
      {"shared dim", [](v1::Plan* p) { p->mutable_shared_buffers(0)->set_dim(2); },
       "plan shared_buffers: dim 2 of input 1"},
      {"capacity", [](v1::Plan* p) { p->mutable_shared_buffers(0)->set_capacity(0); },
       "output 1 for 0 elements; expected"},
      {"shared twice", [](v1::Plan* p) { *p->add_shared_buffers() = p->shared_buffers(0); },
       "plan shared_buffers: input 1 or output 1 is shared twice"},
      {"nodes", [](v1::Plan* p) { p->set_nodes(-1); }, "plan.nodes: -1 is negative"},
      {"fallback", [](v1::Plan* p) { p->mutable_fallbacks(0)->set_node(5); },
       "plan.fallbacks[0].node: 5; expected 0.."},
      {"decision node",
       [](v1::Plan* p) { p->mutable_decisions(0)->mutable_places(0)->set_second_nodes(0, -1); },
       "plan.decisions[0].places[0].second_nodes: -1; expected 0.."},
      {"decision group",
       [](v1::Plan* p) { p->mutable_decisions(0)->mutable_places(0)->set_second_group(-1); },
       "plan.decisions[0].places[0].second_group: -1; expected 0..1"},
      {"decision between",
       [](v1::Plan* p) { p->mutable_decisions(0)->mutable_places(0)->set_between(0, 2); },
       "plan.decisions[0].places[0].between: 2; expected 0..1"},
      {"decision places", [](v1::Plan* p) { p->mutable_decisions(0)->clear_places(); },
       "plan.decisions[0]: places: none"},
      {"decision subject", [](v1::Plan* p) { p->mutable_decisions(0)->clear_subject(); },
       "plan.decisions[0]: subject: unknown value 0; expected 1..4"},
      {"decision verdict",
       [](v1::Plan* p) { p->mutable_decisions(0)->set_verdict(static_cast<v1::Verdict>(9)); },
       "plan.decisions[0]: verdict: unknown value 9; expected 1..5"},
      {"decision code", [](v1::Plan* p) { p->mutable_decisions(0)->set_code("No Gain"); },
       "plan.decisions[0]: code: \"No Gain\"; expected lower case letters, digits and '-'"},
      {"decision terms",
       [](v1::Plan* p) { p->mutable_decisions(0)->mutable_together()->set_tasks(-1); },
       "plan.decisions[0]: together: tasks: -1 is negative"},
      {"decision flip",
       [](v1::Plan* p) { p->mutable_decisions(0)->mutable_flips(0)->set_value(INFINITY); },
       "plan.decisions[0]: flips[0]: value: inf is not finite"},
      {"decision times", [](v1::Plan* p) { p->mutable_decisions(0)->set_times(-1); },
       "plan.decisions[0]: times: -1 is negative"},
      {"candidates", [](v1::Plan* p) { p->set_candidates(-1); }, "plan.candidates: -1 is negative"},
      {"totals", [](v1::Plan* p) { p->mutable_totals()->set_kernels(-1); },
       "plan.totals: kernels: -1 is negative"},
  };
  for (const BadPlan& bad : kCases) {
    v1::Plan wire = SampleWire();
    bad.damage(&wire);
    absl::Status status = DecodePlan(wire).status();
    EXPECT_FALSE(status.ok()) << bad.what;
    EXPECT_THAT(std::string(Message(status)), testing::HasSubstr(bad.message)) << bad.what;
  }
}

TEST(WirePlan, DamagedBytesNeverCrash) {
  google::protobuf::LogSilencer no_line_per_broken_string;
  std::string bytes = PlanToBytes(SamplePlan()) + LedgerToBytes(SamplePlan());
  int readable = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(PlanFromBytes(std::string_view(bytes).substr(0, i)).ok() && i == 0);
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      if (PlanFromBytes(damaged).ok()) ++readable;
    }
  }
  // Most bits sit in numbers that any value would do for; the point is that none of them crashes.
  EXPECT_GT(readable, 0);
}

}  // namespace
}  // namespace fusion
