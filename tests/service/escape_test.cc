// Hostile sources and hostile compilers behind the real bin/fusion-worker. Every row is tried
// without a sandbox too, where it gets through: what is refused here could have happened.
#include "core/compile/sandbox/sandbox.h"
#include "tests/service/worker_fixture.h"

namespace fusion {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

// What a kernel does on being loaded: one system call with six arguments, C++ expressions. It traps
// if the call is not refused: with EPERM, EACCES, ENOSYS (where the C library has another way) or
// ENOMEM.
struct Call {
  const char* claim;
  int number;
  std::string arguments;
};

std::string SourceOf(const Call& call) {
  return StrCat(R"(
static long Do(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return number;
}
static unsigned long words[8] = {};
__attribute__((constructor)) static void Escape() {
  long result = Do()",
                call.number, call.arguments.empty() ? "" : ", ", call.arguments, R"();
  if (result != -1 && result != -13 && result != -38 && result != -12) __builtin_trap();
})");
}

std::string Text(const std::string& path) { return StrCat("(long)\"", path, "\""); }

class EscapeTest : public WorkerTest {
 protected:
  EscapeTest() : outside_(dir_.path() + "/outside") {
    EXPECT_TRUE(MakeDirectories(outside_).ok());
    EXPECT_TRUE(WriteFile(Secret(), "int secret_number = 271828;\n").ok());
    EXPECT_TRUE(WriteFile(Victim(), "here").ok());
    options_.job_limit = seconds(20);
  }

  std::string Secret() const { return outside_ + "/secret"; }
  std::string Victim() const { return outside_ + "/victim"; }
  std::string Made() const { return outside_ + "/made"; }

  void StartWith(Sandbox sandbox) {
    pool_.reset();
    process_.sandbox = sandbox;
    Start();
  }

  // What the worker says confines it, once it has said so.
  std::string Level() {
    EXPECT_TRUE(Eventually([&] { return !pool_->Stats().sandbox.empty(); }));
    return pool_->Stats().sandbox;
  }

  // Starts with the strongest sandbox but bubblewrap; false if this machine has only less.
  bool StartConfined() {
    StartWith(Sandbox::kAuto);
    return !IsWeakSandbox(Level());
  }

  void ExpectUntouched() {
    EXPECT_FALSE(std::filesystem::exists(Made()));
    EXPECT_EQ(ReadFile(Victim(), 100).value_or("gone"), "here");
    struct stat facts {};
    EXPECT_EQ(stat(Victim().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600u);
  }

  // As it was before the first row.
  void Restore() {
    std::filesystem::remove_all(Made());
    WriteFile(Victim(), "here").IgnoreError();
    chmod(Victim().c_str(), 0600);
  }

  std::vector<Call> Calls() const {
    const std::string me = StrCat(getpid());
    return {
        {"a file is not read", 2, Text(Secret())},
        {"/etc/passwd is not read", 257, "-100, " + Text("/etc/passwd")},
        {"a file is not made", 257, StrCat("-100, ", Text(Made()), ", 0101, 0600")},
        {"a file is not made by creat", 85, StrCat(Text(Made()), ", 0600")},
        {"a file is not opened for writing", 2, StrCat(Text(Victim()), ", 1")},
        {"a file is not emptied", 76, Text(Victim())},
        {"nothing is written even in its own directory", 257, "-100, (long)\"made\", 0101, 0600"},
        {"a file without a name is not made", 257, "-100, (long)\".\", 020200002, 0600"},
        {"a directory is not made", 83, StrCat(Text(Made()), ", 0700")},
        {"a file is not deleted", 87, Text(Victim())},
        {"a file is not renamed", 82, StrCat(Text(Victim()), ", ", Text(Made()))},
        {"a file is not linked", 86, StrCat(Text(Victim()), ", ", Text(Made()))},
        {"a link is not made", 88, StrCat(Text(Victim()), ", ", Text(Made()))},
        {"rights are not changed", 90, StrCat(Text(Victim()), ", 0777")},
        {"no socket, IPv4", 41, "2, 1"},
        {"no socket, Unix", 41, "1, 1"},
        {"no pair of sockets", 53, "1, 1, 0, (long)words"},
        {"no fork", 57, ""},
        {"no vfork", 58, ""},
        {"no process by clone", 56, "17"},
        {"no process by clone3", 435, "(words[4] = 17, (long)words), 64"},
        {"no program", 59, "(long)\"/bin/true\""},
        {"nobody is signalled", 62, me + ", 0"},
        {"nobody is signalled by descriptor", 434, me},
        {"nobody is traced", 101, ""},
        {"limits are not set", 302, "0, 4, (long)words"},
        {"nobody's limits are known", 302, me + ", 4, 0, (long)words"},
        {"a descriptor's signals go to nobody", 72, "3, 8, " + me},
        {"no namespaces", 272, "0x10000000"},
        {"no affinity", 203, "0, 8, (words[0] = 1, (long)words)"},
        {"no priority", 141, "0, 0, 5"},
        {"no directory changed", 80, Text("/")},
    };
  }

  const std::string outside_;
};

TEST_F(EscapeTest, WithoutASandboxKernelsDoAnything) {
  StartWith(Sandbox::kNone);
  EXPECT_EQ(Level(), "no_new_privs rlimits");
  for (const Call& call : Calls()) {
    EXPECT_FALSE(Run(GoodJob(SourceOf(call))).ok()) << call.claim << ": the row proves nothing";
    Restore();
  }
}

TEST_F(EscapeTest, KernelsDoNothingButCompute) {
  if (!StartConfined()) GTEST_SKIP() << "sandbox: " << Level();
  for (const Call& call : Calls()) {
    CompileResult result = Run(GoodJob(SourceOf(call)));
    EXPECT_TRUE(result.ok()) << call.claim << ": " << result.status();
    ExpectUntouched();
  }
  EXPECT_EQ(pool_->Stats().restarts, 0);
  EXPECT_TRUE(std::filesystem::is_empty(DirOfSlot(0)));
  EXPECT_TRUE(Eventually([&] { return ChildrenOf(ChildrenOf(getpid())[0], true).empty(); }));
}

TEST_F(EscapeTest, WithSeccompAloneOnlyReadingIsLeft) {
  StartWith(Sandbox::kSeccomp);
  if (Level() != "seccomp no_new_privs rlimits") GTEST_SKIP() << "sandbox: " << Level();
  EXPECT_TRUE(IsWeakSandbox(Level()));
  for (const Call& call : Calls()) {
    const bool reads = std::string_view(call.claim).ends_with("is not read");
    EXPECT_EQ(Run(GoodJob(SourceOf(call))).ok(), !reads) << call.claim;
    ExpectUntouched();
  }
}

TEST_F(EscapeTest, AKernelGetsNoMoreMemoryThanItsWorkerMay) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need all of the address space";
  const Call call{"", 9, "0, 1L << 40, 3, 0x4022, -1"};
  process_.memory_bytes = 0;
  StartWith(Sandbox::kAuto);
  EXPECT_FALSE(Run(GoodJob(SourceOf(call))).ok()) << "the row proves nothing";
  process_.memory_bytes = int64_t{2} << 30;
  StartWith(Sandbox::kAuto);
  EXPECT_TRUE(Run(GoodJob(SourceOf(call))).ok());
}

TEST_F(EscapeTest, AKernelThatSpeaksForItsCheckFailsItsJobOnly) {
  StartWith(Sandbox::kAuto);
  auto says = [](const std::string& bytes, int n) {
    return SourceOf({"", 1, StrCat("3, (long)", bytes, ", ", n)});
  };
  for (const std::string& source : {
           says("\"\\xff\\xff\\xff\\xff garbage\"", 12),  // a message that is too long
           says("\"\\x03\\x00\\x00\\x00"
                "Axy\"",
                7),                              // an answer that is none
           says("\"\\x00\\x00\\x00\\x00\"", 4),  // an empty one
       }) {
    absl::Status status = Run(GoodJob(source)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("worker failed in stage 'check'"));
    EXPECT_TRUE(Run(GoodJob()).ok());
  }
  // More behind a message is of no use: it belongs to nobody's next job.
  EXPECT_TRUE(Run(GoodJob("", 5)).ok());
}

// What compilers are made to read, in C++ that compiles if they can.
std::vector<std::string> Readers(const std::string& path) {
  return {StrCat("#include \"", path, "\"\n"),
          StrCat("__asm__(\".section .rodata\\n .incbin \\\"", path, "\\\"\\n .text\");\n"),
          StrCat("__asm__(\".pushsection .rodata\\n .if 0\\n .include \\\"", path,
                 "\\\"\\n .endif\\n .incbin \\\"", path, "\\\"\\n .popsection\");\n")};
}

TEST_F(EscapeTest, SourcesReadNothingButTheToolchain) {
  StartWith(Sandbox::kNone);
  for (const std::string& source : Readers(Secret())) {
    EXPECT_TRUE(Run(GoodJob(source)).ok()) << "the row proves nothing: " << source;
  }
  if (!StartConfined()) GTEST_SKIP() << "sandbox: " << Level();
  for (const std::string& path : {Secret(), std::string("/etc/passwd")}) {
    for (const std::string& source : Readers(path)) {
      absl::Status status = Run(GoodJob(source)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << source;
      EXPECT_THAT(std::string(Message(status)),
                  testing::AnyOf(HasSubstr("Permission denied"), HasSubstr("file not found")))
          << source;
      EXPECT_THAT(std::string(Message(status)), Not(HasSubstr("271828")));
      EXPECT_THAT(std::string(Message(status)), Not(HasSubstr("root:")));
    }
  }
}

TEST_F(EscapeTest, CompilersTouchNothingOutsideTheirDirectory) {
  struct Row {
    const char* claim;
    std::string words;
  };
  const std::vector<Row> rows = {
      {"a file is not read", "cat " + Secret()},
      {"a directory is not listed", "ls " + outside_},
      {"a file is not made", "echo x > " + Made()},
      {"a directory is not made", "mkdir " + Made()},
      {"a file is not changed", "echo x >> " + Victim()},
      {"a file is not deleted", "rm -f " + Victim()},
      {"a file is not linked to", StrCat("ln ", Victim(), " stolen")},
      {"a program from outside does not run", StrCat("cp /bin/true ", Made(), " && ", Made())},
      {"another slot's directory is not entered", StrCat("echo x > ", scratch_, "/slot-1")},
      {"no network", "bash -c 'echo x > /dev/udp/127.0.0.1/9'"},
      {"no other user", "unshare -U true"},
      {"no group of its own", "setsid sleep 0"},
  };
  StartWith(Sandbox::kNone);
  for (const Row& row : rows) {
    const bool group = row.words.starts_with("setsid");  // which the guard sees to, sandbox or not
    if (!group && row.words.starts_with("unshare") && system("unshare -U true") != 0) continue;
    EXPECT_THAT(MessageOf(GoodJob("// MARK_RUN " + row.words)),
                HasSubstr(group ? "exited with 1" : "exited with 7"))
        << row.claim << ": the row proves nothing";
    Restore();
    std::filesystem::remove(scratch_ + "/slot-1");
  }
  if (!StartConfined()) GTEST_SKIP() << "sandbox: " << Level();
  for (const Row& row : rows) {
    EXPECT_THAT(MessageOf(GoodJob("// MARK_RUN " + row.words)), HasSubstr("exited with 1"))
        << row.claim;
    ExpectUntouched();
    EXPECT_FALSE(std::filesystem::exists(scratch_ + "/slot-1"));
  }
  EXPECT_TRUE(Run(GoodJob()).ok());
}

// What landlock leaves to compilers in all or in some versions, by system calls in Perl.
TEST_F(EscapeTest, FiltersAloneKeepCompilersFromWhatLandlockDoesNotSee) {
  const std::string me = StrCat(getpid());
  const std::string victim = StrCat("\"", Victim(), "\"");
  struct Row {
    const char* claim;
    std::string call;
  };
  const std::vector<Row> rows = {
      {"a file is not emptied", "76, $f, 0"},
      {"a file is not emptied by a reader", "2, $f, 01000"},
      {"a file is not emptied by who neither reads nor writes", "257, -100, $f, 01003"},
      {"rights are not changed", "90, $f, 0777"},
      {"rights are not changed below a directory", "268, -100, $f, 0777"},
      {"rights of what is read are not changed", "91, fileno($reader), 0777"},
      {"an owner is not changed", StrCat("92, $f, ", getuid(), ", ", getgid())},
      {"an owner is not changed below a directory", "260, -100, $f, -1, -1, 0"},
      {"times are not changed", "280, -100, $f, 0, 0"},
      {"flags of files are not changed",
       "16, fileno($reader), 0x40086602, my $flags = pack(\"q\", 0)"},
      {"nobody's limits are known", StrCat("302, ", me, ", 4, 0, my $limits = \"x\" x 16")},
      {"nobody is moved", StrCat("203, ", me, ", 8, my $cpus = pack(\"q\", -1)")},
      {"nobody's priority is set", StrCat("141, 0, ", me, ", 0")},
      {"nobody is signalled with words",
       StrCat("129, ", me, ", 0, my $words = pack(\"iiix116\", 0, 0, -1)")},
      {"nobody is signalled by descriptor", StrCat("424, syscall(434, ", me, ", 0), 0, 0, 0")},
      {"nobody is signalled by a pipe", StrCat("72, fileno($reader), 8, ", me)},
      {"a pipe sends no other signal", "72, fileno($reader), 10, 9"},
  };
  auto run = [&](const Row& row) {
    return MessageOf(
        GoodJob(StrCat("// MARK_RUN perl -e 'my $f = ", victim,
                       "; open(my $reader, q(<), $f) or die; exit(syscall(", row.call, ") < 0)'")));
  };
  StartWith(Sandbox::kNone);
  for (const Row& row : rows) {
    EXPECT_THAT(run(row), HasSubstr("exited with 7")) << row.claim << ": the row proves nothing";
    Restore();
  }
  StartWith(Sandbox::kSeccomp);
  if (Level() != "seccomp no_new_privs rlimits") GTEST_SKIP() << "sandbox: " << Level();
  for (const Row& row : rows) {
    EXPECT_THAT(run(row), HasSubstr("exited with 1")) << row.claim;
    ExpectUntouched();
  }
  EXPECT_TRUE(Run(GoodJob()).ok());
}

TEST_F(EscapeTest, GccAndClangNeedNothingThatIsRefused) {
  for (const char* compiler : {"/usr/bin/g++", "/usr/bin/clang++"}) {
    if (!std::filesystem::exists(compiler)) continue;
    compiler_ = compiler;
    for (Sandbox sandbox : {Sandbox::kSeccomp, Sandbox::kAuto}) {
      StartWith(sandbox);
      CompileJob job = GoodJob();
      EXPECT_TRUE(Run(job).ok()) << compiler << ": " << Run(job).status();
      job.debug = true;
      EXPECT_TRUE(Run(job).ok()) << compiler << ": " << Run(job).status();
    }
  }
}

TEST_F(EscapeTest, DaemonsOfACompilerDieWithIt) {
  Start();
  const std::string mark = StrCat("98765.", getpid());
  auto running = [&] {
    return system(StrCat("grep -qsa 'slee[p].", mark, "' /proc/[0-9]*/cmdline").c_str()) == 0;
  };
  ASSERT_TRUE(Eventually([] { return ChildrenOf(getpid()).size() == 1; }));
  const pid_t worker = ChildrenOf(getpid())[0];
  for (const char* how :
       {"(sleep # & sleep # & sleep #) >/dev/null 2>&1 & exit 0",
        "((sleep # &) &) >/dev/null 2>&1; exit 0",
        "(setsid sleep # || sleep #) >/dev/null 2>&1 & exit 0",
        "setsid -f sleep # >/dev/null 2>&1; (sleep # &) >/dev/null 2>&1; exit 0"}) {
    std::string words = how;
    for (size_t at; (at = words.find('#')) != std::string::npos;) words.replace(at, 1, mark);
    EXPECT_THAT(MessageOf(GoodJob("// MARK_RUN " + words)), HasSubstr("exited with 7"));
    EXPECT_FALSE(running()) << words;
    EXPECT_TRUE(ChildrenOf(worker, /*zombies=*/true).empty()) << words;
  }
  EXPECT_EQ(pool_->Stats().restarts, 0);
}

TEST_F(EscapeTest, BubblewrapHidesTheRest) {
  WorkerProcessOptions options;
  options.worker_path = FUSION_WORKER;
  options.exec_path = FUSION_EXEC;
  options.scratch_dir = scratch_;
  options.memory_bytes = kSanitized ? 0 : options.memory_bytes;
  options.sandbox = Sandbox::kBwrap;
  auto commands = MakeProcessRunner(FUSION_EXEC);
  absl::StatusOr<SandboxProbe> probe = ProbeSandbox(options, *commands);
  if (!probe.ok()) {
    EXPECT_EQ(probe.status().code(), absl::StatusCode::kFailedPrecondition);
    GTEST_SKIP() << probe.status();
  }
  StartWith(Sandbox::kBwrap);
  EXPECT_EQ(Level(), probe->level);
  EXPECT_THAT(Level(), testing::StartsWith("bwrap "));
  EXPECT_TRUE(Run(GoodJob()).ok());
  for (const char* words : {"test -e /etc/passwd", "test -e /root", "test -e /home"}) {
    EXPECT_THAT(MessageOf(GoodJob(StrCat("// MARK_RUN ", words))), HasSubstr("exited with 1"));
  }
  EXPECT_THAT(MessageOf(GoodJob(StrCat("// MARK_RUN kill -0 ", getpid()))),
              HasSubstr("exited with 1"));
  EXPECT_THAT(
      MessageOf(GoodJob("__attribute__((constructor)) static void B() { __builtin_trap(); }")),
      HasSubstr("worker failed in stage 'check': killed by signal 4 (Illegal instruction)"));
  EXPECT_TRUE(Run(GoodJob()).ok());
}

TEST_F(EscapeTest, ASandboxThatDoesNotWorkHereSaysWhy) {
  WorkerProcessOptions options;
  options.worker_path = FUSION_WORKER;
  options.exec_path = FUSION_EXEC;
  options.scratch_dir = scratch_;
  options.memory_bytes = 0;
  options.sandbox = Sandbox::kBwrap;
  options.bwrap_path = dir_.path() + "/no-bwrap";
  auto commands = MakeProcessRunner(FUSION_EXEC);
  absl::Status status = ProbeSandbox(options, *commands).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)), HasSubstr("sandbox \"bwrap\": there is no"));
  // One that does not let its command start is no sandbox either.
  options.bwrap_path = "/bin/false";
  EXPECT_THAT(std::string(Message(ProbeSandbox(options, *commands).status())),
              HasSubstr("sandbox \"bwrap\" does not work here: exited with 1"));
  options.sandbox = Sandbox::kAuto;
  absl::StatusOr<SandboxProbe> found = ProbeSandbox(options, *commands);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->level, Not(HasSubstr("bwrap")));
  EXPECT_THAT(found->level, testing::EndsWith("no_new_privs rlimits"));
}

TEST_F(EscapeTest, AMemoryHogOfACompilerIsCountedAsOne) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need all of the address space";
  options_.command_limits.memory_bytes = int64_t{300} << 20;
  Start();
  const CompileJob hog = GoodJob("__asm__(\".rept 30000000\\n .long 1\\n .endr\");");
  EXPECT_THAT(MessageOf(hog), HasSubstr("as: out of memory allocating"));
  EXPECT_EQ(pool_->Stats().out_of_memory, 1);
  EXPECT_TRUE(Run(GoodJob()).ok());
  EXPECT_EQ(pool_->Stats().failed, 0);
}

TEST_F(EscapeTest, ACompilerThatIsGoneIsNotTheKernelsFaultAndWorksAgainWhenItIsBack) {
  Start();
  EXPECT_TRUE(Run(GoodJob()).ok());
  const std::string away = compiler_ + ".away";
  std::filesystem::rename(compiler_, away);
  absl::Status status = Run(GoodJob()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)),
              HasSubstr(StrCat("no compiler now: ", compiler_, " of g++ (Debian")));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("--compiler"));
  // As a new file: workers knew the old one.
  std::filesystem::copy(away, compiler_);
  absl::Status back = Run(GoodJob()).status();
  EXPECT_TRUE(back.ok()) << back;
}

}  // namespace
}  // namespace fusion
