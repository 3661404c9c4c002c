#include "server/pages/page_frame.h"

#include "core/base/text/text.h"
#include "core/view/html.h"

namespace fusion {
namespace {

constexpr std::string_view kStyle = R"(<style>
:root { color-scheme: light dark; --text: #1b2430; --quiet: #55606e; --back: #ffffff; --panel: #f4f6f9; --line: #d3d9e2;
  --link: #1d56b8; --bar: #2563c9; --good: #17693a; --good-back: #e2f4e8; --bad: #a11d16; --bad-back: #fde8e6; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e9f0; --quiet: #a3afbd; --back: #12161c; --panel: #1b212a; --line: #364150;
    --link: #82b1ff; --bar: #6aa2ff; --good: #7fd6a0; --good-back: #14321f; --bad: #ff9d94; --bad-back: #431a17; }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--back); font: 15px/1.5 system-ui, sans-serif; }
a { color: var(--link); text-underline-offset: .15em; }
a:focus-visible, [tabindex]:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; } .skip:focus { left: 1rem; top: .5rem; background: var(--back); padding: .5rem; z-index: 1; }
header { border-bottom: 1px solid var(--line); background: var(--panel); }
.inner { margin: 0 auto; max-width: 76rem; padding: 0 1rem; }
header .inner { display: flex; flex-wrap: wrap; align-items: center; gap: .2rem 1.5rem; padding-top: .5rem; padding-bottom: .5rem; }
header strong { font-size: 1.05rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .1rem .2rem; list-style: none; margin: 0; padding: 0; }
nav a { display: block; padding: .35rem .6rem; border-radius: .35rem; text-decoration: none; }
nav a:hover { text-decoration: underline; }
nav a[aria-current] { background: var(--text); color: var(--back); }
main { padding-top: 1rem; padding-bottom: 2rem; }
h1 { font-size: 1.45rem; line-height: 1.25; margin: .4rem 0 .6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.12rem; margin: 2rem 0 .5rem; }
p { margin: .4rem 0; max-width: 60rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } .wide + .wide, p + .wide { margin-top: 1.2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); padding-bottom: .3rem; max-width: calc(100vw - 2rem); }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
tbody th { font-weight: 400; } th.n, td.n { text-align: right; white-space: nowrap; }
thead th, thead th.n { color: var(--quiet); font-weight: 600; vertical-align: bottom; white-space: normal; overflow-wrap: break-word; }
td { overflow-wrap: anywhere; min-width: 6rem; } td.n { min-width: 0; } td.t { min-width: 15rem; } td a, th a { white-space: nowrap; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .7rem; margin: .5rem 0; }
.figures > div { background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
.value { font-size: 1.45rem; line-height: 1.3; font-variant-numeric: tabular-nums; } .note { color: var(--quiet); font-size: .9rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(16rem, 1fr)); gap: .3rem 1.2rem; margin: .5rem 0; }
.badge { display: inline-block; padding: 0 .45rem; border-radius: .3rem; font-size: .92em; white-space: nowrap; }
.good { color: var(--good); background: var(--good-back); } .bad { color: var(--bad); background: var(--bad-back); }
.quiet { color: var(--quiet); background: var(--panel); }
.bar { display: inline-block; width: 5rem; height: .6rem; background: var(--line); border-radius: .2rem; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--bar); }
figure { margin: .5rem 0; } .picture { overflow: auto; max-height: 75vh; background: #ffffff; border: 1px solid var(--line); border-radius: .5rem; padding: .5rem; }
.picture img { display: block; min-width: 46rem; max-width: 100%; height: auto; margin: 0 auto; } figcaption { color: var(--quiet); margin: .3rem 0; }
pre { overflow: auto; max-height: 60vh; background: var(--panel); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem;
  font: 12.5px/1.45 ui-monospace, monospace; }
code { font: .93em ui-monospace, monospace; overflow-wrap: anywhere; }
.pages { display: flex; gap: 1.2rem; margin: .8rem 0; }
footer { border-top: 1px solid var(--line); color: var(--quiet); font-size: .92rem; padding: .8rem 0 2rem; }
@media (max-width: 40rem) { .spare { display: none; } th, td { padding: .3rem .4rem; } .figures { grid-template-columns: 1fr 1fr; }
  .value { font-size: 1.2rem; } .bar { width: 3rem; } }
@media print { header nav, .skip { display: none; } }
</style>
)";

struct RawPage {
  std::string_view path;
  std::string_view word;
};
constexpr RawPage kRawPages[] = {{"/metrics", "metrics"},
                                 {"/statusz", "status as JSON"},
                                 {"/healthz", "health"},
                                 {"/readyz", "readiness"}};

std::string Navigation(const PageFrame& frame) {
  std::string out = "<nav aria-label=\"Pages\"><ul>\n";
  for (const PageLink& link : frame.navigation) {
    StrAppend(&out, StrCat("<li><a href=\"", EscapeHtml(link.path), "\"",
                           link.path == frame.path ? " aria-current=\"page\"" : "", ">",
                           EscapeHtml(link.word), "</a></li>\n"));
  }
  return out + "</ul></nav>\n";
}

std::string Footer(const PageFrame& frame) {
  std::string out = StrCat("<footer><div class=\"inner\">fusiond ", EscapeHtml(frame.version),
                           ", page made ", EscapeHtml(frame.made), ". For programs: ");
  bool first = true;
  for (const RawPage& link : kRawPages) {
    StrAppend(&out, StrCat(first ? "" : ", ", "<a href=\"", link.path, "\">", link.word, "</a>"));
    first = false;
  }
  return out + ".</div></footer>\n";
}

}  // namespace

std::string PageText(const PageFrame& frame, const Markup& content) {
  const std::string refresh =
      frame.refresh_seconds > 0
          ? StrCat("<meta http-equiv=\"refresh\" content=\"", frame.refresh_seconds, "\"/>\n")
          : "";
  return StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n",
      refresh, "<title>", EscapeHtml(frame.title), " - fusiond</title>\n", kStyle,
      "</head>\n<body>\n<a class=\"skip\" href=\"#content\">To the content</a>\n<header><div "
      "class=\"inner\"><strong>fusiond</strong>\n",
      Navigation(frame), "</div></header>\n<main id=\"content\" class=\"inner\">\n<h1>",
      EscapeHtml(frame.title), "</h1>\n", content.html, "</main>\n", Footer(frame),
      "</body>\n</html>\n");
}

}  // namespace fusion
