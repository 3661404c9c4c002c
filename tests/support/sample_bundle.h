#pragma once

#include <string>

#include "core/bundle/plan.h"
#include "tests/support/sample_search.h"

namespace fusion {

/// A valid plan in which no field has its default value, so that a field that gets lost shows.
inline Plan SamplePlan() {
  Plan plan;
  plan.target = "toy_64k";
  plan.isa = "avx2";
  plan.threads = 3;
  plan.numerics = Numerics::kFast;
  plan.fusion = FusionMode::kOpByOp;
  plan.tensors = {
      {.dtype = DType::kF16,
       .dims = {2, 3},
       .strides = {3, 1},
       .space = Space::kInput,
       .index = 1,
       .offset = 11,
       .bytes = 12,
       .sizes = {SizeExpr::Sum({{1, {0}}}), SizeExpr(3), SizeExpr(3), SizeExpr(1)}},
      {.dtype = DType::kF64,
       .dims = {4},
       .strides = {1},
       .space = Space::kArena,
       .index = 2,
       .offset = 64,
       .bytes = 32,
       .sizes = {SizeExpr::Sum({{2, {0}}}), SizeExpr(1)}},
      {.dtype = DType::kI64,
       .dims = {1},
       .strides = {5},
       .space = Space::kConstant,
       .index = 0,
       .offset = 7,
       .bytes = 8},
      {.dtype = DType::kI64, .space = Space::kArena, .offset = 128, .bytes = 8},
      {.dtype = DType::kBool, .space = Space::kArena, .offset = 192, .bytes = 1},
      {.dtype = DType::kF64,
       .dims = {4},
       .strides = {1},
       .space = Space::kArena,
       .offset = 256,
       .bytes = 32},
  };
  plan.constants = {
      std::make_shared<HostTensor>(HostTensor::FromValues<int64_t>(DType::kI64, {1}, {77}))};
  PlanKernel kernel;
  kernel.key = Sha256("kernel");
  kernel.symbol = "fk_0123456789abcdef";
  kernel.label = "MatMul+Relu";
  kernel.backend = "cpu";
  kernel.isa = "avx512";
  kernel.phases = 2;
  kernel.scratch_bytes = 320;
  kernel.workspace_bytes = 640;
  kernel.sizes = {SizeExpr::Sum({{3, {0, 0}}, {5, {}}})};
  plan.kernels = {kernel, kernel};
  plan.kernels[1].key = Sha256("other kernel");
  Estimate estimate{.time_us = 1.5,
                    .compute_us = 2.5,
                    .product_us = 1.25,
                    .memory_us = 3.5,
                    .off_chip_us = 1.75,
                    .local_us = 1.125,
                    .stall_us = 0.75,
                    .launch_us = 4.5,
                    .tiling_loss_us = 5.5,
                    .flops = 6.5,
                    .activation_bytes = 7,
                    .recompute_bytes = 8,
                    .weight_bytes = 9,
                    .on_chip_bytes = 10,
                    .tasks = 11,
                    .waves = 12.5};
  PlanTotals apart = {
      .kernels = 2, .launches = 2, .activation_bytes = 30, .weight_bytes = 8, .estimated_us = 9.5};
  plan.groups = {{.kind = GroupKind::kPipeline,
                  .nodes = {1, 4},
                  .label = "MatMul+Relu",
                  .kernel = 1,
                  .estimate = estimate,
                  .terms = {.product_type = "bf16",
                            .product_us = 1.25,
                            .element_us = 2.25,
                            .idle_us = 3.25,
                            .spill_us = 4.25,
                            .serial_us = 10.25,
                            .local_us = 11.25,
                            .shared_us = 5.25,
                            .memory_us = 6.25,
                            .launch_us = 7.25,
                            .barrier_us = 8.25,
                            .task_us = 9.25,
                            .exposed = 0.25},
                  .form = "product",
                  .op_by_op = apart,
                  .bound = "launch",
                  .tiles = "m:2",
                  .derivation = {"op 3 ReduceSum: sum of %2", "an infinity may become NaN"},
                  .structure = "0123456789abcdef",
                  .registered = "linear"},
                 {.kind = GroupKind::kPrepare,
                  .nodes = {2},
                  .label = "Pack",
                  .kernel = 1,
                  .estimate = estimate,
                  .op_by_op = apart,
                  .bound = "l2",
                  .tiles = "whole",
                  .structure = "fedcba9876543210",
                  .registered = "leaky"}};
  plan.device = {.kind = "GPU",
                 .unit = "SM",
                 .explicit_memory = true,
                 .on_chip_level = "shared",
                 .on_chip_bytes = 1000,
                 .levels = {{.name = "shared",
                             .shared = true,
                             .bytes = 2000,
                             .usable_bytes = 1000,
                             .total_bytes_per_s = 2.5}}};
  plan.prepare = {{.group = 1, .kernel = 1, .tensors = {1, 2}}};
  plan.launches = {{.group = 1, .kernel = 1, .tensors = {2, 1}},
                   {.group = 1, .kernel = 1, .tensors = {2, 1}}};
  plan.loops = {{.first = 1,
                 .launches = 1,
                 .most = 4,
                 .must_end = true,
                 .count = 3,
                 .begins = 4,
                 .goes_on = 4,
                 .pass = 3,
                 .passes = 3,
                 .carried = {{.before = 1, .after = 2, .initial = 5, .last = 5, .spare = 5}},
                 .elements = {{.place = 3, .whole = 5, .from_end = true, .written = true},
                              {.place = 0, .whole = 5, .from_end = true, .written = true}},
                 .open_most = SizeExpr::Sum({{2, {0}}})}};
  plan.inputs = {-1, 0};
  plan.outputs = {1, 0, 1, 3};
  plan.output_extents = {{.output = 1, .dim = 1, .count = 3}};
  plan.shared_buffers = {{.input = 1, .output = 1, .dim = 1, .capacity = 3}};
  plan.bound_strides = {{.output = true, .position = 2, .strides = {1}}};
  plan.weights = {-1, 2};
  plan.arena_bytes = 4096;
  plan.prepared_bytes = 8192;
  plan.symbols = {{.least = 8, .most = 16, .multiple = 8, .likely = 16}};
  plan.samples = {{.values = {8}, .family_us = 2.5, .exact_us = 1.5}};
  plan.nodes = 5;
  plan.totals = {
      .kernels = 1, .launches = 2, .activation_bytes = 3, .weight_bytes = 4, .estimated_us = 5.5};
  plan.op_by_op = {
      .kernels = 6, .launches = 7, .activation_bytes = 8, .weight_bytes = 9, .estimated_us = 10.5};
  plan.fallbacks = {{.node = 3, .reason = "it is wrong", .registered = "leaky"}};
  plan.skipped_passes = {{.pass = "layouts", .reason = "%3 is made by no op"}};
  plan.decisions = {
      {.subject = DecisionSubject::kPair,
       .verdict = Verdict::kNoGain,
       .code = "no-gain",
       .reason = "9.1 us together, 6.6 us apart",
       .first = estimate,
       .second = estimate,
       .together = estimate,
       .benefit_us = -2.5,
       .what_ifs = {{.what = "launch-us", .value = 3.5, .words = "if a launch cost"}},
       .places =
           {{.first = {1, 2}, .second = {4}, .first_group = 1, .second_group = 1, .between = {1}}},
       .times = 12}};
  plan.candidates = 34;
  plan.search = SampleSearch();
  plan.calibration = {
      3, {.launch = 2, .barrier = 3, .task = 4, .element = 5, .shared = 6, .memory = 7}};
  plan.calibration.factors.product["f32"] = 8;
  plan.calibration.factors.local = 0.5;
  plan.calibration.factors.classes[{"memory", "copy"}] = 1.25;
  plan.frontier = {{.name = "least-memory",
                    .latency_us = 1.25,
                    .peak_bytes = 2,
                    .compile_s = 3.25,
                    .launches = 4,
                    .kernels = 5,
                    .chosen = true,
                    .reason = "memory"}};
  Plan variant = plan;
  variant.samples.clear();
  variant.decisions.clear();
  variant.candidates = 0;
  variant.frontier.clear();
  variant.search = {};
  variant.calibration = {};
  plan.variants = {{.measure = SizeExpr::Sum({{7, {0}}}),
                    .most = 13,
                    .plan = std::make_shared<const Plan>(std::move(variant))}};
  return plan;
}

/// A valid kernel without default fields; `seed` makes another key and another binary.
inline KernelArtifact SampleKernel(int seed = 0, size_t binary_bytes = 1000) {
  KernelArtifact kernel;
  kernel.full_key = StrCat("schedule:target:compiler:", seed);
  kernel.key = Sha256(kernel.full_key);
  kernel.binary = StrCat("\x7f", "ELF", seed);
  for (uint32_t word = static_cast<uint32_t>(seed) + 1; kernel.binary.size() < binary_bytes;) {
    word = word * 1664525 + 1013904223;
    kernel.binary += static_cast<char>(word >> 24);
  }
  kernel.content = Sha256(kernel.binary);
  kernel.source = "extern \"C\" int fk();";
  kernel.schedule = "schedule { }";
  kernel.compiler = "g++ -O2";
  kernel.reference = "reference { }";
  kernel.compile_ms = 81.5;
  kernel.check_ms = 2.25;
  kernel.check = {.verified = true,
                  .reason = "sampled",
                  .max_abs = 1e-6,
                  .max_rel = 1e-7,
                  .elements = 4096,
                  .outside = 1};
  kernel.searches = {{Sha256("race"), SampleSearch().kernels[0]}};
  return kernel;
}

}  // namespace fusion
