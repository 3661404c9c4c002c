#include "core/compile/worker_protocol.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/compile/flat_message.h"

namespace fusion {
namespace {

// Words of a command line never contain it.
constexpr char kSeparator = '\0';

std::vector<std::string> Words(const std::string& joined) {
  std::vector<std::string> words;
  for (std::string_view word : StrSplit(joined, kSeparator)) words.emplace_back(word);
  return words;
}

template <typename Enum>
absl::StatusOr<Enum> EnumField(const FlatMessage& message, const std::string& name, Enum last) {
  ASSIGN_OR_RETURN(int64_t value, message.Int(name));
  if (value < 0 || value > static_cast<int64_t>(last)) {
    return InvalidArgument("message field ", Quote(name), ": unknown value ", value);
  }
  return static_cast<Enum>(value);
}

void SetCheck(const CheckReport& check, FlatMessage* message) {
  message->SetFlag("verified", check.verified);
  message->SetText("reason", check.reason);
  message->SetNumber("max_abs", check.max_abs);
  message->SetNumber("max_rel", check.max_rel);
  message->SetInt("elements", check.elements);
  message->SetInt("outside", check.outside);
}

absl::StatusOr<CheckReport> GetCheck(const FlatMessage& message) {
  CheckReport check;
  ASSIGN_OR_RETURN(check.verified, message.Flag("verified"));
  ASSIGN_OR_RETURN(check.reason, message.Text("reason"));
  ASSIGN_OR_RETURN(check.max_abs, message.Number("max_abs"));
  ASSIGN_OR_RETURN(check.max_rel, message.Number("max_rel"));
  ASSIGN_OR_RETURN(check.elements, message.Int("elements"));
  ASSIGN_OR_RETURN(check.outside, message.Int("outside"));
  if (check.elements < 0 || check.outside < 0) {
    return InvalidArgument("message: negative element counts");
  }
  return check;
}

// The status of a result; the outer one: it has none.
absl::Status GetStatus(const FlatMessage& message, absl::Status* out) {
  ASSIGN_OR_RETURN(int64_t code, message.Int("code"));
  ASSIGN_OR_RETURN(std::string text, message.Text("message"));
  if (code < 0 || code > static_cast<int64_t>(absl::StatusCode::kUnauthenticated)) {
    return InvalidArgument("message field \"code\": unknown value ", code);
  }
  *out = absl::Status(static_cast<absl::StatusCode>(code), text);
  return absl::OkStatus();
}

void SetStatus(const absl::Status& status, FlatMessage* message) {
  message->SetInt("code", static_cast<int64_t>(status.code()));
  message->SetText("message", Message(status));
}

absl::StatusOr<WorkerResult> GetResult(const FlatMessage& message) {
  WorkerResult result;
  RETURN_IF_ERROR(GetStatus(message, &result.status));
  ASSIGN_OR_RETURN(result.log, message.Text("log"));
  ASSIGN_OR_RETURN(result.binary, message.Text("binary"));
  if (result.status.ok() && result.binary.empty()) {
    return InvalidArgument("message: success without a binary");
  }
  ASSIGN_OR_RETURN(result.built, message.Flag("built"));
  ASSIGN_OR_RETURN(result.out_of_memory, message.Flag("out_of_memory"));
  ASSIGN_OR_RETURN(result.check, GetCheck(message));
  ASSIGN_OR_RETURN(result.compile_ms, message.Number("compile_ms"));
  ASSIGN_OR_RETURN(result.check_ms, message.Number("check_ms"));
  // Written so that NaN fails too.
  if (!(result.compile_ms >= 0 && result.check_ms >= 0)) {
    return InvalidArgument("message: times of ", result.compile_ms, " and ", result.check_ms,
                           " ms");
  }
  return result;
}

// Members beyond this are no job of ours.
constexpr int64_t kMostMembers = 64;

// Fields "member <i> schedule", "member <i> reference", "member <i> sizes".
void SetMembers(const std::vector<CheckedMember>& members, FlatMessage* message) {
  message->SetInt("members", static_cast<int64_t>(members.size()));
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string field = StrCat("member ", i);
    message->SetText(StrCat(field, " schedule"), members[i].schedule);
    message->SetText(StrCat(field, " reference"), members[i].reference);
    message->SetText(StrCat(field, " sizes"), StrJoin(members[i].sizes, " "));
  }
}

absl::StatusOr<std::vector<CheckedMember>> GetMembers(const FlatMessage& message) {
  ASSIGN_OR_RETURN(int64_t count, message.Int("members"));
  if (count < 0 || count > kMostMembers) {
    return InvalidArgument("message field \"members\": ", count);
  }
  std::vector<CheckedMember> members(static_cast<size_t>(count));
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string field = StrCat("member ", i);
    ASSIGN_OR_RETURN(members[i].schedule, message.Text(StrCat(field, " schedule")));
    ASSIGN_OR_RETURN(members[i].reference, message.Text(StrCat(field, " reference")));
    ASSIGN_OR_RETURN(std::string sizes, message.Text(StrCat(field, " sizes")));
    for (std::string_view word : StrSplit(sizes, ' ')) {
      if (word.empty()) continue;
      int64_t size = 0;
      auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
      if (error != std::errc() || end != word.data() + word.size()) {
        return InvalidArgument("message field ", Quote(StrCat(field, " sizes")), ": ",
                               Quote(sizes));
      }
      members[i].sizes.push_back(size);
    }
  }
  return members;
}

absl::StatusOr<WorkerJob> GetJob(const FlatMessage& message) {
  WorkerJob work;
  ASSIGN_OR_RETURN(std::string key, message.Text("key"));
  if (key.size() != work.job.key.bytes.size()) {
    return InvalidArgument("message field \"key\": ", key.size(), " bytes");
  }
  std::memcpy(work.job.key.bytes.data(), key.data(), key.size());
  ASSIGN_OR_RETURN(work.job.full_key, message.Text("full_key"));
  ASSIGN_OR_RETURN(work.job.symbol, message.Text("symbol"));
  ASSIGN_OR_RETURN(work.job.source, message.Text("source"));
  ASSIGN_OR_RETURN(work.job.schedule, message.Text("schedule"));
  ASSIGN_OR_RETURN(work.job.reference, message.Text("reference"));
  ASSIGN_OR_RETURN(work.job.members, GetMembers(message));
  ASSIGN_OR_RETURN(work.job.label, message.Text("label"));
  ASSIGN_OR_RETURN(work.job.registered, message.Text("registered"));
  ASSIGN_OR_RETURN(work.job.backend, message.Text("backend"));
  ASSIGN_OR_RETURN(work.job.isa, EnumField(message, "isa", kIsas.back()));
  ASSIGN_OR_RETURN(work.job.numerics, EnumField(message, "numerics", Numerics::kFast));
  ASSIGN_OR_RETURN(work.job.scratch_bytes, message.Int("scratch_bytes"));
  ASSIGN_OR_RETURN(work.job.workspace_bytes, message.Int("workspace_bytes"));
  ASSIGN_OR_RETURN(work.job.debug, message.Flag("debug"));
  ASSIGN_OR_RETURN(std::string compile_argv, message.Text("compile_argv"));
  work.compile_argv = Words(compile_argv);
  ASSIGN_OR_RETURN(std::string link_argv, message.Text("link_argv"));
  work.link_argv = Words(link_argv);
  ASSIGN_OR_RETURN(int64_t command_limit_ns, message.Int("command_limit_ns"));
  work.command_limit = Nanoseconds(command_limit_ns);
  ASSIGN_OR_RETURN(work.limits.cpu_seconds, message.Int("cpu_seconds"));
  ASSIGN_OR_RETURN(work.limits.memory_bytes, message.Int("memory_bytes"));
  ASSIGN_OR_RETURN(work.limits.file_bytes, message.Int("file_bytes"));
  ASSIGN_OR_RETURN(work.limits.open_files, message.Int("open_files"));
  ASSIGN_OR_RETURN(work.log_bytes, message.Int("log_bytes"));
  return work;
}

// Runners beyond this are no race of ours.
constexpr int64_t kMostRunners = 64;

std::string RunnerField(size_t i, std::string_view field) {
  return StrCat("runner ", i, " ", field);
}

absl::StatusOr<int64_t> Count(const FlatMessage& message, const std::string& name, int64_t most) {
  ASSIGN_OR_RETURN(int64_t count, message.Int(name));
  if (count >= 0 && count <= most) return count;
  return InvalidArgument("message field ", Quote(name), ": ", count);
}

absl::StatusOr<KernelRace> GetRace(const FlatMessage& message) {
  KernelRace race;
  ASSIGN_OR_RETURN(race.label, message.Text("label"));
  ASSIGN_OR_RETURN(race.backend, message.Text("backend"));
  ASSIGN_OR_RETURN(race.isa, EnumField(message, "isa", kIsas.back()));
  ASSIGN_OR_RETURN(int64_t runners, Count(message, "runners", kMostRunners));
  race.runners.resize(static_cast<size_t>(runners));
  for (size_t i = 0; i < race.runners.size(); ++i) {
    KernelRace::Runner& runner = race.runners[i];
    ASSIGN_OR_RETURN(runner.symbol, message.Text(RunnerField(i, "symbol")));
    ASSIGN_OR_RETURN(runner.binary, message.Text(RunnerField(i, "binary")));
    ASSIGN_OR_RETURN(runner.schedule, message.Text(RunnerField(i, "schedule")));
    ASSIGN_OR_RETURN(runner.reference, message.Text(RunnerField(i, "reference")));
  }
  for (auto [name, field] : {std::pair{"threads", &race.threads},
                             {"least_runs", &race.least_runs},
                             {"most_runs", &race.most_runs},
                             {"least_pairs", &race.least_pairs},
                             {"most_pairs", &race.most_pairs}}) {
    ASSIGN_OR_RETURN(int64_t value, Count(message, name, kMaxTargetThreads));
    *field = static_cast<int>(value);
  }
  ASSIGN_OR_RETURN(race.displaced_bytes, Count(message, "displaced_bytes", INT64_MAX));
  for (auto [name, field] : {std::pair{"wanted_ns", &race.wanted},
                             {"wanted_pairs_ns", &race.wanted_pairs},
                             {"limit_ns", &race.limit}}) {
    ASSIGN_OR_RETURN(int64_t value, Count(message, name, INT64_MAX));
    *field = Nanoseconds(value);
  }
  return race;
}

// Numbers as they lie in memory: both ends are one build on one machine.
std::string PackTimes(const std::vector<double>& times) {
  return std::string(reinterpret_cast<const char*>(times.data()), times.size() * sizeof(double));
}

absl::StatusOr<std::vector<double>> Times(const FlatMessage& message, const std::string& name) {
  ASSIGN_OR_RETURN(std::string bytes, message.Text(name));
  std::vector<double> times(bytes.size() / sizeof(double));
  if (bytes.size() != times.size() * sizeof(double)) {
    return InvalidArgument("message field ", Quote(name), ": ", bytes.size(), " bytes");
  }
  if (!bytes.empty()) std::memcpy(times.data(), bytes.data(), bytes.size());
  for (double us : times) {
    // Written so that NaN fails too. There are ratios of them.
    if (!(us > 0 && us < 1e12)) {
      return InvalidArgument("message field ", Quote(name), ": a time of ", us, " us");
    }
  }
  return times;
}

void SetTimes(const RaceTimes& times, FlatMessage* message) {
  message->SetText("refusal", times.refusal);
  message->SetInt("runners", static_cast<int64_t>(times.runners.size()));
  for (size_t i = 0; i < times.runners.size(); ++i) {
    message->SetText(RunnerField(i, "refusal"), times.runners[i].refusal);
    message->SetText(RunnerField(i, "us"), PackTimes(times.runners[i].us));
  }
  message->SetInt("rival", times.rival);
  message->SetText("first_us", PackTimes(times.first_us));
  message->SetText("rival_us", PackTimes(times.rival_us));
}

absl::StatusOr<RaceTimes> GetTimes(const FlatMessage& message) {
  RaceTimes times;
  ASSIGN_OR_RETURN(times.refusal, message.Text("refusal"));
  ASSIGN_OR_RETURN(int64_t runners, Count(message, "runners", kMostRunners));
  times.runners.resize(static_cast<size_t>(runners));
  for (size_t i = 0; i < times.runners.size(); ++i) {
    ASSIGN_OR_RETURN(times.runners[i].refusal, message.Text(RunnerField(i, "refusal")));
    ASSIGN_OR_RETURN(times.runners[i].us, Times(message, RunnerField(i, "us")));
  }
  ASSIGN_OR_RETURN(int64_t rival, Count(message, "rival", std::max<int64_t>(0, runners - 1)));
  times.rival = static_cast<int>(rival);
  ASSIGN_OR_RETURN(times.first_us, Times(message, "first_us"));
  ASSIGN_OR_RETURN(times.rival_us, Times(message, "rival_us"));
  if (times.first_us.size() != times.rival_us.size()) {
    return InvalidArgument("message: ", times.first_us.size(), " times of the first, ",
                           times.rival_us.size(), " of its rival");
  }
  return times;
}

}  // namespace

std::string EncodeJob(const WorkerJob& work) {
  FlatMessage message;
  message.SetText("type", "job");
  message.SetText("key", BytesOf(work.job.key));
  message.SetText("full_key", work.job.full_key);
  message.SetText("symbol", work.job.symbol);
  message.SetText("source", work.job.source);
  message.SetText("schedule", work.job.schedule);
  message.SetText("reference", work.job.reference);
  SetMembers(work.job.members, &message);
  message.SetText("label", work.job.label);
  message.SetText("registered", work.job.registered);
  message.SetText("backend", work.job.backend);
  message.SetInt("isa", static_cast<int64_t>(work.job.isa));
  message.SetInt("numerics", static_cast<int64_t>(work.job.numerics));
  message.SetInt("scratch_bytes", work.job.scratch_bytes);
  message.SetInt("workspace_bytes", work.job.workspace_bytes);
  message.SetFlag("debug", work.job.debug);
  std::string separator(1, kSeparator);
  message.SetText("compile_argv", StrJoin(work.compile_argv, separator));
  message.SetText("link_argv", StrJoin(work.link_argv, separator));
  message.SetInt("command_limit_ns", work.command_limit.count());
  message.SetInt("cpu_seconds", work.limits.cpu_seconds);
  message.SetInt("memory_bytes", work.limits.memory_bytes);
  message.SetInt("file_bytes", work.limits.file_bytes);
  message.SetInt("open_files", work.limits.open_files);
  message.SetInt("log_bytes", work.log_bytes);
  return message.Encode();
}

std::string EncodeRace(const KernelRace& race) {
  FlatMessage message;
  message.SetText("type", "race");
  message.SetText("label", race.label);
  message.SetText("backend", race.backend);
  message.SetInt("isa", static_cast<int64_t>(race.isa));
  message.SetInt("runners", static_cast<int64_t>(race.runners.size()));
  for (size_t i = 0; i < race.runners.size(); ++i) {
    const KernelRace::Runner& runner = race.runners[i];
    message.SetText(RunnerField(i, "symbol"), runner.symbol);
    message.SetText(RunnerField(i, "binary"), runner.binary);
    message.SetText(RunnerField(i, "schedule"), runner.schedule);
    message.SetText(RunnerField(i, "reference"), runner.reference);
  }
  message.SetInt("threads", race.threads);
  message.SetInt("displaced_bytes", race.displaced_bytes);
  message.SetInt("least_runs", race.least_runs);
  message.SetInt("most_runs", race.most_runs);
  message.SetInt("wanted_ns", race.wanted.count());
  message.SetInt("least_pairs", race.least_pairs);
  message.SetInt("most_pairs", race.most_pairs);
  message.SetInt("wanted_pairs_ns", race.wanted_pairs.count());
  message.SetInt("limit_ns", race.limit.count());
  return message.Encode();
}

absl::StatusOr<WorkerTask> DecodeTask(std::string_view bytes) {
  ASSIGN_OR_RETURN(FlatMessage message, FlatMessage::Decode(bytes));
  ASSIGN_OR_RETURN(std::string type, message.Text("type"));
  if (type == "job") {
    ASSIGN_OR_RETURN(WorkerJob work, GetJob(message));
    return WorkerTask(std::move(work));
  }
  if (type != "race") return InvalidArgument("message of unknown type ", Quote(type));
  ASSIGN_OR_RETURN(KernelRace race, GetRace(message));
  return WorkerTask(std::move(race));
}

std::string EncodeReply(const WorkerReply& reply) {
  FlatMessage message;
  if (const auto* hello = std::get_if<WorkerHello>(&reply)) {
    message.SetText("type", "hello");
    message.SetInt("abi_version", hello->abi_version);
    message.SetText("isa", hello->isa);
    message.SetText("sandbox", hello->sandbox);
  } else if (const auto* stage = std::get_if<WorkerStage>(&reply)) {
    message.SetText("type", "stage");
    message.SetText("stage", stage->stage);
  } else if (const auto* race = std::get_if<WorkerRaceResult>(&reply)) {
    message.SetText("type", "race");
    SetStatus(race->status, &message);
    SetTimes(race->times, &message);
  } else {
    const auto& result = std::get<WorkerResult>(reply);
    message.SetText("type", "result");
    SetStatus(result.status, &message);
    message.SetText("log", result.log);
    message.SetText("binary", result.binary);
    message.SetFlag("built", result.built);
    message.SetFlag("out_of_memory", result.out_of_memory);
    SetCheck(result.check, &message);
    message.SetNumber("compile_ms", result.compile_ms);
    message.SetNumber("check_ms", result.check_ms);
  }
  return message.Encode();
}

absl::StatusOr<WorkerReply> DecodeReply(std::string_view bytes) {
  ASSIGN_OR_RETURN(FlatMessage message, FlatMessage::Decode(bytes));
  ASSIGN_OR_RETURN(std::string type, message.Text("type"));
  if (type == "hello") {
    WorkerHello hello;
    ASSIGN_OR_RETURN(hello.abi_version, message.Int("abi_version"));
    ASSIGN_OR_RETURN(hello.isa, message.Text("isa"));
    ASSIGN_OR_RETURN(hello.sandbox, message.Text("sandbox"));
    return hello;
  }
  if (type == "stage") {
    WorkerStage stage;
    ASSIGN_OR_RETURN(stage.stage, message.Text("stage"));
    return stage;
  }
  if (type == "result") return GetResult(message);
  if (type == "race") {
    WorkerRaceResult race;
    RETURN_IF_ERROR(GetStatus(message, &race.status));
    ASSIGN_OR_RETURN(race.times, GetTimes(message));
    return WorkerReply(std::move(race));
  }
  return InvalidArgument("message of unknown type ", Quote(type));
}

}  // namespace fusion
