#include "client/fusionctl/session.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "client/detect_target.h"
#include "client/fusionctl/connection.h"
#include "client/fusionctl/embedded_server.h"
#include "client/fusionctl/fixed_inputs.h"
#include "client/fusionctl/overridden.h"
#include "client/fusionctl/shown_text.h"
#include "core/base/file.h"
#include "core/base/retry_after.h"
#include "core/base/server_state.h"
#include "core/base/shortage.h"
#include "core/base/unwritable.h"
#include "core/base/utf8.h"
#include "core/base/wrapped_text.h"
#include "core/custom/custom_ops.h"
#include "core/graph/test_values.h"
#include "core/onnx/model_io.h"
#include "core/onnx/overridable.h"
#include "core/onnx/reference_weights.h"
#include "core/wire/plan_lock.h"
#include "core/wire/rules.h"

namespace fusion {
namespace {

// Of a graph of 100,000 nodes, several times.
constexpr int64_t kMaxLockBytes = int64_t{64} << 20;
constexpr Nanoseconds kStartTimeout = std::chrono::seconds(30);
// A process that dies closes its connections first.
constexpr Nanoseconds kEndTimeout = std::chrono::milliseconds(500);

absl::StatusOr<std::unique_ptr<Client>> ConnectEmbedded(EmbeddedServer* server,
                                                        ClientOptions options) {
  options.wait_for_ready = true;
  options.connect_timeout = std::chrono::milliseconds(500);
  Nanoseconds end = Clock::Real().Now() + kStartTimeout;
  for (;;) {
    auto client = Client::Connect(server->address(), options);
    absl::Status health = client.ok() ? (*client)->CheckHealth(kStartTimeout) : client.status();
    if (health.ok()) return client;
    // It may have ended meanwhile; that is what the user wants to know.
    RETURN_IF_ERROR(server->CheckRunning(std::chrono::milliseconds(5)));
    if (Clock::Real().Now() >= end) return Annotate(health, "fusiond of its own");
  }
}

// Values whose sums over the first extent stay near 1, as trained weights are.
absl::StatusOr<HostTensor> MakeUpWeight(const onnx::TensorProto& tensor, const std::string& name) {
  ASSIGN_OR_RETURN(TensorHeader header, ReadTensorHeader(tensor, StrCat("weight ", Quote(name))));
  Digest digest = Sha256(name);
  uint64_t seed = 0;
  for (size_t i = 0; i < 8; ++i) seed = seed << 8 | digest.bytes[i];
  HostTensor out = RandomTensor({header.dtype, Shape(header.dims)}, seed);
  if (!IsFloat(header.dtype) || header.dims.size() < 2) return out;
  double scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, header.dims[0])));
  for (int64_t i = 0; i < out.elements(); ++i) out.SetDouble(i, out.GetDouble(i) * scale);
  return out;
}

// What people call the model of a file: its name, and that of its folder where files have one name.
std::string ModelName(const std::string& file) {
  const std::filesystem::path path = AbsolutePath(file);
  const std::string name = path.stem().string();
  if (name != "model" || !path.parent_path().has_filename()) return name;
  return StrCat(path.parent_path().filename().string(), "/", name);
}

}  // namespace

absl::Status BadInput(const absl::Status& status) {
  if (status.ok() || ExitCodeOf(status) == kExitBadInput || IsUnwritable(status)) return status;
  return InvalidArgument(Message(status));
}

absl::Status BadFile(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? status : BadInput(status);
}

ExitCode ExitCodeOf(const absl::Status& status) {
  // A rule that forces what no kernel can be is the fault of its file, not of the service.
  if (!BlamedRules(status).empty()) return kExitBadInput;
  if (IsUnwritable(status) || IsOfServerState(status)) return kExitService;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:  // a range, a lock: trying again does not help
    case absl::StatusCode::kUnimplemented:
      return kExitBadInput;
    case absl::StatusCode::kResourceExhausted:
      if (!IsFromService(status)) return kExitNoMemory;
      // A busy service says when to come again; else the request itself is too large.
      return RetryAfterOf(status).has_value() ? kExitService : kExitBadInput;
    default:
      return kExitService;
  }
}

absl::Status LoadRules(Arguments* arguments) {
  if (arguments->rules.empty()) return absl::OkStatus();
  absl::StatusOr<Rules> rules = ReadRulesFile(arguments->rules);
  if (!rules.ok()) return Annotate(rules.status(), "--rules");
  arguments->options.rules = *std::move(rules);
  return absl::OkStatus();
}

absl::Status LoadCustomOps(Arguments* arguments) {
  const std::string& path = arguments->custom_ops;
  if (path.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> text = ReadFile(path, kMaxCustomOpBytes);
  if (!text.ok()) return BadInput(Annotate(text.status(), "--custom-ops"));
  const absl::Status status = CustomOps::Parse(*text).status();
  if (!status.ok()) return InvalidArgument("--custom-ops ", Quote(path), ": ", Message(status));
  arguments->options.custom_ops = *std::move(text);
  return absl::OkStatus();
}

absl::Status LocateRule(const absl::Status& status, const Arguments& arguments) {
  const std::vector<std::string> blamed = BlamedRules(status);
  if (blamed.empty() || arguments.rules.empty()) return status;
  // Read once more for the line: who parses names it.
  auto check = [&](const Rule& rule) {
    return rule.name == blamed[0] ? InvalidArgument(Message(status)) : absl::OkStatus();
  };
  absl::StatusOr<Rules> again = ReadRulesFile(arguments.rules, check);
  if (again.ok()) return status;  // the file is another one by now
  absl::Status located(status.code(), StrCat("--rules: ", Message(again.status())));
  status.ForEachPayload(
      [&](absl::string_view key, const absl::Cord& payload) { located.SetPayload(key, payload); });
  return located;
}

absl::StatusOr<ExitCode> WithService(const Arguments& arguments, Progress* progress,
                                     const ServiceWork& work) {
  RETURN_IF_ERROR(CheckThreads(kThreadsOfGrpc));
  if (!arguments.server.empty()) {
    progress->Show(StrCat("connecting to ", arguments.server));
    ASSIGN_OR_RETURN(ClientOptions options, ConnectionOf(arguments));
    // It ends with the program: without threads, which other processes may have taken meanwhile,
    // gRPC's destructors wait for ever.
    static auto* const kept = new std::vector<std::unique_ptr<Client>>();
    ASSIGN_OR_RETURN(kept->emplace_back(), Client::Connect(arguments.server, options));
    return work(*kept->back());
  }
  progress->Show("starting fusiond");
  ASSIGN_OR_RETURN(std::unique_ptr<EmbeddedServer> server,
                   EmbeddedServer::Start({.program = arguments.fusiond,
                                          .store = arguments.store,
                                          .store_limit_bytes = arguments.store_limit_bytes,
                                          .insecure_permissions = arguments.insecure_permissions,
                                          .import_keys = arguments.import_keys,
                                          .signing_key = arguments.signing_key,
                                          .workers = arguments.workers,
                                          .start_timeout = kStartTimeout}));
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                   ConnectEmbedded(server.get(), CallOptions(arguments)));
  absl::StatusOr<ExitCode> code = work(*client);
  if (absl::IsUnavailable(code.status())) RETURN_IF_ERROR(server->CheckRunning(kEndTimeout));
  return code;
}

absl::StatusOr<FusionReply> PlanWithProgress(const Client& client, const FusionRequest& request,
                                             Progress* progress) {
  bool compiles = request.mode != PlanMode::kPlanOnly;
  progress->Show(compiles ? "planning and compiling" : "planning");
  if (!progress->enabled()) return client.PlanFusion(request);
  absl::StatusOr<FusionReply> reply = client.PlanFusion(request, [&](const PlanProgress& at) {
    std::string elapsed = HumanMilliseconds(ToMilliseconds(at.elapsed));
    if (at.total > 0) {
      progress->Show(StrCat(elapsed, "  ", at.stage), at.done, at.total);
    } else {
      progress->Show(StrCat(elapsed, "  ", at.stage));
    }
  });
  progress->Clear();
  return reply;
}

namespace {

// What of --share has a * for each input that fits, with the output of the same text.
absl::StatusOr<std::vector<SharedNames>> WithoutStars(const std::vector<SharedNames>& given,
                                                      const ModelFile& file) {
  std::vector<SharedNames> out;
  for (const SharedNames& shared : given) {
    const size_t star = shared.input.find('*');
    if (star == std::string::npos) {
      out.push_back(shared);
      continue;
    }
    const std::string_view head = std::string_view(shared.input).substr(0, star);
    const std::string_view tail = std::string_view(shared.input).substr(star + 1);
    const size_t before = out.size();
    for (const onnx::ValueInfoProto* input : file.inputs()) {
      const std::string& name = input->name();
      const bool fits = name.size() >= head.size() + tail.size() && name.starts_with(head) &&
                        name.ends_with(tail);
      if (!fits) continue;
      std::string output = shared.output;
      output.replace(output.find('*'), 1, name, star, name.size() - head.size() - tail.size());
      out.push_back({name, std::move(output), shared.capacity});
    }
    if (out.size() > before) continue;
    return InvalidArgument("--share ", Quote(shared.input), ": no input of the model is called so");
  }
  return out;
}

// What a command would run at, where that is a value of an open dim.
absl::Status CheckWithinRanges(const PlanOptions& options) {
  for (const auto& [name, range] : options.dim_ranges) {
    const auto bound = options.dim_bindings.find(name);
    if (bound == options.dim_bindings.end()) continue;
    const int64_t value = bound->second;
    if (value >= range.least && value <= range.most && value % range.multiple == 0) continue;
    std::string wanted = StrCat(range.least, "..", range.most);
    if (range.multiple > 1) wanted += StrCat(" in multiples of ", range.multiple);
    return InvalidArgument("--bind ", Quote(name), ": ", value, "; the plan is for ", Quote(name),
                           " = ", wanted, " (--range)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::Load(const std::string& path,
                                                           const Arguments& arguments) {
  std::unique_ptr<ModelFile> file(new ModelFile);
  RETURN_IF_ERROR(CheckWithinRanges(arguments.options));
  file->allow_fused_ = arguments.allow_fused;
  file->name_ = ModelName(path);
  absl::StatusOr<onnx::ModelProto> model = LoadModel(path);
  if (!model.ok()) return BadInput(model.status());
  RETURN_IF_ERROR(FixInputs(arguments.fixed, &*model));
  for (const auto& [name, value] : arguments.fixed) file->fixed_.insert(name);
  ASSIGN_OR_RETURN(file->overridden_, OverriddenInitializers(*model, arguments));
  absl::StatusOr<onnx::ModelProto> bare = ReferenceWeights(
      *model, {.directory = ModelDirectory(path),
               .overridden = {file->overridden_.begin(), file->overridden_.end()}});
  if (!bare.ok()) return BadFile(bare.status());
  file->bare_ = *std::move(bare);
  file->bytes_ = file->bare_.SerializeAsString();
  file->source_ = std::make_unique<WeightSource>(*std::move(model), ModelDirectory(path));
  std::set<std::string_view> constants;
  for (const auto& tensor : file->bare_.graph().initializer()) constants.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : file->bare_.graph().input()) {
    const bool is_input = !constants.contains(input.name());
    if (is_input) file->inputs_.push_back(&input);
    if (is_input || file->IsFixed(input.name())) file->data_inputs_.push_back(&input);
  }
  ASSIGN_OR_RETURN(file->shared_, WithoutStars(arguments.options.shared_buffers, *file));
  return file;
}

std::vector<std::string> ModelFile::overridable() const {
  std::vector<std::string> out = OverridableInitializers(bare_);
  std::erase_if(out, [&](const std::string& name) { return IsFixed(name); });
  return out;
}

FusionRequest RequestFor(const Arguments& arguments, const PlanOptions& options) {
  FusionRequest request;
  request.target = DetectTarget(arguments.threads);
  if (!arguments.isa.empty()) {  // another CPU: nothing of this one but its threads
    request.target = {.isa = arguments.isa, .threads = request.target.threads};
  }
  if (!arguments.target.empty()) {  // another device: nothing of this machine
    request.target = {.name = arguments.target, .threads = arguments.threads};
  }
  request.options = options;
  request.request_id = "fusionctl";
  if (!arguments.model.empty()) request.model_name = ModelName(arguments.model);
  request.allow_fused = arguments.allow_fused;
  return request;
}

FusionRequest ModelFile::Request(const Arguments& arguments, const PlanOptions& options) const {
  FusionRequest request = RequestFor(arguments, options);
  request.onnx_model = bytes_;
  request.model_name = name_;
  request.options.shared_buffers = shared_;
  // What the data say of dims that stay open is about one run of many.
  if (!options.dim_ranges.empty()) {
    std::erase_if(request.options.dim_bindings, [&](const auto& binding) {
      const bool sum = binding.first.find_first_of("+-*") != std::string::npos;
      const bool asked = arguments.options.dim_bindings.contains(binding.first);
      return options.dim_ranges.contains(binding.first) || (sum && !asked);
    });
  }
  return request;
}

absl::StatusOr<HostTensor> ModelFile::Weight(const std::string& name) const {
  // Else what was taken would look like what its sender has.
  if (taken_) return Internal("weight ", Quote(name), ": weights of the model were given away");
  return OrMadeUp(name, source_->Load(name));
}

absl::StatusOr<HostTensor> ModelFile::TakeWeight(const std::string& name) const {
  taken_ = true;
  return OrMadeUp(name, source_->Take(name));
}

absl::StatusOr<HostTensor> ModelFile::OrMadeUp(const std::string& name,
                                               absl::StatusOr<HostTensor> bytes) const {
  if (bytes.ok()) return bytes;
  // FailedPrecondition: a model that was stored as it is sent, its bytes left with its sender.
  for (const onnx::TensorProto& tensor : bare_.graph().initializer()) {
    if (tensor.name() != name || !absl::IsFailedPrecondition(bytes.status())) continue;
    made_up_ = true;
    return MakeUpWeight(tensor, name);
  }
  return ExitCodeOf(bytes.status()) == kExitNoMemory ? bytes.status() : BadInput(bytes.status());
}

absl::Status LoadLock(Arguments* arguments) {
  if (arguments->lock.empty()) return absl::OkStatus();
  absl::StatusOr<std::string> text = ReadFile(arguments->lock, kMaxLockBytes);
  if (!text.ok()) return BadInput(Annotate(text.status(), "--lock"));
  absl::StatusOr<PlanLock> lock = LockFromText(*text);
  if (!lock.ok()) {
    return BadInput(Annotate(lock.status(), StrCat("--lock ", Quote(arguments->lock))));
  }
  arguments->options.lock = std::make_shared<const PlanLock>(*std::move(lock));
  return absl::OkStatus();
}

void PrintJson(const Json& json) {
  const std::string text =
      ShownJson(json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

void Print(const std::string& text) { PrintAsItIs(Wrapped(text, StdoutColumns())); }

void PrintAsItIs(const std::string& text) {
  const std::string shown = Shown(text, /*own_colours=*/ColourOnStdout());
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void PrintWarning(std::string_view text) {
  std::fprintf(stderr, "fusionctl: %s\n", Shown(text, /*own_colours=*/false).c_str());
}

}  // namespace fusion
