// LMDB 0.9, as one system module.
#include <lmdb.h>

// Asks for a cache line before it is needed; Swift has no word for it. Any address will do.
static inline void lmdb_prefetch(const void *address) { __builtin_prefetch(address); }
