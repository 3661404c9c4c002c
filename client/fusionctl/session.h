#pragma once

#include <onnx/onnx_pb.h>

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/fused_model.h"
#include "client/fusionctl/arguments.h"
#include "client/fusionctl/terminal.h"
#include "core/onnx/weight_source.h"

namespace fusion {

using Json = nlohmann::ordered_json;

/// The same message as InvalidArgument: what is wrong with files of the caller is bad input, which
/// code the reader chose for it or not.
absl::Status BadInput(const absl::Status& status);
/// The same of a file that was read; that there is no memory for it stays what it is.
absl::Status BadFile(const absl::Status& status);
/// Whose fault an error is.
ExitCode ExitCodeOf(const absl::Status& status);

/// Reads the file of --rules, if there is one, into the options. Bad input: "FILE:LINE: ...".
absl::Status LoadRules(Arguments* arguments);
/// The same of --custom-ops: "FILE: line L, column C: ..", the line and a caret.
absl::Status LoadCustomOps(Arguments* arguments);
/// An error of a command; if rules of the file are to blame for it, with file and line in front.
absl::Status LocateRule(const absl::Status& status, const Arguments& arguments);

/// Threads that gRPC may start for a client of one connection.
inline constexpr int kThreadsOfGrpc = 12;

/// What a command does with the service.
using ServiceWork = std::function<absl::StatusOr<ExitCode>(const Client& client)>;
/// Does it with the service of --server, or with an embedded one that ends afterwards. An error
/// that comes from the end of the embedded server says how that ended.
absl::StatusOr<ExitCode> WithService(const Arguments& arguments, Progress* progress,
                                     const ServiceWork& work);

/// Asks for a plan; where `progress` is seen it says how far the service is, else the answer is all
/// there is. A service too old to say so is asked plainly.
absl::StatusOr<FusionReply> PlanWithProgress(const Client& client, const FusionRequest& request,
                                             Progress* progress);

/// A request as the arguments ask, without a model.
FusionRequest RequestFor(const Arguments& arguments, const PlanOptions& options);

/// The model of a command: as a request, and as weights. Errors are bad input.
class ModelFile {
 public:
  /// With the inputs of --fix as constants, and with initialisers as inputs that --as-input,
  /// --input or --data name; fused ones only with --allow-fused.
  static absl::StatusOr<std::unique_ptr<ModelFile>> Load(const std::string& path,
                                                         const Arguments& arguments);

  /// As it is sent: without weights.
  const onnx::ModelProto& bare() const { return bare_; }
  /// The graph inputs that a run must give.
  const std::vector<const onnx::ValueInfoProto*>& inputs() const { return inputs_; }
  /// Which of inputs() are initialisers of the file: those have a value without being given one.
  bool IsOverridden(const std::string& input) const { return overridden_.contains(input); }
  /// Initialisers that could be inputs and are none, for messages.
  std::vector<std::string> overridable() const;
  /// What a data set may have tensors for, in the order of the file: inputs(), and those of --fix.
  const std::vector<const onnx::ValueInfoProto*>& data_inputs() const { return data_inputs_; }
  /// Whether --fix gave an input its value.
  bool IsFixed(const std::string& input) const { return fixed_.contains(input); }
  bool allow_fused() const { return allow_fused_; }

  /// A request for it as the arguments ask.
  FusionRequest Request(const Arguments& arguments, const PlanOptions& options) const;

  /// The bytes of a weight. A model that was stored without its weights gets random ones, which
  /// depend on the name alone. Errors name tensor and file; they are bad input, or there is no
  /// memory.
  absl::StatusOr<HostTensor> Weight(const std::string& name) const;
  /// The same for the last who wants it: the file's own copy goes, so that it is held once.
  absl::StatusOr<HostTensor> TakeWeight(const std::string& name) const;
  /// True once Weight had to make one up.
  bool made_up_weights() const { return made_up_; }

 private:
  ModelFile() = default;
  onnx::ModelProto bare_;
  absl::StatusOr<HostTensor> OrMadeUp(const std::string& name,
                                      absl::StatusOr<HostTensor> bytes) const;

  std::unique_ptr<WeightSource> source_;
  std::vector<const onnx::ValueInfoProto*> inputs_;       // into bare_
  std::vector<const onnx::ValueInfoProto*> data_inputs_;  // likewise
  std::set<std::string> overridden_, fixed_;
  std::string bytes_;  // of bare_
  bool allow_fused_ = false;
  std::string name_;                 // for people
  std::vector<SharedNames> shared_;  // of --share, without *
  mutable bool made_up_ = false;
  mutable bool taken_ = false;  // some weight
};

/// Reads the file of --lock, if one is given, into the options. What is wrong with it is bad input.
absl::Status LoadLock(Arguments* arguments);

// All that goes to stdout and stderr goes through these: what comes from servers, files and models
// cannot drive the terminal (shown_text.h).

/// Prints an object to stdout; strings that are not UTF-8 are repaired.
void PrintJson(const Json& json);
/// Prints text for people to stdout; on a terminal its lines are wrapped.
void Print(const std::string& text);
/// The same of a text whose lines stay as they are: sources, scripts, dumps.
void PrintAsItIs(const std::string& text);
/// A line on stderr, behind the name of the program.
void PrintWarning(std::string_view text);

// The commands. What they print for people ends in a line end.
absl::StatusOr<ExitCode> RunPlan(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunRun(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunBench(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunVerify(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunShow(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunExplain(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunDiff(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunKernels(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunExport(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunRepro(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunReport(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunList(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunCapabilities(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunStatus(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunToken(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunStore(const Arguments& arguments, Progress* progress);
absl::StatusOr<ExitCode> RunCompletion(const Arguments& arguments, Progress* progress);

}  // namespace fusion
