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

/// What a plan is, without weights and without names of the model: enough to compile its kernels
/// and to run them again.
struct Repro {
  std::string program;  // that wrote it: "fusionctl 1.2.3"
  Digest plan_key;
  Plan plan;
  std::string graph;                 // canonical, text form
  std::vector<KeyField> fields;      // of the plan key, without the graph
  std::vector<KernelTexts> kernels;  // by plan kernel
};

/// The files of its archive: manifest.json, README.txt, plan.pb, graph.txt, and of each kernel
/// source, schedule, SMG and reference.
ReproFiles ToFiles(const Repro& repro);

/// Inverse of ToFiles, for files that nobody vouches for: InvalidArgument, naming file and field.
absl::StatusOr<Repro> FromFiles(const ReproFiles& files);

/// The graph of a plan key in text form, whose constants of many elements are digests, with the
/// bytes that the plan has of them. NotFound, naming the digest, if it lacks one.
absl::StatusOr<std::string> WithConstants(const std::string& graph, const Plan& plan);

/// Compiles the kernels of the archive `arguments.replay` on this machine, compares each with its
/// reference, runs the plan on seeded inputs and weights and compares it with the evaluator. Needs
/// no service. It runs code that the archive holds.
absl::StatusOr<ExitCode> ReplayRepro(const Arguments& arguments, Progress* progress);

}  // namespace fusion
