/// Names of a peer's descriptor, from PEER_ISA and PEER_LIBRARY, which includers define, and
/// PEER_DTYPE, f32 unless they define it.
#ifndef MHA_PEER_NAME_H
#define MHA_PEER_NAME_H

#ifndef PEER_DTYPE
#define PEER_DTYPE f32
#endif

#define PEER_STRING_(x) #x
#define PEER_STRING(x) PEER_STRING_(x)
#define PEER_PASTE_(op, dtype, isa, library) op##_##dtype##_##isa##_##library
#define PEER_PASTE(op, dtype, isa, library) PEER_PASTE_(op, dtype, isa, library)

/// The descriptor's symbol.
#define PEER_KERNEL(op) PEER_PASTE(op, PEER_DTYPE, PEER_ISA, PEER_LIBRARY)

/// The members of a descriptor that say what it is.
#define PEER_NAMES(op_)                                             \
    .name = PEER_STRING(PEER_KERNEL(op_)), .op = PEER_STRING(op_),  \
    .dtype = PEER_STRING(PEER_DTYPE), .isa = PEER_STRING(PEER_ISA), \
    .tag = PEER_STRING(PEER_LIBRARY)

#endif
