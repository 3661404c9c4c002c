// libFuzzer target: what a compile worker says and what it is told. Bytes that are accepted must be
// those that our own encoder makes of the message.
#include "core/compile/worker_protocol.h"
#include "tests/fuzz/require.h"

namespace {

using fusion::Require;

std::string Again(const fusion::WorkerTask& task) {
  const auto* job = std::get_if<fusion::WorkerJob>(&task);
  return job != nullptr ? fusion::EncodeJob(*job)
                        : fusion::EncodeRace(std::get<fusion::KernelRace>(task));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string corpus = fusion::SeedsDirectory(*argc, *argv);
  if (corpus.empty()) return 0;
  fusion::WorkerJob job;
  job.job.members = {{.sizes = {3, 300}, .schedule = "s", .reference = "r"}};
  job.compile_argv = {"/usr/bin/g++", "-O2"};
  fusion::WriteSeed(corpus, "job", fusion::EncodeJob(job));
  fusion::WriteSeed(
      corpus, "race",
      fusion::EncodeRace({.label = "MatMul", .runners = {{"fk", "b", "s", "r"}, {}}}));
  fusion::WorkerResult result;
  result.binary = "elf";
  result.check.reason = "no reference";
  fusion::WriteSeed(corpus, "result", fusion::EncodeReply(result));
  fusion::WorkerRaceResult times;
  times.times.runners = {{"", {1, 2}}, {"why", {}}};
  times.times.first_us = {3};
  times.times.rival_us = {4};
  fusion::WriteSeed(corpus, "times", fusion::EncodeReply(times));
  fusion::WriteSeed(corpus, "hello",
                    fusion::EncodeReply(fusion::WorkerHello{1, "avx2", "seccomp"}));
  fusion::WriteSeed(corpus, "stage", fusion::EncodeReply(fusion::WorkerStage{"link"}));
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<fusion::WorkerReply> reply = fusion::DecodeReply(bytes);
  if (reply.ok()) {
    Require(fusion::EncodeReply(*reply) == bytes, "a reply of other bytes is accepted");
  } else {
    fusion::RequireBlamesText(reply.status());
  }
  absl::StatusOr<fusion::WorkerTask> task = fusion::DecodeTask(bytes);
  if (task.ok()) {
    Require(Again(*task) == bytes, "a task of other bytes is accepted");
  } else {
    fusion::RequireBlamesText(task.status());
  }
  return 0;
}
