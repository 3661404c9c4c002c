#include "client/fusionctl/output/search_output.h"

#include <nlohmann/json.hpp>

#include "client/fusionctl/output/explain_output.h"
#include "client/fusionctl/output/plan_output.h"
#include "client/fusionctl/output/print.h"
#include "client/fusionctl/output/terminal.h"
#include "core/base/contains.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

// The decisions of a tiling, word by word; more detailed than the tiles in a plan.
void AddWords(const LockedTiling& tiling, const std::string& phase,
              std::vector<std::string>* words) {
  auto add = [&](const auto&... parts) { words->push_back(StrCat(phase, parts...)); };
  for (const LockedTile& tile : tiling.grid) add(tile.dim, ":", tile.tile);
  if (tiling.streamed.has_value())
    add("streams ", tiling.streamed->dim, ":", tiling.streamed->tile);
  for (const LockedProduct& product : tiling.products) {
    add("product ", product.op, " by ", product.rows, "x", product.columns,
        product.swap ? " swapped" : "", product.stage_rows ? ", rows copied" : "");
  }
  if (!tiling.split.has_value()) return;
  add(tiling.split->dim, " in ", tiling.split->tile, " parts");
  AddWords(tiling.phases[0], "parts ", words);
  AddWords(tiling.phases[1], "merge ", words);
}

std::vector<std::string> WordsOf(const LockedChoice& choice) {
  std::vector<std::string> words;
  for (const LockedTiling& tiling : choice.parts) AddWords(tiling, "", &words);
  return words;
}

// The words of a tiling that differ from the chosen one.
std::vector<std::string> Unlike(const LockedChoice& tiling, const LockedChoice& pick) {
  const std::vector<std::string> known = WordsOf(pick);
  const std::vector<std::string> own = WordsOf(tiling);
  std::vector<std::string> unlike;
  for (const std::string& word : own) {
    if (!Contains(known, word)) unlike.push_back(word);
  }
  if (!unlike.empty()) return unlike;
  for (const std::string& word : known) {
    if (!Contains(own, word)) unlike.push_back(StrCat("not ", word));
  }
  return unlike;
}

std::string TilesCell(const TunedKernel& kernel, const TriedTiling& tiling) {
  constexpr size_t kMostWords = 3;
  std::vector<std::string> words = Unlike(tiling.choice, kernel.tried[0].choice);
  if (words.size() > kMostWords) {
    words.resize(kMostWords);
    words.emplace_back("...");
  }
  return StrCat(tiling.tiles, words.empty() ? "" : StrCat(" (", StrJoin(words, "; "), ")"),
                tiling.reason.empty() ? "" : StrCat("; not timed: ", tiling.reason));
}

std::string TriedTable(const TunedKernel& kernel) {
  Table table({{"cut", Table::kRight},
               {""},
               {"estimate", Table::kRight},
               {"measured", Table::kRight},
               {"95 % interval"},
               {"runs", Table::kRight},
               {"tiles", Table::kCut}});
  for (size_t i = 0; i < kernel.tried.size(); ++i) {
    const TriedTiling& tiling = kernel.tried[i];
    const bool timed = tiling.runs > 0;
    const bool chosen = static_cast<int>(i) == kernel.chosen;
    const std::string name = i == 0 ? "the model's" : "";
    table.Add(
        {StrCat(i), chosen ? StrCat(name, name.empty() ? "" : ", ", "chosen") : name,
         HumanMicroseconds(tiling.estimated_us), timed ? HumanMicroseconds(tiling.median_us) : "-",
         timed ? StrCat(HumanMicroseconds(tiling.low_us), " .. ", HumanMicroseconds(tiling.high_us))
               : "-",
         timed ? StrCat(tiling.runs) : "-", TilesCell(kernel, tiling)});
  }
  return table.ToString();
}

Json TriedJson(const TriedTiling& tiling, const TriedTiling& pick) {
  Json out = {{"tiles", tiling.tiles},
              {"unlike_pick", Unlike(tiling.choice, pick.choice)},
              {"estimated_us", tiling.estimated_us},
              {"runs", tiling.runs}};
  auto figure = [&tiling](double us) { return tiling.runs > 0 ? Json(us) : Json(); };
  out["median_us"] = figure(tiling.median_us);
  out["low_us"] = figure(tiling.low_us);
  out["high_us"] = figure(tiling.high_us);
  out["reason"] = tiling.reason;
  return out;
}

}  // namespace

std::string SearchLine(const TileSearch& search) {
  if (search.level == 0) return "";
  const std::string because = search.reason.empty() ? "" : StrCat("; ", search.reason);
  const std::string level = StrCat("tiles:   level ", search.level, ": ");
  switch (search.state) {
    case TileSearchState::kNone:
      return StrCat(level, "the model's, none were tried: ", search.reason, "\n");
    case TileSearchState::kPending:
      return StrCat(level, "the model's, none have been timed yet\n");
    case TileSearchState::kCutShort:
    case TileSearchState::kDone:
      break;
  }
  return StrCat(
      level, Count(search.measured, "candidate"), " timed in ",
      HumanMilliseconds(search.seconds * 1e3), ", ", search.recalled, " known from before; ",
      Count(search.changed, "kernel"), " not cut as the model picked",
      search.state == TileSearchState::kCutShort ? "; not all were tried" : "", because, "\n");
}

std::string SearchText(const Plan& plan) {
  const TileSearch& search = plan.search;
  if (search.level == 0) return "";
  std::string out = StrCat(Bold("which tiles were timed"), "\n", SearchLine(search));
  if (!search.conditions.empty()) StrAppend(&out, StrCat("on ", search.conditions, "\n"));
  for (const TunedKernel& kernel : search.kernels) {
    const std::string name = kernel.group < 0 ? "a kernel" : GroupText(plan, kernel.group);
    StrAppend(&out, StrCat("\n", name, ": ", kernel.reason,
                           kernel.recalled ? "; timed for another plan before" : "", "\n"));
    if (kernel.tried.size() > 1) StrAppend(&out, TriedTable(kernel));
  }
  return out;
}

Json SearchJson(const TileSearch& search) {
  if (search.level == 0) return nullptr;
  Json kernels = Json::array();
  for (const TunedKernel& kernel : search.kernels) {
    Json tried = Json::array();
    for (const TriedTiling& tiling : kernel.tried)
      tried.push_back(TriedJson(tiling, kernel.tried[0]));
    Json json = {
        {"group", kernel.group},       {"loop_ops", kernel.ops},   {"chosen", kernel.chosen},
        {"rival", kernel.rival},       {"pairs", kernel.pairs},    {"ratio", Json()},
        {"ratio_low", Json()},         {"ratio_high", Json()},     {"reason", kernel.reason},
        {"recalled", kernel.recalled}, {"tried", std::move(tried)}};
    if (kernel.pairs > 0) {
      json["ratio"] = kernel.ratio;
      json["ratio_low"] = kernel.ratio_low;
      json["ratio_high"] = kernel.ratio_high;
    }
    kernels.push_back(std::move(json));
  }
  Json out = {{"level", search.level},       {"state", TileSearchStateName(search.state)},
              {"reason", search.reason},     {"conditions", search.conditions},
              {"seconds", search.seconds},   {"measured", search.measured},
              {"recalled", search.recalled}, {"changed", search.changed}};
  // Plans are sent without them; explanations have them.
  if (!search.kernels.empty()) out["kernels"] = std::move(kernels);
  return out;
}

}  // namespace fusion
