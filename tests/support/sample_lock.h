#pragma once

#include "core/bundle/plan_lock.h"

namespace fusion {

/// A lock that says something in every field. It fits no graph.
inline PlanLock SampleLock() {
  LockedTiling whole{
      .grid = {{"m", 16}, {"n", 64}},
      .streamed = LockedTile{"k", 128},
      .products = {{.op = 1, .swap = true, .rows = 6, .columns = 16, .stage_rows = true}}};
  LockedTiling beside{.grid = {{"d0", 8}}, .streamed = {}, .products = {}};
  LockedTiling split;
  split.split = LockedTile{"n", 8};
  split.phases = {whole, beside};
  return {.planner_version = 3,
          .codegen_version = 4,
          .target = "generic-avx2",
          .device = Sha256("device"),
          .graph = Sha256("graph"),
          .fusion = FusionMode::kOpByOp,
          .numerics = Numerics::kBitwise,
          .groups = {{.ops = {0, 2, 3}, .choice = 1},
                     {.ops = {1}, .choice = 0},
                     {.ops = {4, 5, 6}, .choice = 3},
                     {.ops = {7}, .body = 0}},
          .choices = {{.parts = {whole}},
                      {.parts = {whole, beside}},
                      {.parts = {split}},
                      {.parts = {},
                       .turns = {{.ops = {0, 2}, .choice = 2}, {.ops = {1}, .choice = 0}},
                       .pipelines = {{.first = 1, .phases = 2, .slices = {{"s0_m", 8}}}}}},
          .bodies = {{.groups = {{.ops = {1}, .choice = 0}, {.ops = {2}, .body = 0}},
                      .choices = {{.parts = {beside}}},
                      .bodies = {{.groups = {{.ops = {0}, .choice = 0}},
                                  .choices = {{.parts = {beside}}}}}}},
          .variants = {{.most = 24,
                        .decisions = {.groups = {{.ops = {3}, .choice = 1}},
                                      .choices = {{.parts = {beside}}, {.parts = {whole}}}}}},
          .kernels = {{.label = "MatMul+Relu",
                       .schedule = Sha256("schedule"),
                       .source = Sha256("source"),
                       .key = Sha256("key")}},
          .plan = Sha256("plan")};
}

}  // namespace fusion
