#include "server/pages/operator_pages.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "core/base/text/number_word.h"
#include "core/base/text/text.h"
#include "core/base/threads/mutex.h"
#include "core/base/unix_time.h"
#include "core/base/utc_time.h"
#include "core/bundle/explanation.h"
#include "core/learn/device_models.h"
#include "core/pipeline/requests/graph_of_key.h"
#include "core/view/draw_svg.h"
#include "core/view/plan_picture.h"
#include "server/access/caller.h"
#include "server/pages/epoch_pages.h"
#include "server/pages/kernel_pages.h"
#include "server/pages/overview_page.h"
#include "server/pages/page_frame.h"
#include "server/pages/plan_pages.h"

namespace fusion {
namespace {

// Of reading reports and timings for a page.
constexpr Nanoseconds kReadLimit = std::chrono::seconds(4);
// Of fitting constants for a page.
constexpr Nanoseconds kFitLimit = std::chrono::seconds(15);
// Plans whose reports the list of kernels reads.
constexpr int kKernelReports = 100;
// Largest graph that is drawn. Graphviz 2.43 takes 1.5 s of CPU for 305 nodes, 12 s for 605 (2
// cores of an Intel Xeon, Sapphire Rapids, 2026-11-30; redo: fusionctl explain MODEL --dot FILE,
// dot -Tsvg).
constexpr int kPictureNodes = 400;
constexpr DrawLimits kPictureLimits{.wall = std::chrono::seconds(8),
                                    .memory_bytes = int64_t{1} << 30,
                                    .svg_bytes = int64_t{8} << 20};
// Pictures that are kept.
constexpr size_t kKeptPictures = 8;
// Rates are per second over at most this time.
constexpr Nanoseconds kRateWindow = std::chrono::seconds(60);
constexpr Nanoseconds kRateStep = std::chrono::seconds(1);  // between two kept counts
// Time after which it is looked again whether graphviz is there.
constexpr Nanoseconds kLookForGraphviz = std::chrono::minutes(1);
constexpr int kRefreshSeconds = 10;  // that the pages offer
constexpr size_t kTenantLinks = 64;
constexpr std::string_view kHtmlType = "text/html; charset=utf-8";

std::vector<PageLink> Navigation() {
  return {{"/", "Overview"},         {"/plans", "Plans"},   {"/kernels", "Kernels"},
          {"/accuracy", "Accuracy"}, {"/epochs", "Epochs"}, {"/queue", "Queue"},
          {"/workers", "Workers"}};
}

// One at a time; another one is turned away.
class OneAtATime {
 public:
  explicit OneAtATime(std::atomic<bool>* busy) : busy_(busy), entered_(!busy->exchange(true)) {}
  ~OneAtATime() {
    if (entered_) *busy_ = false;
  }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;
  bool entered() const { return entered_; }

 private:
  std::atomic<bool>* const busy_;
  const bool entered_;
};

class Pages {
 public:
  explicit Pages(OperatorParts parts) : parts_(std::move(parts)) {}

  using Make = HttpReply (Pages::*)(const HttpQuestion& asked);
  // Makes a page if the caller may see it.
  HttpReply Guarded(Make make, const HttpQuestion& asked) {
    const absl::Status allowed = parts_.allow(asked.authorization);
    if (!allowed.ok()) return Refuse(allowed);
    if (!parts_.complete()) {
      return {.code = 503, .body = "the server is starting; try again in a moment\n"};
    }
    return (this->*make)(asked);
  }

  HttpReply Overview(const HttpQuestion& asked) {
    const CancelToken cancel(parts_.clock, parts_.clock.Now() + kReadLimit);
    const ServerStatus status = parts_.status(cancel);
    return Live("Overview", "/", asked,
                OverviewContent(status, parts_.snapshot(), Earlier(status)));
  }

  HttpReply Queue(const HttpQuestion& asked) {
    const CancelToken cancel(parts_.clock, parts_.clock.Now() + kReadLimit);
    return Live("Queue", "/queue", asked, QueueContent(parts_.status(cancel), parts_.snapshot()));
  }

  HttpReply Workers(const HttpQuestion& asked) {
    return Live("Workers", "/workers", asked,
                WorkersContent(parts_.snapshot(), parts_.compiler, parts_.isas));
  }

  HttpReply Plans(const HttpQuestion& asked) {
    std::optional<PlanPlace> after;
    if (const auto found = asked.query.find("after"); found != asked.query.end()) {
      after = ParsePlace(found->second);
      if (!after) return Bad("after: expected the place in the list that a link of it has");
    }
    const PlanPage page = parts_.store.ListPlans(after, kPlansOfPage);
    return Page("Plans", "/plans",
                PlansContent(page, !after.has_value(), UnixMilliseconds(parts_.clock)));
  }

  HttpReply OnePlan(const HttpQuestion& asked) {
    std::string_view word = asked.rest;
    const bool picture = word.ends_with(".svg");
    if (picture) word.remove_suffix(4);
    Digest key;
    if (!Digest::FromHex(word, &key)) return Bad("expected /plans/ and 64 lower-case hex digits");
    std::shared_ptr<const StoredPlan> stored = parts_.store.PeekPlan(key);
    if (stored == nullptr) return Missing("Plan", "/plans", "This plan is not stored (any more).");
    if (picture) return Picture(*stored);
    PlanView view{.stored = std::move(stored), .tenant = parts_.store.TenantOf(key)};
    const CancelToken cancel(parts_.clock, parts_.clock.Now() + kReadLimit);
    absl::StatusOr<std::vector<PlanReport>> reports = parts_.book.Reports(key, 1, cancel);
    if (reports.ok() && !reports->empty()) view.report = std::move(reports->front());
    for (const PlanKernel& kernel : view.stored->plan.kernels) {
      view.kernel_stored.push_back(parts_.store.HasKernel(kernel.key));
    }
    view.no_picture = WhyNoPicture(view.stored->plan);
    return Page(StrCat("Plan ", key.ToHex().substr(0, 16)), "/plans", PlanContent(view));
  }

  HttpReply Kernels(const HttpQuestion& /*asked*/) {
    const CancelToken cancel(parts_.clock, parts_.clock.Now() + kReadLimit);
    absl::StatusOr<std::vector<PlanReport>> reports =
        parts_.book.Reports(std::nullopt, kKernelReports, cancel);
    if (!reports.ok()) return Failed("Kernels", "/kernels", reports.status());
    return Page("Kernels", "/kernels",
                KernelsContent(*reports, static_cast<size_t>(kKernelReports)));
  }

  HttpReply OneKernel(const HttpQuestion& asked) {
    Digest key;
    if (!Digest::FromHex(asked.rest, &key)) {
      return Bad("expected /kernels/ and 64 lower-case hex digits");
    }
    const std::shared_ptr<const KernelArtifact> kernel = parts_.store.PeekKernel(key);
    if (kernel == nullptr) {
      return Missing("Kernel", "/kernels", "This kernel is not stored (any more).");
    }
    return Page(StrCat("Kernel ", key.ToHex().substr(0, 16)), "/kernels", KernelContent(*kernel));
  }

  HttpReply Epochs(const HttpQuestion& /*asked*/) {
    return Page("Epochs", "/epochs", EpochsContent(parts_.epochs()));
  }

  HttpReply Accuracy(const HttpQuestion& asked) {
    const auto found = asked.query.find("tenant");
    const std::string tenant =
        found == asked.query.end() ? std::string(kDefaultTenant) : found->second;
    const OneAtATime turn(&fitting_);
    if (!turn.entered()) return Busy("Accuracy", "/accuracy");
    const CancelToken cancel(parts_.clock, parts_.clock.Now() + kFitLimit);
    absl::StatusOr<std::vector<DeviceAccuracy>> devices =
        parts_.book.Accuracy(tenant, cancel, [] { return absl::OkStatus(); });
    if (!devices.ok()) return Failed("Accuracy", "/accuracy", devices.status());
    return Page("Accuracy", "/accuracy", AccuracyContent(*devices, Tenants(), tenant));
  }

 private:
  HttpReply Page(const std::string& title, const std::string& path, const Markup& content,
                 int code = 200, int refresh_seconds = 0) {
    const PageFrame frame{.title = title,
                          .path = path,
                          .navigation = Navigation(),
                          .version = parts_.version,
                          .made = UtcTimeText(std::chrono::system_clock::time_point(
                              std::chrono::milliseconds(UnixMilliseconds(parts_.clock)))),
                          .refresh_seconds = refresh_seconds};
    return {.code = code,
            .type = std::string(kHtmlType),
            .body = PageText(frame, content),
            .headers = {{"Content-Security-Policy", std::string(kPagePolicy)},
                        {"Referrer-Policy", "no-referrer"}}};
  }

  // A page that the browser loads again if the reader wants it.
  HttpReply Live(const std::string& title, const std::string& path, const HttpQuestion& asked,
                 const Markup& content) {
    const bool again = asked.query.contains("refresh");
    const Markup link = again ? Link(path, Words("Stop loading it again"))
                              : Link(StrCat(path, "?refresh"),
                                     Words(StrCat("Load it again every ", kRefreshSeconds, " s")));
    return Page(title, path, content + Paragraph(link), 200, again ? kRefreshSeconds : 0);
  }

  HttpReply Refuse(const absl::Status& why) {
    HttpReply out{.code = absl::IsPermissionDenied(why) ? 403 : 401,
                  .body = StrCat(Message(why), "\n")};
    if (out.code == 401) {
      out.headers = {{"WWW-Authenticate", "Basic realm=\"fusiond\", charset=\"UTF-8\""}};
    }
    return out;
  }
  HttpReply Bad(std::string_view expected) { return {.code = 400, .body = StrCat(expected, "\n")}; }
  HttpReply Missing(const std::string& title, const std::string& path, std::string_view what) {
    return Page(title, path, Paragraph(Words(what)), 404);
  }
  HttpReply Busy(const std::string& title, const std::string& path) {
    return Page(title, path,
                Paragraph(Words("Another page of this kind is being made. Load this one again in "
                                "a moment.")),
                503);
  }
  HttpReply Failed(const std::string& title, const std::string& path, const absl::Status& why) {
    return Page(title, path, Paragraph(Words("This cannot be read now: ") + Foreign(Message(why))),
                503);
  }

  // The counts of a page that was made up to kRateWindow ago; keeps those of `now`.
  std::optional<EarlierCounts> Earlier(const ServerStatus& now) {
    MutexLock lock(&mutex_);
    while (!counts_.empty() && now.uptime - counts_.front().uptime > kRateWindow) {
      counts_.pop_front();
    }
    std::optional<EarlierCounts> out;
    if (!counts_.empty() && now.uptime - counts_.front().uptime >= kRateStep) {
      out = counts_.front();
    }
    if (counts_.empty() || now.uptime - counts_.back().uptime >= kRateStep) {
      counts_.push_back(CountsOf(now));
    }
    return out;
  }

  // Names whose reports can be looked at.
  std::vector<std::string> Tenants() {
    std::vector<std::string> out = {std::string(kDefaultTenant)};
    for (const auto& [tenant, bytes] : parts_.store.TenantBytes()) {
      if (out.size() < kTenantLinks && !tenant.empty() && tenant != kDefaultTenant) {
        out.push_back(tenant);
      }
    }
    return out;
  }

  std::string WhyNoPicture(const Plan& plan) {
    if (plan.nodes > kPictureNodes) {
      return StrCat("the graph has ", plan.nodes, " nodes; graphs of up to ", kPictureNodes,
                    " are drawn here, others by fusionctl explain MODEL --svg FILE");
    }
    MutexLock lock(&mutex_);
    const Nanoseconds now = parts_.clock.Now();
    if (!looked_ || now - *looked_ > kLookForGraphviz) {
      looked_ = now;
      can_draw_ = CanDraw(parts_.runner);
    }
    return can_draw_ ? "" : "graphviz, which draws it, is not installed on this server";
  }

  HttpReply Picture(const StoredPlan& stored) {
    if (const std::shared_ptr<const std::string> kept = Kept(stored)) return Svg(*kept);
    if (stored.plan.nodes > kPictureNodes) {
      return {.code = 404, .body = StrCat(WhyNoPicture(stored.plan), "\n")};
    }
    const OneAtATime turn(&drawing_);
    if (!turn.entered()) {
      return {.code = 503, .body = "another picture is being drawn; load this one again\n"};
    }
    absl::StatusOr<std::string> svg = Draw(stored);
    if (!svg.ok()) {
      const bool never = absl::IsFailedPrecondition(svg.status());
      return {.code = never ? 404 : 503, .body = StrCat(Message(svg.status()), "\n")};
    }
    const auto kept = std::make_shared<const std::string>(*std::move(svg));
    MutexLock lock(&mutex_);
    pictures_.push_front({stored.key, stored.content, kept});
    if (pictures_.size() > kKeptPictures) pictures_.pop_back();
    return Svg(*kept);
  }

  absl::StatusOr<std::string> Draw(const StoredPlan& stored) {
    ASSIGN_OR_RETURN(const Graph graph, GraphOfKey(stored.full_key));
    if (graph.nodes().size() != static_cast<size_t>(stored.plan.nodes)) {
      return FailedPrecondition("the key of the plan holds another graph");
    }
    ASSIGN_OR_RETURN(const PlanExplanation explanation, Explain(stored.plan, {}));
    return DrawSvg(PlanPicture(graph, explanation), parts_.runner, kPictureLimits);
  }

  static HttpReply Svg(const std::string& text) {
    return {.type = "image/svg+xml",
            .body = text,
            .headers = {{"Content-Security-Policy",
                         "default-src 'none'; style-src 'unsafe-inline'; sandbox"}}};
  }

  std::shared_ptr<const std::string> Kept(const StoredPlan& stored) {
    MutexLock lock(&mutex_);
    for (const KeptPicture& picture : pictures_) {
      if (picture.key == stored.key && picture.content == stored.content) return picture.svg;
    }
    return nullptr;
  }

  struct KeptPicture {
    Digest key;
    Digest content;  // of the plan that was drawn
    std::shared_ptr<const std::string> svg;
  };

  const OperatorParts parts_;
  std::atomic<bool> drawing_{false};
  std::atomic<bool> fitting_{false};
  Mutex mutex_;
  std::deque<EarlierCounts> counts_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::deque<KeptPicture> pictures_ ABSL_GUARDED_BY(mutex_);  // newest first
  std::optional<Nanoseconds> looked_ ABSL_GUARDED_BY(mutex_);
  bool can_draw_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::vector<HttpPage> OperatorPages(OperatorParts parts) {
  const auto pages = std::make_shared<Pages>(std::move(parts));
  std::vector<HttpPage> out;
  auto add = [&](std::string path, std::string about, Pages::Make make) {
    out.push_back(
        {.path = std::move(path),
         .about = std::move(about),
         .make = [pages, make](const HttpQuestion& asked) { return pages->Guarded(make, asked); }});
  };
  add("/", "overview, for people", &Pages::Overview);
  add("/plans", "stored plans, for people", &Pages::Plans);
  add("/plans/", "and a plan key: one plan, for people", &Pages::OnePlan);
  add("/kernels", "kernels with reported latencies, for people", &Pages::Kernels);
  add("/kernels/", "and a kernel key: one kernel, for people", &Pages::OneKernel);
  add("/accuracy", "how far estimates are from measured times, for people", &Pages::Accuracy);
  add("/epochs", "constants that reports have corrected, for people", &Pages::Epochs);
  add("/queue", "limits and what is in use, for people", &Pages::Queue);
  add("/workers", "compile workers, for people", &Pages::Workers);
  return out;
}

}  // namespace fusion
