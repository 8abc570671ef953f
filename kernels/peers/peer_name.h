/// Names of a peer's descriptor, from PEER_ISA and PEER_LIBRARY, which includers define.
#ifndef MHA_PEER_NAME_H
#define MHA_PEER_NAME_H

#define PEER_STRING_(x) #x
#define PEER_STRING(x) PEER_STRING_(x)
#define PEER_PASTE_(op, isa, library) op##_f32_##isa##_##library
#define PEER_PASTE(op, isa, library) PEER_PASTE_(op, isa, library)

/// The descriptor's symbol.
#define PEER_KERNEL(op) PEER_PASTE(op, PEER_ISA, PEER_LIBRARY)

/// The members of a descriptor that say what it is.
#define PEER_NAMES(op_)                                                            \
    .name = PEER_STRING(PEER_KERNEL(op_)), .op = PEER_STRING(op_), .dtype = "f32", \
    .isa = PEER_STRING(PEER_ISA), .tag = PEER_STRING(PEER_LIBRARY)

#endif
