#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/fusionctl/args/arguments.h"
#include "client/fusionctl/output/terminal.h"
#include "client/fusionctl/repro/repro_archive.h"
#include "core/bundle/answer.h"
#include "core/graph/graph.h"

namespace fusion {

/// A plan without weights and without names of the model, sufficient to compile and run its kernels
/// again.
struct Repro {
  std::string program;  // the writer: "fusionctl 1.2.3"
  Digest plan_key;
  Plan plan;
  std::string graph;                 // canonical, text form
  std::vector<KeyField> fields;      // of the plan key, without the graph
  std::vector<KernelTexts> kernels;  // one for each of plan.kernels
};

/// The files of the archive: manifest.json, README.txt, plan.pb, graph.txt, and for each kernel its
/// source, schedule, SMG and reference.
ReproFiles ToFiles(const Repro& repro);

/// Inverse of ToFiles, for untrusted files: InvalidArgument, naming file and field.
absl::StatusOr<Repro> FromFiles(const ReproFiles& files);

/// Replaces digests of large constants in `graph`, the text form of a plan key's graph, by the
/// bytes that `plan` has of them. NotFound, naming the digest, if `plan` lacks one.
absl::StatusOr<std::string> WithConstants(const std::string& graph, const Plan& plan);

/// Compiles the kernels of the archive `arguments.replay` on this machine and compares each with
/// its reference. Then, if all kernels pass and this machine has the plan's ISA, runs the plan on
/// random inputs and weights (--seed) and compares it with the evaluator. kExitMismatch if a kernel
/// fails to compile or its values differ, or if outputs differ; bad input if the archive is
/// invalid. Needs no service. Runs code from the archive.
absl::StatusOr<ExitCode> ReplayRepro(const Arguments& arguments, Progress* progress);

}  // namespace fusion
