#pragma once

#include <string>
#include <vector>

#include "core/smg/smg.h"

namespace fusion {

/// The structure hash of a kernel: 16 hex digits that name what it computes and how its ops hang
/// together, whatever its sizes. Equal for space-mapping graphs that differ only in extents, values
/// of constants, element types, layouts, names, the order of ops, the order of operands that
/// commute, and dims that are always walked together (a batch of one dim or of three). What
/// differs in an op (its scalar expression and its reduction; op types do not count, so that an
/// exporter's decomposition is what it spells), an edge (which op or input feeds which operand,
/// also whether two ops read one input), or a mapping (the dims an operand lacks, are reduced, are
/// read at an offset, in windows or through an index) has another hash. A dim of extent 1 is none,
/// and a read in parts (Concat, Pad) is an operand of its own.
///
/// `parts`: the SMGs of one kernel; sets of ops that nothing connects count alike whether they lie
/// in one SMG or in several. Empty if fewer than two of their ops compute something: a copy or a
/// cast does not.
///
/// Found by colour refinement (Weisfeiler and Leman) of ops, dims and inputs. Pure.
std::string StructureHash(const std::vector<const Smg*>& parts);

}  // namespace fusion
