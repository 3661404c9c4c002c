#pragma once

#include <string>
#include <vector>

#include "core/smg/smg.h"

namespace fusion {

/// The structure hash of a kernel: 16 hex digits that identify what it computes and how its ops are
/// connected, independent of its sizes.
///
/// Equal for SMGs that differ only in extents, values of constants, element types, layouts, names,
/// the order of ops, the order of commutative operands, and dims that always occur together (a
/// batch of one dim or of three). A dim of extent 1 does not count. Op types do not count either,
/// so that an exporter's decomposition hashes like the operator itself.
///
/// Different if an op differs (scalar expression, reduction), an edge (which op or input feeds
/// which operand; whether two ops read the same input), or a mapping (the dims that an operand
/// lacks, that are reduced, or that are read at an offset, in windows or through an index). A read
/// in parts (Concat, Pad) is an operand of its own.
///
/// `parts`: the SMGs of one kernel, none null. Unconnected sets of ops count alike in one SMG or in
/// several. Empty if fewer than two of the ops compute something; copies and casts do not.
///
/// Found by colour refinement (Weisfeiler and Leman) of ops, dims and inputs. Pure; any thread.
std::string StructureHash(const std::vector<const Smg*>& parts);

}  // namespace fusion
