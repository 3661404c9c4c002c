#include "server/transport/http_server.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

#include "core/base/files/unique_fd.h"
#include "core/base/threads/named_thread.h"
#include "core/base/threads/thread_pool.h"
#include "core/view/html.h"
#include "server/transport/allowed_hosts.h"
#include "server/transport/gzip.h"
#include "server/transport/listen_address.h"

namespace fusion {
namespace {

constexpr int kPageThreads = 2;
// Pages that may wait for a worker thread.
constexpr size_t kPageQueue = 8;
// Memory of a connection: the head of its request must fit.
constexpr size_t kConnectionBytes = 16 << 10;
// Interval at which connections are checked for their time limits.
constexpr Nanoseconds kLookEvery = std::chrono::milliseconds(200);
// Pause after accept has failed for lack of file descriptors or memory.
constexpr Nanoseconds kAcceptPause = std::chrono::milliseconds(50);
// Connections accepted before the open ones are served again. Far fewer than HttpLimits::per_peer,
// so that none is closed in favour of newer ones before its request has been read.
constexpr int kAcceptedAtOnce = 4;
// TCP_DEFER_ACCEPT: the system delivers a connection without data only after this time. So a peer
// with many silent connections takes no place from one that sends its request at once. The system
// rounds up to 1, 3, 7, ... seconds, the times at which it repeats its SYN-ACK.
constexpr int kDeferSeconds = 3;
// Maximum number of library runs that a connection needs from its request to its end.
constexpr int kSteps = 8;
// How long a stop waits until answers have been read.
constexpr Nanoseconds kLastWords = std::chrono::seconds(1);
constexpr size_t kWorthGzip = 1024;  // bytes
constexpr int kMisdirectedRequest = 421;

Nanoseconds Now() { return Clock::Real().Now(); }

std::string Index(const std::vector<HttpPage>& pages) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>fusiond</title>"
      "</head>\n<body><h1>fusiond</h1>\n<table>\n";
  for (const HttpPage& page : pages) {
    // A path that ends in '/' is a prefix.
    const bool whole = !page.path.ends_with('/');
    StrAppend(&out, "<tr><td>");
    StrAppend(&out, whole ? StrCat("<a href=\"", page.path, "\">", page.path, "</a>")
                          : StrCat(page.path, "..."));
    StrAppend(&out, StrCat("</td><td>", EscapeHtml(page.about), "</td></tr>\n"));
  }
  return out + "</table></body></html>\n";
}

bool ClientAcceptsGzip(MHD_Connection* connection) {
  const char* accepted =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);
  return accepted != nullptr && AcceptsGzip(accepted);
}

// `asked` is the map of HttpQuestion::query.
enum MHD_Result AddArgument(void* asked, MHD_ValueKind /*kind*/, const char* name,
                            const char* value) {
  auto& query = *static_cast<std::map<std::string, std::string>*>(asked);
  query[name] = value == nullptr ? "" : value;
  return MHD_YES;
}

HttpQuestion QuestionOf(MHD_Connection* connection, std::string_view rest) {
  HttpQuestion out{.rest = std::string(rest), .authorization = "", .query = {}};
  const char* authorization =
      MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
  if (authorization != nullptr) out.authorization = authorization;
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, AddArgument, &out.query);
  return out;
}

enum MHD_Result Send(MHD_Connection* connection, const HttpReply& answer, bool is_gzip) {
  MHD_Response* response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type.c_str());
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  if (is_gzip) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
  }
  for (const auto& [name, value] : answer.headers) {
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
  if (answer.code == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  if (answer.code == MHD_HTTP_SERVICE_UNAVAILABLE) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
  }
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(answer.code), response);
  MHD_destroy_response(response);
  return queued;
}

// A page that a thread of `workers_` makes while its connection is suspended.
struct PageWork {
  HttpReply answer;
  bool is_gzip = false;
  std::atomic<bool> done{false};

  void Make(const HttpPage& page, const HttpQuestion& asked, bool accepts_gzip) {
    answer = page.make(asked);
    if (!accepts_gzip || answer.body.size() < kWorthGzip) return;
    std::string packed = Gzip(answer.body);
    if (packed.empty()) return;
    answer.body = std::move(packed);
    is_gzip = true;
  }
};

// Only the thread of Serve uses members, except `workers_`, the counts and the destructor.
class RunningHttpServer final : public HttpServer {
 public:
  RunningHttpServer(ListeningSockets sockets, std::vector<HttpPage> pages,
                    const std::vector<std::string>& hosts, const HttpLimits& limits)
      : address_(sockets.address),
        hosts_(sockets.address, hosts),
        listeners_(std::move(sockets.fds)),
        pages_(std::move(pages)),
        index_(Index(pages_)),
        connections_(limits),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        made_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    // The library's limit only has to exceed ours, because victims are closed a moment later.
    daemon_ =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
                         nullptr, nullptr, &RunningHttpServer::OnRequest, this,
                         MHD_OPTION_NOTIFY_CONNECTION, &RunningHttpServer::OnConnection, this,
                         MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(4 * limits.all),
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_END);
  }
  ~RunningHttpServer() override {
    if (!thread_.joinable()) {
      if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
      return;
    }
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
    thread_.join();
  }

  absl::Status Run() {
    for (const UniqueFd& fd : listeners_) {
      const int failed = setsockopt(fd.get(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &kDeferSeconds,
                                    sizeof(kDeferSeconds));
      if (failed != 0) deferred_ = Nanoseconds(0);
    }
    if (daemon_ == nullptr || !wake_.valid() || !made_.valid()) {
      return FailedPrecondition("cannot serve HTTP on ", address_,
                                ": no memory or no file descriptors");
    }
    thread_ = NamedThread("admin-http", [this] { Serve(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  Counts counts() const override { return {open_, late_, crowded_}; }

 private:
  void Serve() {
    const int events = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    Nanoseconds looked = Now();
    for (;;) {
      std::vector<pollfd> polled = {
          {wake_.get(), POLLIN, 0}, {events, POLLIN, 0}, {made_.get(), POLLIN, 0}};
      const size_t others = polled.size();
      if (Now() >= accept_from_) {
        for (const UniqueFd& fd : listeners_) polled.push_back({fd.get(), POLLIN, 0});
      }
      poll(polled.data(), polled.size(), PollTimeout());
      if (polled[0].revents != 0) break;
      uint64_t pages = 0;
      if (polled[2].revents != 0) (void)!read(made_.get(), &pages, sizeof(pages));
      for (size_t i = others; i < polled.size(); ++i) {
        if (polled[i].revents != 0) AcceptFrom(polled[i].fd);
      }
      RunLibrary();
      if (Now() - looked >= kLookEvery) {
        looked = Now();
        for (int fd : connections_.TakeLate(looked)) {
          HangUp(fd);
          ++late_;
        }
      }
      open_ = connections_.size();
    }
    Finish();
  }

  // Lets the library read, answer and close everything that is ready, before newer connections can
  // replace it: one run of the library makes one step of a connection.
  void RunLibrary() {
    MHD_UNSIGNED_LONG_LONG wait = 0;
    for (int step = 0; step < kSteps && wait == 0; ++step) {
      MHD_run(daemon_);
      if (MHD_get_timeout(daemon_, &wait) != MHD_YES) return;
    }
  }

  // Timeout of poll in milliseconds; -1: none.
  int PollTimeout() const {
    int64_t timeout = -1;
    if (connections_.size() > 0) timeout = kLookEvery / std::chrono::milliseconds(1);
    if (Now() < accept_from_) timeout = kAcceptPause / std::chrono::milliseconds(1);
    MHD_UNSIGNED_LONG_LONG wanted = 0;
    if (MHD_get_timeout(daemon_, &wanted) == MHD_YES) {
      const auto limit = static_cast<int64_t>(std::min<MHD_UNSIGNED_LONG_LONG>(wanted, 1000));
      timeout = timeout < 0 ? limit : std::min(timeout, limit);
    }
    return static_cast<int>(timeout);
  }

  void AcceptFrom(int listener) {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      sockaddr_storage address{};
      socklen_t length = sizeof(address);
      UniqueFd fd(accept4(listener, reinterpret_cast<sockaddr*>(&address), &length,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          accept_from_ = Now() + kAcceptPause;
        }
        return;
      }
      const std::string peer = HttpPeer(address);
      const HttpConnections::Room room = connections_.MakeRoom(peer);
      if (room.victim.has_value()) HangUp(*room.victim);
      if (!room.room || room.victim.has_value()) ++crowded_;
      if (!room.room) continue;
      const int number = fd.Release();
      connections_.Add(number, peer, OpenedAt(number));
      if (MHD_add_connection(daemon_, number, reinterpret_cast<sockaddr*>(&address), length) !=
          MHD_YES) {
        connections_.Remove(number);  // and it is closed
      }
    }
  }

  // When an accepted connection was opened. The system delivers one without data only at the end of
  // its time there.
  Nanoseconds OpenedAt(int fd) const {
    char first = 0;
    const bool silent = recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
    return silent ? Now() - deferred_ : Now();
  }

  // The library closes the connection when reading returns the end of the stream.
  static void HangUp(int fd) { shutdown(fd, SHUT_RDWR); }

  void Finish() {
    listeners_.clear();
    workers_.Stop();  // from now on no connection is suspended
    const Nanoseconds end = Now() + kLastWords;
    while (connections_.busy() > 0 && Now() < end) MHD_run_wait(daemon_, /*millisec=*/20);
    MHD_stop_daemon(daemon_);
  }

  static int FdOf(MHD_Connection* connection) {
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  }

  // Called when a connection has been opened and when it is about to be closed.
  static void OnConnection(void* self, MHD_Connection* connection, void** /*context*/,
                           MHD_ConnectionNotificationCode what) {
    if (what != MHD_CONNECTION_NOTIFY_CLOSED) return;
    auto* server = static_cast<RunningHttpServer*>(self);
    const int fd = FdOf(connection);
    server->connections_.Remove(fd);
    server->work_.erase(fd);
  }

  // Called when the head of a request is complete (with `*seen` null), for each part of its body,
  // and then, until there is an answer, with no more of it.
  static enum MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* url,
                                   const char* method, const char* /*version*/,
                                   const char* /*body*/, size_t* body_bytes, void** seen) {
    auto* server = static_cast<RunningHttpServer*>(self);
    const std::string_view verb = method;
    if (verb != MHD_HTTP_METHOD_GET && verb != MHD_HTTP_METHOD_HEAD) {
      return server->Answer(connection, {.code = MHD_HTTP_METHOD_NOT_ALLOWED,
                                         .body = "only GET and HEAD are served here\n"});
    }
    if (*seen == nullptr) {
      *seen = self;
      return MHD_YES;
    }
    if (*body_bytes > 0) {
      *body_bytes = 0;  // means nothing here
      return MHD_YES;
    }
    const char* host =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (host != nullptr && !server->hosts_.Allow(host)) {
      return server->Answer(
          connection, {.code = kMisdirectedRequest,
                       .body = "the header Host names another server; expected an IP address, "
                               "localhost or a name of --admin-host\n"});
    }
    return server->Serve(connection, url);
  }

  enum MHD_Result Serve(MHD_Connection* connection, std::string_view path) {
    const auto working = work_.find(FdOf(connection));
    if (working != work_.end()) {
      const PageWork& work = *working->second;
      if (!work.done.load(std::memory_order_acquire)) return MHD_YES;
      return Answer(connection, work.answer, work.is_gzip);
    }
    for (const HttpPage& page : pages_) {
      const bool below = page.path.size() > 1 && page.path.ends_with('/');
      if (below ? !path.starts_with(page.path) : path != page.path) continue;
      HttpQuestion asked = QuestionOf(connection, path.substr(page.path.size()));
      if (page.immediate) return Answer(connection, page.make(asked));
      return Work(connection, page, std::move(asked));
    }
    if (path == "/") {
      return Answer(connection, {.type = "text/html; charset=utf-8", .body = index_});
    }
    return Answer(connection, {.code = MHD_HTTP_NOT_FOUND,
                               .body = "nothing is served at this path; / lists what is\n"});
  }

  enum MHD_Result Work(MHD_Connection* connection, const HttpPage& page, HttpQuestion asked) {
    const int fd = FdOf(connection);
    const bool accepts_gzip = ClientAcceptsGzip(connection);
    auto work = std::make_shared<PageWork>();
    MHD_suspend_connection(connection);
    // The library itself would notice only with the next event.
    const auto end = [work, connection, made = made_.get()] {
      work->done.store(true, std::memory_order_release);
      MHD_resume_connection(connection);
      const uint64_t one = 1;
      (void)!write(made, &one, sizeof(one));
    };
    const auto refuse = [work, end] {
      work->answer = {.code = MHD_HTTP_SERVICE_UNAVAILABLE,
                      .body = "too many pages are being made\n"};
      end();
    };
    // A waiting page of the peer with many is displaced by one of a peer with few.
    const absl::Status submitted =
        workers_.SubmitFor({.tenant = connections_.PeerOf(fd)},
                           {.run =
                                [work, end, &page, asked = std::move(asked), accepts_gzip] {
                                  work->Make(page, asked, accepts_gzip);
                                  end();
                                },
                            .displaced = refuse});
    if (!submitted.ok()) refuse();
    work_[fd] = std::move(work);
    connections_.SetState(fd, HttpConnections::State::kWorking, Now());
    return MHD_YES;
  }

  enum MHD_Result Answer(MHD_Connection* connection, const HttpReply& answer,
                         bool is_gzip = false) {
    connections_.SetState(FdOf(connection), HttpConnections::State::kAnswering, Now());
    return Send(connection, answer, is_gzip);
  }

  const std::string address_;
  const AllowedHosts hosts_;
  std::vector<UniqueFd> listeners_;
  const std::vector<HttpPage> pages_;
  const std::string index_;
  HttpConnections connections_;
  std::unordered_map<int, std::shared_ptr<PageWork>> work_;  // by file descriptor
  Nanoseconds accept_from_{0};
  Nanoseconds deferred_ = std::chrono::seconds(kDeferSeconds);
  UniqueFd wake_;  // readable when Serve should end
  UniqueFd made_;  // readable when a page has been made
  MHD_Daemon* daemon_ = nullptr;
  std::atomic<int64_t> open_{0};
  std::atomic<int64_t> late_{0};
  std::atomic<int64_t> crowded_{0};
  ThreadPool workers_{"admin-page", kPageThreads, kPageQueue};
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              std::vector<HttpPage> pages,
                                                              const std::vector<std::string>& hosts,
                                                              const HttpLimits& limits) {
  RETURN_IF_ERROR(ParseHostPort(address).status());
  ASSIGN_OR_RETURN(ListeningSockets sockets, ListenOn(address));
  auto server =
      std::make_unique<RunningHttpServer>(std::move(sockets), std::move(pages), hosts, limits);
  RETURN_IF_ERROR(server->Run());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace fusion
