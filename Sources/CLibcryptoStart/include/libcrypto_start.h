// libcrypto frees what it has when the process ends, while threads may still use it: they fail then, or read memory
// that was freed. Programs that link this target keep it.
#ifndef LIBCRYPTO_START_H
#define LIBCRYPTO_START_H

// Whether libcrypto stays usable until the process has ended. It is, unless something used it before this target's
// constructor did.
int libcrypto_stays(void);

#endif
