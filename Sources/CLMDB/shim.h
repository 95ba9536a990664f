// LMDB 0.9, as one system module.
#include <lmdb.h>
