#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cmath>
#include <thread>

#include "core/compile/flat_message.h"
#include "core/compile/frame_channel.h"
#include "core/compile/worker_protocol.h"
#include "tests/support/field_count.h"

namespace fusion {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

std::string WhyNot(std::string_view bytes) {
  return std::string(Message(FlatMessage::Decode(bytes).status()));
}

TEST(FlatMessage, ValuesOfEveryTypeRoundTrip) {
  FlatMessage message;
  message.SetText("text", std::string_view("a\0\xff", 3));
  message.SetInt("least", INT64_MIN);
  message.SetInt("most", INT64_MAX);
  message.SetNumber("pi", 3.14159);
  message.SetNumber("nan", NAN);
  message.SetFlag("yes", true);
  FlatMessage back = FlatMessage::Decode(message.Encode()).value();
  EXPECT_EQ(back.Text("text").value(), std::string("a\0\xff", 3));
  EXPECT_EQ(back.Int("least").value(), INT64_MIN);
  EXPECT_EQ(back.Int("most").value(), INT64_MAX);
  EXPECT_EQ(back.Number("pi").value(), 3.14159);
  EXPECT_TRUE(std::isnan(back.Number("nan").value()));
  EXPECT_TRUE(back.Flag("yes").value());
  EXPECT_EQ(back.Encode(), message.Encode());
}

TEST(FlatMessage, AbsentAndMistypedFieldsAreNamed) {
  FlatMessage message;
  message.SetInt("isa", 2);
  EXPECT_THAT(std::string(Message(message.Int("numerics").status())),
              HasSubstr("no field \"numerics\""));
  EXPECT_THAT(std::string(Message(message.Text("isa").status())),
              HasSubstr("\"isa\" is not a text"));
}

TEST(FlatMessage, NestingIsRefusedBeforeItIsEntered) {
  EXPECT_THAT(WhyNot(std::string(1 << 20, '\x91')), HasSubstr("an array"));
  EXPECT_THAT(WhyNot(std::string("\x81\xa1x") + std::string(1 << 20, '\x91')),
              HasSubstr("an array"));
  EXPECT_THAT(WhyNot(std::string("\x81\xa1x\x80")), HasSubstr("a map within the map"));
}

TEST(FlatMessage, GarbageIsAnError) {
  for (std::string_view bytes :
       {"", "\xc1", "\x2a", "\x81", "\x81\xa1x", "\x81\xa1x\xc0", "\x81\xa1x\x01trailing",
        "\x81\xa1x\xc6\xff\xff\xff\xff", "\x82\xa1x\x01\xa1x\x02",
        "\x81\xa1x\xcf\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    EXPECT_FALSE(FlatMessage::Decode(bytes).ok()) << Quote(bytes);
  }
  FlatMessage message;
  message.SetText("source", std::string(200, 's'));
  message.SetNumber("ms", 1.5);
  std::string bytes = message.Encode();
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(FlatMessage::Decode(bytes.substr(0, i)).ok()) << i;
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      FlatMessage::Decode(damaged).status().IgnoreError();  // must not crash
    }
  }
}

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
  WorkerReply reply = DecodeReply(EncodeReply(result)).value();
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
  FlatMessage unknown;
  unknown.SetText("type", "root shell");
  EXPECT_FALSE(DecodeReply(unknown.Encode()).ok());
  EXPECT_FALSE(DecodeTask(EncodeReply(WorkerStage{"x"})).ok());
}

TEST(WorkerProtocol, EveryFieldOfARaceTravels) {
  static_assert(FieldCount<KernelRace>() == 13 && FieldCount<KernelRace::Runner>() == 4 &&
                FieldCount<RaceTimes>() == 5 && FieldCount<RaceTimes::Runner>() == 2);
  const KernelRace race{.label = "MatMul",
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
  EXPECT_EQ(back.displaced_bytes, int64_t{1} << 33);
  EXPECT_EQ(back.wanted_pairs, milliseconds(9));
  EXPECT_EQ(back.limit, seconds(10));

  const WorkerRaceResult result{.status = absl::OkStatus(),
                                .times = {.refusal = "no",
                                          .runners = {{"", {1, 2}}, {"why", {}}},
                                          .rival = 1,
                                          .first_us = {3, 4},
                                          .rival_us = {5, 6}}};
  const WorkerReply reply = DecodeReply(EncodeReply(result)).value();
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
