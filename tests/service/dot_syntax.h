#pragma once

#include <string>
#include <string_view>

namespace fusion {

/// What is wrong with a text in Graphviz's DOT language; empty if nothing is. Knows the part that
/// writers of directed graphs use: subgraphs, attribute lists, assignments, edges between nodes.
/// An edge whose ends were not declared as nodes counts as an error: it is a misspelt id.
std::string DotError(std::string_view text);

}  // namespace fusion
