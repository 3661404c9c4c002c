#include "core/export/contract.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

#include "core/base/text/text.h"

namespace fusion {
namespace {

// Nodes in order; edges lead forward.
NodeGraph Graph(int nodes, const std::vector<std::pair<int, int>>& edges,
                const std::set<int>& free = {}) {
  NodeGraph out;
  out.readers.resize(static_cast<size_t>(nodes));
  out.order.resize(static_cast<size_t>(nodes));
  std::iota(out.order.begin(), out.order.end(), 0);
  for (auto [from, to] : edges) out.readers[static_cast<size_t>(from)].push_back(to);
  for (int i = 0; i < nodes; ++i) out.free.push_back(free.count(i) > 0);
  return out;
}

// "0+2 | 1": parts in order, '*' before those of a set.
std::string Parts(const NodeGraph& graph, const std::vector<std::vector<int>>& sets) {
  return StrJoin(Contract(graph, sets), " | ", [](const NodePart& part) {
    return StrCat(part.set >= 0 ? "*" : "",
                  StrJoin(part.nodes, "+", [](int node) { return StrCat(node); }));
  });
}

TEST(Contract, ASetIsOnePart) {
  EXPECT_EQ(Parts(Graph(3, {{0, 1}, {1, 2}}), {{1, 2}}), "0 | *1+2");
}

TEST(Contract, NodesThatDoNotDependOnTheSetGoBeforeIt) {
  EXPECT_EQ(Parts(Graph(4, {{0, 2}, {0, 3}}), {{0, 2}}), "1 | *0+2 | 3");
}

TEST(Contract, FreeNodesBetweenGoInside) {
  EXPECT_EQ(Parts(Graph(4, {{0, 1}, {1, 2}, {2, 3}}, {1, 2}), {{0, 3}}), "*0+1+2+3");
  EXPECT_EQ(Parts(Graph(3, {{0, 1}, {0, 2}}, {1}), {{0, 2}}), "*0+2 | 1") << "it is not between";
}

TEST(Contract, OtherNodesBetweenCutASet) {
  EXPECT_EQ(Parts(Graph(3, {{0, 1}, {1, 2}}), {{0, 2}}), "*0 | 1 | *2");
  EXPECT_EQ(Parts(Graph(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}), {{0, 1, 3, 4}}), "*0+1 | 2 | *3+4");
}

TEST(Contract, TwoSetsThatReadFromEachOther) {
  // Each alone is fine.
  NodeGraph graph = Graph(4, {{0, 2}, {1, 3}});
  EXPECT_EQ(Parts(graph, {{0, 3}}), "1 | *0+3 | 2");
  EXPECT_EQ(Parts(graph, {{1, 2}}), "0 | *1+2 | 3");
  EXPECT_EQ(Parts(graph, {{0, 3}, {1, 2}}), "*1 | *0+3 | *2");
}

TEST(Contract, TheFirstOfTwoStaysWhole) {
  EXPECT_EQ(Parts(Graph(6, {{0, 2}, {2, 4}, {1, 3}, {3, 5}}), {{0, 5}, {2, 3}, {4}}),
            "1 | *3 | *0+5 | *2 | *4");
}

TEST(Contract, RandomSetsLeaveNoCycle) {
  std::mt19937 random(7);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int cut = 0, whole = 0;
  for (int round = 0; round < 3000; ++round) {
    const int nodes = 2 + below(14);
    std::vector<std::pair<int, int>> edges;
    for (int i = below(3 * nodes); i > 0; --i) {
      int a = below(nodes), b = below(nodes);
      if (a != b) edges.emplace_back(std::min(a, b), std::max(a, b));
    }
    std::vector<std::vector<int>> sets(static_cast<size_t>(1 + below(4)));
    std::set<int> free;
    for (int i = 0; i < nodes; ++i) {
      const auto at = static_cast<size_t>(below(static_cast<int>(sets.size()) + 2));
      if (at < sets.size()) {
        sets[at].push_back(i);
      } else if (at == sets.size()) {
        free.insert(i);
      }
    }
    const std::vector<NodePart> parts = Contract(Graph(nodes, edges, free), sets);
    std::map<int, size_t> place;
    std::vector<int> count(sets.size());
    for (size_t p = 0; p < parts.size(); ++p) {
      EXPECT_TRUE(std::is_sorted(parts[p].nodes.begin(), parts[p].nodes.end()));
      if (parts[p].set >= 0) ++count[static_cast<size_t>(parts[p].set)];
      EXPECT_TRUE(parts[p].set >= 0 || parts[p].nodes.size() == 1);
      for (int node : parts[p].nodes) EXPECT_TRUE(place.emplace(node, p).second);
    }
    EXPECT_EQ(place.size(), static_cast<size_t>(nodes));
    for (auto [a, b] : edges) EXPECT_LE(place[a], place[b]) << "round " << round;
    for (size_t s = 0; s < sets.size(); ++s) {
      for (int node : sets[s]) EXPECT_EQ(parts[place[node]].set, static_cast<int>(s));
      if (!sets[s].empty()) ++(count[s] == 1 ? whole : cut);
    }
  }
  EXPECT_GT(whole, 1000);
  EXPECT_GT(cut, 300);
}

}  // namespace
}  // namespace fusion
