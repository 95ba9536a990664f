#define _GNU_SOURCE
#include "storage_guard.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// MARK: Guards

// A call of LMDB that this thread is in, and where to go when it can't go on.
struct guard {
    sigjmp_buf jump;
    struct guard *outer;
};

// `volatile`: a signal handler reads it while a function of LMDB runs.
static _Thread_local struct guard *volatile innermost;
static _Thread_local unsigned long thread_faults;
static _Thread_local char reason[192];

unsigned long storage_guard_thread_faults(void) { return thread_faults; }
const char *storage_guard_reason(void) { return reason; }

// Leaves the innermost guarded call. `reason` was written.
static _Noreturn void leave(struct guard *guard) {
    innermost = guard->outer;
    thread_faults += 1;
    siglongjmp(guard->jump, 1);
}

// snprintf(3) is not safe in a signal handler.
static size_t append(size_t at, const char *text) {
    while (*text && at + 1 < sizeof reason) reason[at++] = *text++;
    reason[at] = 0;
    return at;
}

static void failed_assertion(MDB_env *env, const char *message) {
    (void)env;
    struct guard *guard = innermost;
    // Outside of a guard LMDB ends the process.
    if (!guard) return;
    append(append(0, "LMDB failed an assertion: "), message);
    leave(guard);
}

void storage_guard_watch(MDB_env *env) { mdb_env_set_assert(env, failed_assertion); }

// MARK: Maps

enum { maps_max = 64 };

struct map {
    // 0: the place is free; 1: it is taken, and covers nothing yet.
    atomic_uintptr_t start;
    atomic_uintptr_t end;
    atomic_ulong faults;
    atomic_size_t first;
};

static struct map maps[maps_max];
static size_t page_size;

int storage_map_add(const void *start, size_t length) {
    storage_guard_install();
    for (int index = 0; index < maps_max; index++) {
        uintptr_t nothing = 0;
        if (!atomic_compare_exchange_strong(&maps[index].start, &nothing, 1)) continue;
        atomic_store(&maps[index].faults, 0);
        atomic_store(&maps[index].first, 0);
        atomic_store(&maps[index].end, (uintptr_t)start + length);
        atomic_store(&maps[index].start, (uintptr_t)start);
        return index;
    }
    return -1;
}

void storage_map_remove(int map) {
    if (map < 0 || map >= maps_max) return;
    atomic_store(&maps[map].end, 0);
    atomic_store(&maps[map].start, 0);
}

unsigned long storage_map_faults(int map) {
    return map < 0 || map >= maps_max ? 0 : atomic_load_explicit(&maps[map].faults, memory_order_acquire);
}

size_t storage_map_first_fault(int map) { return map < 0 || map >= maps_max ? 0 : atomic_load(&maps[map].first); }

// Counts a page that can't be read. Returns whether a map that is covered has the address.
static int count_fault(uintptr_t address) {
    for (int index = 0; index < maps_max; index++) {
        uintptr_t start = atomic_load(&maps[index].start);
        if (start <= 1 || address < start || address >= atomic_load(&maps[index].end)) continue;
        unsigned long none = 0;
        size_t offset = address - start;
        if (atomic_load(&maps[index].faults) == none) atomic_store(&maps[index].first, offset - offset % page_size);
        atomic_fetch_add(&maps[index].faults, 1);
        return 1;
    }
    return 0;
}

// MARK: Signals

enum { signals_count = 4 };
static const int signals[signals_count] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
static const char *const names[signals_count] = {"SIGBUS", "SIGSEGV", "SIGFPE", "SIGILL"};
static struct sigaction previous[signals_count];

static int place(int number) {
    for (int index = 0; index < signals_count; index++) {
        if (signals[index] == number) return index;
    }
    return 0;
}

static void on_signal(int number, siginfo_t *information, void *context) {
    int saved = errno;
    // The kernel raises these for what the thread itself did. Another process may send them, too.
    int isOwn = information->si_code > 0;
    uintptr_t address = (uintptr_t)information->si_addr;
    int isMapped = isOwn && number == SIGBUS && count_fault(address);
    struct guard *guard = innermost;
    if (isOwn && guard) {
        append(append(append(0, "LMDB was stopped by "), names[place(number)]), isMapped ? " in the map" : "");
        leave(guard);
    }
    if (isMapped) {
        void *page = (void *)(address - address % page_size);
        void *zeros = mmap(page, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        errno = saved;
        if (zeros != MAP_FAILED) return;
    }
    errno = saved;
    struct sigaction *before = &previous[place(number)];
    if (before->sa_flags & SA_SIGINFO && before->sa_sigaction) {
        return before->sa_sigaction(number, information, context);
    }
    if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) return before->sa_handler(number);
    // The instruction runs again, and then the system does what it does by default.
    sigaction(number, before, NULL);
    if (!isOwn) raise(number);
}

static void install(void) {
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    // NODEFER: `leave` does not return from the handler, so the signal must not stay blocked.
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int index = 0; index < signals_count; index++) sigaction(signals[index], &action, &previous[index]);
}

void storage_guard_install(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}

// MARK: LMDB

// Calls inside of a guard. The mask of signals is not saved: the handler does not change it.
#define GUARDED(call)                                   \
    struct guard guard;                                 \
    guard.outer = innermost;                            \
    if (sigsetjmp(guard.jump, 0)) return STORAGE_FAULT; \
    innermost = &guard;                                 \
    int code = (call);                                  \
    innermost = guard.outer;                            \
    return code;

static int reset(MDB_txn *txn) {
    mdb_txn_reset(txn);
    return MDB_SUCCESS;
}

static int end(MDB_txn *txn) {
    mdb_txn_abort(txn);
    return MDB_SUCCESS;
}

static int close_environment(MDB_env *env) {
    mdb_env_close(env);
    return MDB_SUCCESS;
}

static int touch(const void *address) { return *(const volatile char *)address; }

static int fail(MDB_env *env) {
    failed_assertion(env, "for a test");
    return MDB_SUCCESS;
}

int guarded_env_open(MDB_env *env, const char *path, unsigned int flags, mdb_mode_t mode) {
    GUARDED(mdb_env_open(env, path, flags, mode))
}
int guarded_env_close(MDB_env *env) { GUARDED(close_environment(env)) }
int guarded_env_info(MDB_env *env, MDB_envinfo *info) { GUARDED(mdb_env_info(env, info)) }
int guarded_env_stat(MDB_env *env, MDB_stat *statistics) { GUARDED(mdb_env_stat(env, statistics)) }
int guarded_env_set_mapsize(MDB_env *env, size_t size) { GUARDED(mdb_env_set_mapsize(env, size)) }
int guarded_reader_check(MDB_env *env, int *dead) { GUARDED(mdb_reader_check(env, dead)) }
int guarded_reader_list(MDB_env *env, MDB_msg_func *tell, void *context) {
    GUARDED(mdb_reader_list(env, tell, context))
}
int guarded_txn_begin(MDB_env *env, MDB_txn *parent, unsigned int flags, MDB_txn **txn) {
    GUARDED(mdb_txn_begin(env, parent, flags, txn))
}
int guarded_txn_commit(MDB_txn *txn) { GUARDED(mdb_txn_commit(txn)) }
int guarded_txn_renew(MDB_txn *txn) { GUARDED(mdb_txn_renew(txn)) }
int guarded_txn_reset(MDB_txn *txn) { GUARDED(reset(txn)) }
int guarded_txn_abort(MDB_txn *txn) { GUARDED(end(txn)) }
int guarded_dbi_open(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi) {
    GUARDED(mdb_dbi_open(txn, name, flags, dbi))
}
int guarded_stat(MDB_txn *txn, MDB_dbi dbi, MDB_stat *statistics) { GUARDED(mdb_stat(txn, dbi, statistics)) }
int guarded_get(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data) { GUARDED(mdb_get(txn, dbi, key, data)) }
int guarded_put(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, unsigned int flags) {
    GUARDED(mdb_put(txn, dbi, key, data, flags))
}
int guarded_del(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data) { GUARDED(mdb_del(txn, dbi, key, data)) }
int guarded_drop(MDB_txn *txn, MDB_dbi dbi, int deletes) { GUARDED(mdb_drop(txn, dbi, deletes)) }
int guarded_cursor_open(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **cursor) { GUARDED(mdb_cursor_open(txn, dbi, cursor)) }
int guarded_cursor_renew(MDB_txn *txn, MDB_cursor *cursor) { GUARDED(mdb_cursor_renew(txn, cursor)) }
int guarded_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *data, MDB_cursor_op op) {
    GUARDED(mdb_cursor_get(cursor, key, data, op))
}
int guarded_cursor_del(MDB_cursor *cursor, unsigned int flags) { GUARDED(mdb_cursor_del(cursor, flags)) }

int guarded_failed_assertion(MDB_env *env) { GUARDED(fail(env)) }
int guarded_read(const void *address) { GUARDED(touch(address)) }
