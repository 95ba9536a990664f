// Nodes get the padding of a message of another length.
#if defined(__x86_64__)
#include "CKernels.h"

#define rg_sha256_nodes_avx512 mutant_node_padding_nodes
#define rg_sha256_messages_avx512 mutant_node_padding_messages
#include "../../Sources/CKernels/sha256/sha256_constants.h"
#define rg_sha256_node_padding rg_sha256_round_constants
#include "../../Sources/CKernels/sha256/sha256_avx512.c"

extern const rg_sha256_functions rg_sha256_mutant_node_padding;
const rg_sha256_functions rg_sha256_mutant_node_padding = {16, rg_sha256_nodes_avx512, rg_sha256_messages_avx512};
#endif
