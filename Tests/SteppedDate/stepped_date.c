// Sets another date for one program. As a shared library that is loaded before the others (LD_PRELOAD), it stands
// between the program and the system's functions that tell the date.
//
// SECONDS_AHEAD=N: the date is so many seconds ahead of the system's; N may be below 0. Other clocks, as the monotonic
// one, are the system's own. Without the variable nothing differs.
//
// The system goes on to wait by its own date, so what waits until a date is given that of the system.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define NANOSECONDS 1000000000

// The system's next function of that name.
#define SYSTEMS(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// Read each time: others may be called before any constructor, and the environment is as it was at the start.
static time_t ahead(void) {
    const char *text = getenv("SECONDS_AHEAD");
    return text ? (time_t)atoll(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = SYSTEMS(clock_gettime)(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int result = SYSTEMS(gettimeofday)(now, zone);
    if (result == 0) now->tv_sec += ahead();
    return result;
}

time_t time(time_t *place) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return (time_t)-1;
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}

// libdispatch counts nanoseconds in 64 bits without a sign: before 1970 its deadline seems to be in a later century.
static struct timespec systems_deadline(const struct timespec *deadline) {
    uint64_t counted = (uint64_t)deadline->tv_sec * NANOSECONDS + (uint64_t)deadline->tv_nsec;
    int64_t nanoseconds = (int64_t)counted - (int64_t)ahead() * NANOSECONDS;
    if (nanoseconds < 0) nanoseconds = 0;
    return (struct timespec){.tv_sec = nanoseconds / NANOSECONDS, .tv_nsec = nanoseconds % NANOSECONDS};
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict deadline) {
    if (ahead() == 0) return SYSTEMS(sem_timedwait)(semaphore, deadline);
    struct timespec systems = systems_deadline(deadline);
    return SYSTEMS(sem_timedwait)(semaphore, &systems);
}
