#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cmath>
#include <thread>

#include "core/compile/process/frame_channel.h"
#include "core/compile/worker_protocol.h"
#include "fusion/v1/worker.pb.h"
#include "tests/support/field_count.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

WorkerJob SampleJob() {
  WorkerJob work;
  work.job = {.key = Sha256("k"),
              .full_key = "k",
              .symbol = "fk_1",
              .source = "int x;",
              .schedule = "schedule {}",
              .reference = "program {}",
              .members = {{.sizes = {3, -4}, .schedule = "a", .reference = "b"},
                          {.sizes = {}, .schedule = "c", .reference = "d"}},
              .label = "MatMul",
              .registered = "leaky",
              .backend = "some backend",
              .isa = Isa::kAvx512,
              .numerics = Numerics::kBitwise,
              .scratch_bytes = 6,
              .workspace_bytes = 7,
              .debug = true};
  work.compile_argv = {"/usr/bin/g++", "-O2", ""};
  work.link_argv = {"/usr/bin/ld", "-shared"};
  work.command_limit = seconds(7);
  work.limits = {.cpu_seconds = 1, .memory_bytes = 2, .file_bytes = 3, .open_files = 4};
  work.log_bytes = 5;
  return work;
}

KernelRace SampleRace() {
  return {.label = "MatMul",
          .backend = "some backend",
          .isa = Isa::kAvx512,
          .runners = {{"fk_1", "b1", "s1", "r1"}, {"fk_2", "b2", "s2", "r2"}},
          .threads = 3,
          .displaced_bytes = int64_t{1} << 33,
          .least_runs = 4,
          .most_runs = 5,
          .wanted = milliseconds(6),
          .least_pairs = 7,
          .most_pairs = 8,
          .wanted_pairs = milliseconds(9),
          .limit = seconds(10)};
}

WorkerResult SampleResult() {
  WorkerResult result;
  result.status = DeadlineExceeded("slow");
  result.log = "log";
  result.binary = "elf";
  result.check = {
      .verified = true, .reason = "r", .max_abs = 1.5, .max_rel = 2.5, .elements = 3, .outside = 4};
  result.built = true;
  result.out_of_memory = true;
  result.compile_ms = 5.5;
  result.check_ms = 6.5;
  return result;
}

WorkerRaceResult SampleRaceResult() {
  return {.status = absl::OkStatus(),
          .times = {.refusal = "no",
                    .runners = {{"", {1, 2}}, {"why", {}}},
                    .rival = 1,
                    .first_us = {3, 4},
                    .rival_us = {5, 6}}};
}

// Both directions at once: which type a message has is part of it.
absl::Status Decode(std::string_view bytes) {
  absl::StatusOr<WorkerTask> task = DecodeTask(bytes);
  absl::StatusOr<WorkerReply> reply = DecodeReply(bytes);
  return task.ok() ? absl::OkStatus() : reply.status();
}

std::string WhyNoReply(std::string_view bytes) {
  return std::string(Message(DecodeReply(bytes).status()));
}
std::string WhyNoReply(const v1::WorkerReply& reply) {
  return WhyNoReply(reply.SerializeAsString());
}
std::string WhyNoTask(const v1::WorkerTask& task) {
  return std::string(Message(DecodeTask(task.SerializeAsString()).status()));
}

// What our own functions write, to be damaged.
v1::WorkerReply Reply(const WorkerReply& reply) {
  v1::WorkerReply out;
  EXPECT_TRUE(out.ParseFromString(EncodeReply(reply)));
  return out;
}
v1::WorkerTask Job() {
  v1::WorkerTask out;
  EXPECT_TRUE(out.ParseFromString(EncodeJob(SampleJob())));
  return out;
}
v1::WorkerTask Race() {
  v1::WorkerTask out;
  EXPECT_TRUE(out.ParseFromString(EncodeRace(SampleRace())));
  return out;
}

std::vector<std::string> OneOfEach() {
  return {EncodeJob(SampleJob()),
          EncodeRace(SampleRace()),
          EncodeReply(WorkerHello{1, "avx2", "seccomp"}),
          EncodeReply(WorkerStage{"link"}),
          EncodeReply(SampleResult()),
          EncodeReply(SampleRaceResult())};
}

TEST(WorkerProtocol, EveryFieldOfAJobTravels) {
  // A new field fails here until the protocol carries it and the list below checks it.
  static_assert(FieldCount<CompileJob>() == 15 && FieldCount<CheckedMember>() == 3 &&
                FieldCount<WorkerJob>() == 6 && FieldCount<ProcessLimits>() == 4);
  const WorkerTask task = DecodeTask(EncodeJob(SampleJob())).value();
  const auto& back = std::get<WorkerJob>(task);
  EXPECT_EQ(back.job.key, Sha256("k"));
  EXPECT_EQ(back.job.full_key, "k");
  EXPECT_EQ(back.job.symbol, "fk_1");
  EXPECT_EQ(back.job.source, "int x;");
  EXPECT_EQ(back.job.schedule, "schedule {}");
  EXPECT_EQ(back.job.reference, "program {}");
  ASSERT_EQ(back.job.members.size(), 2);
  EXPECT_EQ(back.job.members[0].sizes, (std::vector<int64_t>{3, -4}));
  EXPECT_EQ(back.job.members[0].schedule, "a");
  EXPECT_EQ(back.job.members[0].reference, "b");
  EXPECT_TRUE(back.job.members[1].sizes.empty());
  EXPECT_EQ(back.job.members[1].schedule, "c");
  EXPECT_EQ(back.job.label, "MatMul");
  EXPECT_EQ(back.job.registered, "leaky");
  EXPECT_EQ(back.job.backend, "some backend");
  EXPECT_EQ(back.job.isa, Isa::kAvx512);
  EXPECT_EQ(back.job.numerics, Numerics::kBitwise);
  EXPECT_EQ(back.job.scratch_bytes, 6);
  EXPECT_EQ(back.job.workspace_bytes, 7);
  EXPECT_TRUE(back.job.debug);
  EXPECT_EQ(back.compile_argv, SampleJob().compile_argv);
  EXPECT_EQ(back.link_argv, SampleJob().link_argv);
  EXPECT_EQ(back.command_limit, seconds(7));
  EXPECT_EQ(back.limits.cpu_seconds, 1);
  EXPECT_EQ(back.limits.memory_bytes, 2);
  EXPECT_EQ(back.limits.file_bytes, 3);
  EXPECT_EQ(back.limits.open_files, 4);
  EXPECT_EQ(back.log_bytes, 5);
}

TEST(WorkerProtocol, EveryFieldOfAReplyTravels) {
  static_assert(FieldCount<WorkerResult>() == 8 && FieldCount<WorkerHello>() == 3 &&
                FieldCount<WorkerStage>() == 1 && FieldCount<CheckReport>() == 6);
  WorkerReply reply = DecodeReply(EncodeReply(SampleResult())).value();
  const auto& back = std::get<WorkerResult>(reply);
  EXPECT_EQ(back.status, DeadlineExceeded("slow"));
  EXPECT_EQ(back.log, "log");
  EXPECT_EQ(back.binary, "elf");
  EXPECT_TRUE(back.built);
  EXPECT_TRUE(back.out_of_memory);
  EXPECT_TRUE(back.check.verified);
  EXPECT_EQ(back.check.reason, "r");
  EXPECT_EQ(back.check.max_abs, 1.5);
  EXPECT_EQ(back.check.max_rel, 2.5);
  EXPECT_EQ(back.check.elements, 3);
  EXPECT_EQ(back.check.outside, 4);
  EXPECT_EQ(back.compile_ms, 5.5);
  EXPECT_EQ(back.check_ms, 6.5);

  WorkerReply hello = DecodeReply(EncodeReply(WorkerHello{1, "avx2", "seccomp"})).value();
  EXPECT_EQ(std::get<WorkerHello>(hello).abi_version, 1);
  EXPECT_EQ(std::get<WorkerHello>(hello).isa, "avx2");
  EXPECT_EQ(std::get<WorkerHello>(hello).sandbox, "seccomp");
  WorkerReply stage = DecodeReply(EncodeReply(WorkerStage{"link"})).value();
  EXPECT_EQ(std::get<WorkerStage>(stage).stage, "link");
}

TEST(WorkerProtocol, HostileRepliesAreRefused) {
  WorkerResult result;  // OK without a binary
  EXPECT_FALSE(DecodeReply(EncodeReply(result)).ok());
  result.binary = "elf";
  EXPECT_TRUE(DecodeReply(EncodeReply(result)).ok());
  result.check.outside = -1;
  EXPECT_FALSE(DecodeReply(EncodeReply(result)).ok());
  result.check.outside = 0;
  result.compile_ms = NAN;
  EXPECT_FALSE(DecodeReply(EncodeReply(result)).ok());
  EXPECT_FALSE(DecodeReply(EncodeJob(SampleJob())).ok());
  EXPECT_FALSE(DecodeTask(EncodeReply(WorkerStage{"x"})).ok());
}

TEST(WorkerProtocol, EveryFieldOfARaceTravels) {
  static_assert(FieldCount<KernelRace>() == 13 && FieldCount<KernelRace::Runner>() == 4 &&
                FieldCount<RaceTimes>() == 5 && FieldCount<RaceTimes::Runner>() == 2);
  const KernelRace race = SampleRace();
  const WorkerTask task = DecodeTask(EncodeRace(race)).value();
  const auto& back = std::get<KernelRace>(task);
  EXPECT_EQ(EncodeRace(back), EncodeRace(race));
  EXPECT_EQ(back.label, "MatMul");
  EXPECT_EQ(back.isa, Isa::kAvx512);
  ASSERT_EQ(back.runners.size(), 2);
  EXPECT_EQ(back.runners[1].symbol, "fk_2");
  EXPECT_EQ(back.runners[1].binary, "b2");
  EXPECT_EQ(back.runners[1].schedule, "s2");
  EXPECT_EQ(back.runners[1].reference, "r2");
  EXPECT_EQ(back.threads, 3);
  EXPECT_EQ(back.displaced_bytes, int64_t{1} << 33);
  EXPECT_EQ(back.least_runs, 4);
  EXPECT_EQ(back.most_runs, 5);
  EXPECT_EQ(back.wanted, milliseconds(6));
  EXPECT_EQ(back.least_pairs, 7);
  EXPECT_EQ(back.most_pairs, 8);
  EXPECT_EQ(back.wanted_pairs, milliseconds(9));
  EXPECT_EQ(back.limit, seconds(10));

  const WorkerReply reply = DecodeReply(EncodeReply(SampleRaceResult())).value();
  const auto& times = std::get<WorkerRaceResult>(reply).times;
  EXPECT_EQ(times.refusal, "no");
  EXPECT_EQ(times.runners[0].us, (std::vector<double>{1, 2}));
  EXPECT_EQ(times.runners[1].refusal, "why");
  EXPECT_EQ(times.rival, 1);
  EXPECT_EQ(times.first_us, (std::vector<double>{3, 4}));
  EXPECT_EQ(times.rival_us, (std::vector<double>{5, 6}));
}

TEST(WorkerProtocol, TimesThatCannotBeAreErrors) {
  const auto fails = [](RaceTimes times) {
    return !DecodeReply(EncodeReply(WorkerRaceResult{absl::OkStatus(), std::move(times)})).ok();
  };
  EXPECT_FALSE(fails({.runners = {{"", {1}}}, .first_us = {}, .rival_us = {}}));
  EXPECT_TRUE(fails({.runners = {{"", {NAN}}}, .first_us = {}, .rival_us = {}}));
  EXPECT_TRUE(fails({.runners = {{"", {-1}}}, .first_us = {}, .rival_us = {}}));
  EXPECT_TRUE(fails({.runners = {{"", {0}}}, .first_us = {}, .rival_us = {}})) << "no ratio";
  EXPECT_TRUE(fails({.runners = {{"", {1}}}, .rival = 1, .first_us = {}, .rival_us = {}}));
  EXPECT_TRUE(fails({.runners = {{"", {1}}}, .first_us = {1, 2}, .rival_us = {1}}));
}

// They end in histograms, where one infinity would stay.
TEST(WorkerProtocol, TimesOfCompilersAreFinite) {
  for (const double ms : {double{INFINITY}, double{NAN}, -1.0}) {
    WorkerResult compiled = SampleResult();
    compiled.compile_ms = ms;
    EXPECT_FALSE(DecodeReply(EncodeReply(compiled)).ok()) << ms;
    WorkerResult checked = SampleResult();
    checked.check_ms = ms;
    EXPECT_FALSE(DecodeReply(EncodeReply(checked)).ok()) << ms;
  }
}

TEST(WorkerProtocol, EveryValueOfAnEnumTravels) {
  WorkerJob work = SampleJob();
  for (Isa isa : kIsas) {
    for (Numerics numerics : {Numerics::kFp32Accumulate, Numerics::kBitwise, Numerics::kFast}) {
      work.job.isa = isa;
      work.job.numerics = numerics;
      const WorkerTask task = DecodeTask(EncodeJob(work)).value();
      EXPECT_EQ(std::get<WorkerJob>(task).job.isa, isa);
      EXPECT_EQ(std::get<WorkerJob>(task).job.numerics, numerics);
    }
  }
}

TEST(WorkerProtocol, TextsAndNumbersHoldAnyValue) {
  const std::string bytes("a\0\xff\xc1", 4);
  WorkerJob work = SampleJob();
  work.job.source = bytes;
  work.compile_argv = {bytes, "", "-O2"};
  work.link_argv = {};
  work.job.scratch_bytes = INT64_MIN;
  work.log_bytes = INT64_MAX;
  const WorkerTask task = DecodeTask(EncodeJob(work)).value();
  EXPECT_EQ(std::get<WorkerJob>(task).job.source, bytes);
  EXPECT_EQ(std::get<WorkerJob>(task).compile_argv, work.compile_argv);
  EXPECT_TRUE(std::get<WorkerJob>(task).link_argv.empty());
  EXPECT_EQ(std::get<WorkerJob>(task).job.scratch_bytes, INT64_MIN);
  EXPECT_EQ(std::get<WorkerJob>(task).log_bytes, INT64_MAX);

  WorkerResult result = SampleResult();
  result.status = Internal(bytes);
  result.log = bytes;
  result.check.max_abs = NAN;
  result.check.max_rel = INFINITY;
  const WorkerReply reply = DecodeReply(EncodeReply(result)).value();
  const auto& back = std::get<WorkerResult>(reply);
  EXPECT_EQ(Message(back.status), bytes);
  EXPECT_EQ(back.log, bytes);
  EXPECT_TRUE(std::isnan(back.check.max_abs));
  EXPECT_EQ(back.check.max_rel, INFINITY);
}

// Whatever is accepted is exactly what an encoder writes of it: no bytes are read past.
void ExpectRefusedOrCanonical(const std::string& bytes) {
  absl::StatusOr<WorkerReply> reply = DecodeReply(bytes);
  if (reply.ok()) {
    EXPECT_EQ(EncodeReply(*reply), bytes);
  }
  absl::StatusOr<WorkerTask> task = DecodeTask(bytes);
  if (!task.ok()) return;
  const auto* job = std::get_if<WorkerJob>(&*task);
  EXPECT_EQ(job != nullptr ? EncodeJob(*job) : EncodeRace(std::get<KernelRace>(*task)), bytes);
}

TEST(WorkerProtocol, TruncatedAndDamagedMessagesAreRefused) {
  for (const std::string& bytes : OneOfEach()) {
    ASSERT_TRUE(Decode(bytes).ok()) << Decode(bytes);
    EXPECT_FALSE(Decode(bytes + bytes).ok());
    EXPECT_FALSE(Decode(bytes + '\0').ok());
    for (size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_FALSE(Decode(bytes.substr(0, i)).ok()) << i;
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        ExpectRefusedOrCanonical(damaged);
      }
      // A length or a list one longer or shorter, or a byte of another message.
      ExpectRefusedOrCanonical(bytes.substr(0, i) + bytes.substr(i + 1));
      ExpectRefusedOrCanonical(bytes.substr(0, i) + '\x01' + bytes.substr(i));
    }
  }
}

TEST(WorkerProtocol, GarbageIsAnError) {
  using namespace std::string_view_literals;
  for (std::string_view bytes :
       {""sv, "\xc1"sv, "\0"sv, "\x0a"sv, "\x0a\x01"sv, "\x1a\0"sv, "\x08\x01"sv,
        "\x0a\xff\xff\xff\xff\x0f"sv, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv,
        "\x0b\x0c"sv, "\x12\x02\x0b\x0c"sv, "\x12\x02\x0e\x01"sv, "\x7a\0"sv}) {
    EXPECT_FALSE(DecodeReply(bytes).ok()) << Quote(bytes);
    EXPECT_FALSE(DecodeTask(bytes).ok()) << Quote(bytes);
  }
  // Groups within groups, and messages within unknown messages.
  EXPECT_FALSE(DecodeReply(std::string(1 << 20, '\x0b')).ok());
  EXPECT_FALSE(DecodeReply(std::string(1 << 20, '\x12')).ok());
}

TEST(WorkerProtocol, UnknownFieldsAreRefused) {
  v1::WorkerReply reply = Reply(SampleResult());
  EXPECT_EQ(WhyNoReply(reply), "");
  ASSERT_TRUE(reply.mutable_result()->MergeFromString("\x78\x01"));
  EXPECT_THAT(WhyNoReply(reply), HasSubstr("bytes that its sender writes"));
  reply = Reply(SampleResult());
  ASSERT_TRUE(reply.mutable_result()->mutable_check()->MergeFromString("\x78\x01"));
  EXPECT_THAT(WhyNoReply(reply), HasSubstr("bytes that its sender writes"));
  EXPECT_THAT(WhyNoReply(EncodeReply(WorkerStage{"link"}) + "\x7a\x01x"),
              HasSubstr("not one field"));
  // A field of ours twice: the last one would count.
  std::string twice = EncodeReply(WorkerStage{"link"});
  twice += twice.substr(2);
  twice[1] = static_cast<char>(twice.size() - 2);
  EXPECT_THAT(WhyNoReply(twice), HasSubstr("bytes that its sender writes"));
}

TEST(WorkerProtocol, MissingMessagesAreRefused) {
  v1::WorkerReply reply = Reply(SampleResult());
  reply.mutable_result()->clear_status();
  EXPECT_NE(WhyNoReply(reply), "");
  reply = Reply(SampleResult());
  reply.mutable_result()->clear_check();
  EXPECT_NE(WhyNoReply(reply), "");
  v1::WorkerTask task = Job();
  task.mutable_job()->clear_limits();
  EXPECT_NE(WhyNoTask(task), "");
  task = Job();
  task.mutable_job()->clear_key();
  EXPECT_THAT(WhyNoTask(task), HasSubstr("field key: 0 bytes"));
}

TEST(WorkerProtocol, UnknownEnumValuesAreRefused) {
  v1::WorkerTask task = Job();
  EXPECT_EQ(WhyNoTask(task), "");
  for (int value : {0, 4, -1, 1 << 30}) {
    task.mutable_job()->set_numerics(static_cast<v1::WorkerNumerics>(value));
    EXPECT_THAT(WhyNoTask(task), HasSubstr(StrCat("numerics: unknown value ", value)));
  }
  task = Job();
  task.mutable_job()->set_isa("avx3");
  EXPECT_THAT(WhyNoTask(task), HasSubstr("field isa"));
  task = Race();
  task.mutable_race()->set_isa("");
  EXPECT_THAT(WhyNoTask(task), HasSubstr("field isa"));
  v1::WorkerReply reply = Reply(SampleResult());
  for (int code : {-1, 17, 1 << 30}) {
    reply.mutable_result()->mutable_status()->set_code(code);
    EXPECT_THAT(WhyNoReply(reply), HasSubstr(StrCat("field code: ", code)));
  }
}

TEST(WorkerProtocol, NamesOfAReplyArePrintableAndShort) {
  for (const std::string& name :
       {std::string("\xff\xfe"), std::string("a\nb"), std::string(1, '\0'), std::string("\xc3\xa4"),
        std::string(257, 'x')}) {
    EXPECT_NE(WhyNoReply(EncodeReply(WorkerStage{name})), "") << Quote(name);
    EXPECT_NE(WhyNoReply(EncodeReply(WorkerHello{1, name, "s"})), "") << Quote(name);
    EXPECT_NE(WhyNoReply(EncodeReply(WorkerHello{1, "avx2", name})), "") << Quote(name);
  }
  EXPECT_EQ(WhyNoReply(EncodeReply(WorkerStage{std::string(256, 'x')})), "");
}

TEST(WorkerProtocol, LongListsAndTextsAreRefused) {
  v1::WorkerTask task = Job();
  while (task.job().members_size() < 64) task.mutable_job()->add_members();
  EXPECT_EQ(WhyNoTask(task), "");
  task.mutable_job()->add_members();
  EXPECT_THAT(WhyNoTask(task), HasSubstr("field members: 65; expected 0..64"));
  task = Race();
  while (task.race().runners_size() < 65) task.mutable_race()->add_runners();
  EXPECT_THAT(WhyNoTask(task), HasSubstr("field runners: 65"));
  task = Race();
  task.mutable_race()->set_most_runs(4097);
  EXPECT_THAT(WhyNoTask(task), HasSubstr("field most_runs: 4097"));
  task.mutable_race()->set_most_runs(5);
  task.mutable_race()->set_limit_ns(-1);
  EXPECT_THAT(WhyNoTask(task), HasSubstr("field limit_ns: -1"));

  v1::WorkerReply reply = Reply(SampleRaceResult());
  while (reply.race().runners_size() < 65) reply.mutable_race()->add_runners();
  EXPECT_THAT(WhyNoReply(reply), HasSubstr("field runners: 65"));
  // Two bytes each: they would be a hundred in memory.
  while (reply.race().runners_size() < 5000) reply.mutable_race()->add_runners();
  EXPECT_THAT(WhyNoReply(reply), HasSubstr("more than 4096 fields"));
  reply = Reply(SampleRaceResult());
  while (reply.race().runners(0).us_size() < 4097)
    reply.mutable_race()->mutable_runners(0)->add_us(1);
  EXPECT_THAT(WhyNoReply(reply), HasSubstr("field us: 4097"));

  reply = Reply(SampleResult());
  reply.mutable_result()->set_log(std::string(1 << 20, 'x'));
  EXPECT_EQ(WhyNoReply(reply), "");
  reply.mutable_result()->set_log(std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(WhyNoReply(reply), HasSubstr("field log: 1048577 bytes"));
  reply = Reply(SampleResult());
  reply.mutable_result()->mutable_status()->set_message(std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(WhyNoReply(reply), HasSubstr("field message"));
  reply = Reply(SampleResult());
  reply.mutable_result()->mutable_check()->set_reason(std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(WhyNoReply(reply), HasSubstr("field reason"));
  EXPECT_THAT(WhyNoReply(std::string(kMaxWorkerMessageBytes + 1, 'x')),
              HasSubstr("67108865 bytes"));
}

struct Ends {
  UniqueFd left;
  UniqueFd right;
};

Ends SocketPair() {
  int fds[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

TEST(FrameChannel, MessagesKeepTheirBorders) {
  Ends ends = SocketPair();
  FrameChannel left(std::move(ends.left), 1 << 20);
  FrameChannel right(std::move(ends.right), 1 << 20);
  std::thread sender([&] {
    EXPECT_TRUE(left.Send("one", seconds(5)).ok());
    EXPECT_TRUE(left.Send("", seconds(5)).ok());
    EXPECT_TRUE(left.Send(std::string(1 << 20, 'x'), seconds(5)).ok());
  });
  EXPECT_EQ(right.Receive(seconds(5)).value(), "one");
  EXPECT_EQ(right.Receive(seconds(5)).value(), "");
  EXPECT_EQ(right.Receive(seconds(5)).value().value().size(), size_t{1} << 20);
  sender.join();
  EXPECT_EQ(right.Receive(milliseconds(1)).value(), std::nullopt);
}

TEST(FrameChannel, AHalfMessageIsKeptUntilTheRestComes) {
  Ends ends = SocketPair();
  FrameChannel right(std::move(ends.right), 100);
  std::string_view bytes("\x05\0\0\0he", 6);
  ASSERT_EQ(write(ends.left.get(), bytes.data(), bytes.size()), 6);
  EXPECT_EQ(right.Receive(milliseconds(1)).value(), std::nullopt);
  ASSERT_EQ(write(ends.left.get(), "llo", 3), 3);
  EXPECT_EQ(right.Receive(seconds(5)).value(), "hello");
}

TEST(FrameChannel, OversizeAndHangUpAreErrors) {
  Ends ends = SocketPair();
  FrameChannel right(std::move(ends.right), 100);
  EXPECT_EQ(right.Send(std::string(101, 'x'), seconds(1)).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(write(ends.left.get(), "\xff\xff\xff\xff", 4), 4);
  EXPECT_EQ(right.Receive(seconds(5)).status().code(), absl::StatusCode::kInvalidArgument);

  Ends gone = SocketPair();
  FrameChannel lonely(std::move(gone.right), 100);
  gone.left.Reset();
  EXPECT_EQ(lonely.Receive(seconds(5)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(lonely.Send("x", seconds(5)).code(), absl::StatusCode::kUnavailable);
}

TEST(FrameChannel, APeerThatDoesNotReadTimesOut) {
  Ends ends = SocketPair();
  FrameChannel right(std::move(ends.right), 64 << 20);
  EXPECT_EQ(right.Send(std::string(32 << 20, 'x'), milliseconds(50)).code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace fusion
