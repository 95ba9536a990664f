// What Swift's Glibc module leaves out; empty elsewhere, so that the package builds there.
#ifdef __linux__
#include <sys/epoll.h>
#endif
