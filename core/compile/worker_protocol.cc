#include "core/compile/worker_protocol.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cstring>

#include "fusion/v1/worker.pb.h"

namespace fusion {
namespace {

// Longer lists are not produced by us.
constexpr int kMostMembers = 64;
constexpr int kMostRunners = 64;
constexpr int kMostRounds = kMaxTargetThreads;
// Fields of a job or race: its own, once for each element of a list, which are some hundred.
constexpr int kMostFields = 4096;

template <typename... Words>
absl::Status Malformed(const Words&... words) {
  return InvalidArgument("worker message: ", words...);
}

// Skips a field with tag `tag`. Groups are not used.
bool SkipField(uint32_t tag, google::protobuf::io::CodedInputStream* in) {
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };
  uint64_t varint = 0;
  uint32_t length = 0;
  switch (tag & 7) {
    case kVarint:
      return in->ReadVarint64(&varint);
    case kFixed64:
      return in->Skip(8);
    case kLengthDelimited:
      return in->ReadVarint32(&length) && length <= kMaxWorkerMessageBytes &&
             in->Skip(static_cast<int>(length));
    case kFixed32:
      return in->Skip(4);
    default:
      return false;
  }
}

// Fields at the top of a message; kMostFields + 1 if there are more, -1 if it is no message.
int CountFields(google::protobuf::io::CodedInputStream* in) {
  int fields = 0;
  while (fields <= kMostFields) {
    const uint32_t tag = in->ReadTag();
    if (tag == 0) return in->ConsumedEntireMessage() ? fields : -1;
    if (!SkipField(tag, in)) return -1;
    ++fields;
  }
  return fields;
}

// A task or a reply is one field that holds a message. An empty list element is two bytes on the
// wire and a hundred in memory, so they are counted before anything is made of them.
absl::Status CheckOutline(std::string_view bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  uint32_t length = 0;
  if (in.ReadTag() == 0 || !in.ReadVarint32(&length) ||
      length != bytes.size() - static_cast<size_t>(in.CurrentPosition())) {
    return Malformed("not one field of ", bytes.size(), " bytes");
  }
  const int fields = CountFields(&in);
  if (fields < 0) return Malformed("damaged within its ", bytes.size(), " bytes");
  if (fields > kMostFields) return Malformed("more than ", kMostFields, " fields");
  return absl::OkStatus();
}

template <typename Wire>
absl::StatusOr<Wire> Parse(std::string_view bytes) {
  if (bytes.size() > kMaxWorkerMessageBytes) return Malformed(bytes.size(), " bytes");
  RETURN_IF_ERROR(CheckOutline(bytes));
  Wire message;
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return message;
  return Malformed("damaged within its ", bytes.size(), " bytes");
}

// Checks that re-encoding gives the same bytes: no unknown, duplicate or missing fields.
absl::Status CheckSameBytes(std::string_view read, std::string_view written) {
  if (read == written) return absl::OkStatus();
  return Malformed("not the ", read.size(), " bytes that its sender writes");
}

// Moves the elements: sources and binaries are long.
template <typename Repeated>
std::vector<std::string> Texts(Repeated* texts) {
  return {std::make_move_iterator(texts->begin()), std::make_move_iterator(texts->end())};
}

absl::StatusOr<Isa> IsaField(const std::string& name) {
  absl::StatusOr<Isa> isa = ParseIsa(name);
  if (!isa.ok()) return Malformed("field isa: ", Message(isa.status()));
  return isa;
}

v1::WorkerNumerics ToWire(Numerics numerics) {
  switch (numerics) {
    case Numerics::kFp32Accumulate:
      return v1::WORKER_NUMERICS_FP32_ACCUMULATE;
    case Numerics::kBitwise:
      return v1::WORKER_NUMERICS_BITWISE;
    case Numerics::kFast:
      return v1::WORKER_NUMERICS_FAST;
  }
  return v1::WORKER_NUMERICS_UNSPECIFIED;
}

absl::StatusOr<Numerics> FromWire(v1::WorkerNumerics numerics) {
  for (Numerics known : {Numerics::kFp32Accumulate, Numerics::kBitwise, Numerics::kFast}) {
    if (ToWire(known) == numerics) return known;
  }
  return Malformed("field numerics: unknown value ", static_cast<int>(numerics));
}

// A count or an amount.
absl::Status CheckRange(std::string_view name, int64_t value, int64_t most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return Malformed("field ", name, ": ", value, "; expected 0..", most);
}

absl::Status CheckText(std::string_view name, std::string_view text) {
  if (text.size() <= kMaxWorkerTextBytes) return absl::OkStatus();
  return Malformed("field ", name, ": ", text.size(), " bytes; at most ", kMaxWorkerTextBytes);
}

// Names go into log lines and status pages.
absl::Status CheckName(std::string_view name, std::string_view text) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (printable && text.size() <= kMaxWorkerNameBytes) return absl::OkStatus();
  return Malformed("field ", name, ": not at most ", kMaxWorkerNameBytes, " printable characters");
}

void WriteJob(const WorkerJob& work, v1::WorkerJob* out) {
  const CompileJob& job = work.job;
  out->set_key(std::string(BytesOf(job.key)));
  out->set_full_key(job.full_key);
  out->set_symbol(job.symbol);
  out->set_source(job.source);
  out->set_schedule(job.schedule);
  out->set_reference(job.reference);
  for (const CheckedMember& member : job.members) {
    v1::WorkerCheckedMember* added = out->add_members();
    added->mutable_sizes()->Add(member.sizes.begin(), member.sizes.end());
    added->set_schedule(member.schedule);
    added->set_reference(member.reference);
  }
  out->set_label(job.label);
  out->set_registered(job.registered);
  out->set_backend(job.backend);
  out->set_isa(std::string(IsaName(job.isa)));
  out->set_numerics(ToWire(job.numerics));
  out->set_scratch_bytes(job.scratch_bytes);
  out->set_workspace_bytes(job.workspace_bytes);
  out->set_debug(job.debug);
  for (const std::string& word : work.compile_argv) out->add_compile_argv(word);
  for (const std::string& word : work.link_argv) out->add_link_argv(word);
  out->set_command_limit_ns(work.command_limit.count());
  v1::WorkerCommandLimits* limits = out->mutable_limits();
  limits->set_cpu_seconds(work.limits.cpu_seconds);
  limits->set_memory_bytes(work.limits.memory_bytes);
  limits->set_file_bytes(work.limits.file_bytes);
  limits->set_open_files(work.limits.open_files);
  out->set_log_bytes(work.log_bytes);
}

absl::StatusOr<WorkerJob> ReadJob(v1::WorkerJob& in) {
  WorkerJob work;
  CompileJob& job = work.job;
  if (in.key().size() != job.key.bytes.size()) {
    return Malformed("field key: ", in.key().size(), " bytes");
  }
  std::memcpy(job.key.bytes.data(), in.key().data(), in.key().size());
  job.full_key = std::move(*in.mutable_full_key());
  job.symbol = std::move(*in.mutable_symbol());
  job.source = std::move(*in.mutable_source());
  job.schedule = std::move(*in.mutable_schedule());
  job.reference = std::move(*in.mutable_reference());
  RETURN_IF_ERROR(CheckRange("members", in.members_size(), kMostMembers));
  for (v1::WorkerCheckedMember& member : *in.mutable_members()) {
    job.members.push_back({.sizes = {member.sizes().begin(), member.sizes().end()},
                           .schedule = std::move(*member.mutable_schedule()),
                           .reference = std::move(*member.mutable_reference())});
  }
  job.label = std::move(*in.mutable_label());
  job.registered = std::move(*in.mutable_registered());
  job.backend = std::move(*in.mutable_backend());
  ASSIGN_OR_RETURN(job.isa, IsaField(in.isa()));
  ASSIGN_OR_RETURN(job.numerics, FromWire(in.numerics()));
  job.scratch_bytes = in.scratch_bytes();
  job.workspace_bytes = in.workspace_bytes();
  job.debug = in.debug();
  work.compile_argv = Texts(in.mutable_compile_argv());
  work.link_argv = Texts(in.mutable_link_argv());
  work.command_limit = Nanoseconds(in.command_limit_ns());
  work.limits = {.cpu_seconds = in.limits().cpu_seconds(),
                 .memory_bytes = in.limits().memory_bytes(),
                 .file_bytes = in.limits().file_bytes(),
                 .open_files = in.limits().open_files()};
  work.log_bytes = in.log_bytes();
  return work;
}

void WriteRace(const KernelRace& race, v1::WorkerRace* out) {
  out->set_label(race.label);
  out->set_backend(race.backend);
  out->set_isa(std::string(IsaName(race.isa)));
  for (const KernelRace::Runner& runner : race.runners) {
    v1::WorkerRaceRunner* added = out->add_runners();
    added->set_symbol(runner.symbol);
    added->set_binary(runner.binary);
    added->set_schedule(runner.schedule);
    added->set_reference(runner.reference);
  }
  out->set_threads(race.threads);
  out->set_displaced_bytes(race.displaced_bytes);
  out->set_least_runs(race.least_runs);
  out->set_most_runs(race.most_runs);
  out->set_wanted_ns(race.wanted.count());
  out->set_least_pairs(race.least_pairs);
  out->set_most_pairs(race.most_pairs);
  out->set_wanted_pairs_ns(race.wanted_pairs.count());
  out->set_limit_ns(race.limit.count());
}

absl::Status CheckAmounts(const v1::WorkerRace& in) {
  RETURN_IF_ERROR(CheckRange("runners", in.runners_size(), kMostRunners));
  RETURN_IF_ERROR(CheckRange("threads", in.threads(), kMaxTargetThreads));
  RETURN_IF_ERROR(CheckRange("least_runs", in.least_runs(), kMostRounds));
  RETURN_IF_ERROR(CheckRange("most_runs", in.most_runs(), kMostRounds));
  RETURN_IF_ERROR(CheckRange("least_pairs", in.least_pairs(), kMostRounds));
  RETURN_IF_ERROR(CheckRange("most_pairs", in.most_pairs(), kMostRounds));
  RETURN_IF_ERROR(CheckRange("displaced_bytes", in.displaced_bytes(), INT64_MAX));
  RETURN_IF_ERROR(CheckRange("wanted_ns", in.wanted_ns(), INT64_MAX));
  RETURN_IF_ERROR(CheckRange("wanted_pairs_ns", in.wanted_pairs_ns(), INT64_MAX));
  return CheckRange("limit_ns", in.limit_ns(), INT64_MAX);
}

absl::StatusOr<KernelRace> ReadRace(v1::WorkerRace& in) {
  RETURN_IF_ERROR(CheckAmounts(in));
  KernelRace race;
  race.label = std::move(*in.mutable_label());
  race.backend = std::move(*in.mutable_backend());
  ASSIGN_OR_RETURN(race.isa, IsaField(in.isa()));
  for (v1::WorkerRaceRunner& runner : *in.mutable_runners()) {
    race.runners.push_back({.symbol = std::move(*runner.mutable_symbol()),
                            .binary = std::move(*runner.mutable_binary()),
                            .schedule = std::move(*runner.mutable_schedule()),
                            .reference = std::move(*runner.mutable_reference())});
  }
  race.threads = in.threads();
  race.displaced_bytes = in.displaced_bytes();
  race.least_runs = in.least_runs();
  race.most_runs = in.most_runs();
  race.wanted = Nanoseconds(in.wanted_ns());
  race.least_pairs = in.least_pairs();
  race.most_pairs = in.most_pairs();
  race.wanted_pairs = Nanoseconds(in.wanted_pairs_ns());
  race.limit = Nanoseconds(in.limit_ns());
  return race;
}

void WriteStatus(const absl::Status& status, v1::WorkerStatus* out) {
  out->set_code(static_cast<int32_t>(status.code()));
  out->set_message(std::string(Message(status)));
}

// The status in a result; the returned status: it is malformed.
absl::Status ReadStatus(const v1::WorkerStatus& in, absl::Status* out) {
  RETURN_IF_ERROR(
      CheckRange("code", in.code(), static_cast<int64_t>(absl::StatusCode::kUnauthenticated)));
  RETURN_IF_ERROR(CheckText("message", in.message()));
  *out = absl::Status(static_cast<absl::StatusCode>(in.code()), in.message());
  return absl::OkStatus();
}

void WriteResult(const WorkerResult& result, v1::WorkerResult* out) {
  WriteStatus(result.status, out->mutable_status());
  out->set_log(result.log);
  out->set_binary(result.binary);
  out->set_built(result.built);
  out->set_out_of_memory(result.out_of_memory);
  v1::WorkerCheck* check = out->mutable_check();
  check->set_verified(result.check.verified);
  check->set_reason(result.check.reason);
  check->set_max_abs(result.check.max_abs);
  check->set_max_rel(result.check.max_rel);
  check->set_elements(result.check.elements);
  check->set_outside(result.check.outside);
  out->set_compile_ms(result.compile_ms);
  out->set_check_ms(result.check_ms);
}

absl::StatusOr<WorkerReply> ReadResult(v1::WorkerResult& in) {
  WorkerResult result;
  RETURN_IF_ERROR(ReadStatus(in.status(), &result.status));
  RETURN_IF_ERROR(CheckText("log", in.log()));
  result.log = std::move(*in.mutable_log());
  result.binary = std::move(*in.mutable_binary());
  if (result.status.ok() && result.binary.empty()) return Malformed("success without a binary");
  result.built = in.built();
  result.out_of_memory = in.out_of_memory();
  const v1::WorkerCheck& check = in.check();
  RETURN_IF_ERROR(CheckText("reason", check.reason()));
  RETURN_IF_ERROR(CheckRange("elements", check.elements(), INT64_MAX));
  RETURN_IF_ERROR(CheckRange("outside", check.outside(), INT64_MAX));
  result.check = {.verified = check.verified(),
                  .reason = check.reason(),
                  .max_abs = check.max_abs(),
                  .max_rel = check.max_rel(),
                  .elements = check.elements(),
                  .outside = check.outside()};
  result.compile_ms = in.compile_ms();
  result.check_ms = in.check_ms();
  // Written so that NaN fails too.
  constexpr double kMaxMs = 1e12;
  auto is_time = [](double ms) { return ms >= 0 && ms <= kMaxMs; };
  if (!is_time(result.compile_ms) || !is_time(result.check_ms)) {
    return Malformed("times of ", result.compile_ms, " and ", result.check_ms, " ms");
  }
  return WorkerReply(std::move(result));
}

void WriteTimes(const RaceTimes& times, v1::WorkerRaceResult* out) {
  out->set_refusal(times.refusal);
  for (const RaceTimes::Runner& runner : times.runners) {
    v1::WorkerRunnerTimes* added = out->add_runners();
    added->set_refusal(runner.refusal);
    added->mutable_us()->Add(runner.us.begin(), runner.us.end());
  }
  out->set_rival(times.rival);
  out->mutable_first_us()->Add(times.first_us.begin(), times.first_us.end());
  out->mutable_rival_us()->Add(times.rival_us.begin(), times.rival_us.end());
}

absl::StatusOr<std::vector<double>> ReadTimes(
    std::string_view name, const google::protobuf::RepeatedField<double>& times) {
  RETURN_IF_ERROR(CheckRange(name, times.size(), kMostRounds));
  for (double us : times) {
    // Written so that NaN fails too. There are ratios of them.
    if (!(us > 0 && us < 1e12)) return Malformed("field ", name, ": a time of ", us, " us");
  }
  return std::vector<double>(times.begin(), times.end());
}

absl::StatusOr<WorkerReply> ReadRaceResult(const v1::WorkerRaceResult& in) {
  WorkerRaceResult race;
  RETURN_IF_ERROR(ReadStatus(in.status(), &race.status));
  RETURN_IF_ERROR(CheckText("refusal", in.refusal()));
  race.times.refusal = in.refusal();
  RETURN_IF_ERROR(CheckRange("runners", in.runners_size(), kMostRunners));
  for (const v1::WorkerRunnerTimes& runner : in.runners()) {
    RETURN_IF_ERROR(CheckText("refusal", runner.refusal()));
    ASSIGN_OR_RETURN(std::vector<double> us, ReadTimes("us", runner.us()));
    race.times.runners.push_back({.refusal = runner.refusal(), .us = std::move(us)});
  }
  RETURN_IF_ERROR(CheckRange("rival", in.rival(), std::max(0, in.runners_size() - 1)));
  race.times.rival = in.rival();
  ASSIGN_OR_RETURN(race.times.first_us, ReadTimes("first_us", in.first_us()));
  ASSIGN_OR_RETURN(race.times.rival_us, ReadTimes("rival_us", in.rival_us()));
  if (in.first_us_size() != in.rival_us_size()) {
    return Malformed(in.first_us_size(), " times of the first, ", in.rival_us_size(),
                     " of its rival");
  }
  return WorkerReply(std::move(race));
}

absl::StatusOr<WorkerReply> ReadHello(const v1::WorkerHello& in) {
  RETURN_IF_ERROR(CheckName("isa", in.isa()));
  RETURN_IF_ERROR(CheckName("sandbox", in.sandbox()));
  return WorkerHello{in.abi_version(), in.isa(), in.sandbox()};
}

absl::StatusOr<WorkerReply> ReadStage(const v1::WorkerStage& in) {
  RETURN_IF_ERROR(CheckName("stage", in.stage()));
  return WorkerStage{in.stage()};
}

absl::StatusOr<WorkerReply> ReadReply(v1::WorkerReply& in) {
  switch (in.reply_case()) {
    case v1::WorkerReply::kHello:
      return ReadHello(in.hello());
    case v1::WorkerReply::kStage:
      return ReadStage(in.stage());
    case v1::WorkerReply::kResult:
      return ReadResult(*in.mutable_result());
    case v1::WorkerReply::kRace:
      return ReadRaceResult(in.race());
    case v1::WorkerReply::REPLY_NOT_SET:
      break;
  }
  return Malformed("no reply");
}

}  // namespace

std::string EncodeJob(const WorkerJob& work) {
  v1::WorkerTask task;
  WriteJob(work, task.mutable_job());
  return task.SerializeAsString();
}

std::string EncodeRace(const KernelRace& race) {
  v1::WorkerTask task;
  WriteRace(race, task.mutable_race());
  return task.SerializeAsString();
}

absl::StatusOr<WorkerTask> DecodeTask(std::string_view bytes) {
  ASSIGN_OR_RETURN(v1::WorkerTask in, Parse<v1::WorkerTask>(bytes));
  if (in.has_job()) {
    ASSIGN_OR_RETURN(WorkerJob job, ReadJob(*in.mutable_job()));
    RETURN_IF_ERROR(CheckSameBytes(bytes, EncodeJob(job)));
    return WorkerTask(std::move(job));
  }
  if (!in.has_race()) return Malformed("no task");
  ASSIGN_OR_RETURN(KernelRace race, ReadRace(*in.mutable_race()));
  RETURN_IF_ERROR(CheckSameBytes(bytes, EncodeRace(race)));
  return WorkerTask(std::move(race));
}

std::string EncodeReply(const WorkerReply& reply) {
  v1::WorkerReply out;
  if (const auto* hello = std::get_if<WorkerHello>(&reply)) {
    out.mutable_hello()->set_abi_version(hello->abi_version);
    out.mutable_hello()->set_isa(hello->isa);
    out.mutable_hello()->set_sandbox(hello->sandbox);
  } else if (const auto* stage = std::get_if<WorkerStage>(&reply)) {
    out.mutable_stage()->set_stage(stage->stage);
  } else if (const auto* race = std::get_if<WorkerRaceResult>(&reply)) {
    WriteStatus(race->status, out.mutable_race()->mutable_status());
    WriteTimes(race->times, out.mutable_race());
  } else {
    WriteResult(std::get<WorkerResult>(reply), out.mutable_result());
  }
  return out.SerializeAsString();
}

absl::StatusOr<WorkerReply> DecodeReply(std::string_view bytes) {
  ASSIGN_OR_RETURN(v1::WorkerReply in, Parse<v1::WorkerReply>(bytes));
  ASSIGN_OR_RETURN(WorkerReply reply, ReadReply(in));
  RETURN_IF_ERROR(CheckSameBytes(bytes, EncodeReply(reply)));
  return reply;
}

}  // namespace fusion
