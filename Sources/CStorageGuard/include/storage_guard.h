// Calls of LMDB that come back even when LMDB meets damage. LMDB trusts what it reads from its file: a damaged page
// leads to a failed assertion, to a wild address, or to a division by zero. A file that was cut, or that can't be
// read, leads to SIGBUS. Each function here does what LMDB's function of that name does. When one of these happens
// within it, it returns STORAGE_FAULT, and `storage_guard_reason` tells what it was.
//
// After a fault the transaction is in an unknown state. A read transaction may still be ended, because it changes
// nothing but its own cursors. A write transaction must not be touched again, nor its environment be closed.
//
// Addresses within the map that are read elsewhere are covered by `storage_map_add`.
#ifndef STORAGE_GUARD_H
#define STORAGE_GUARD_H

#include <lmdb.h>
#include <stddef.h>

// Not among the codes of LMDB (-30799 to -30779) or of the system.
#define STORAGE_FAULT (-30700)

// Installs the handlers of SIGBUS, SIGSEGV, SIGFPE and SIGILL, once for the process. A signal that is none of ours goes
// to the handler that was there before.
void storage_guard_install(void);

// How many faults this thread has met in these functions. A caller compares it before and after.
unsigned long storage_guard_thread_faults(void);

// What this thread's last fault was, one line; empty before the first.
const char *storage_guard_reason(void);

// Makes failed assertions of this environment come back, too.
void storage_guard_watch(MDB_env *env);

// Covers a map of a file. Reading a page of it that the file no longer has, or that can't be read, gives zeros and is
// counted. `length`: bytes. Returns a number for the functions below; -1 when too many maps are covered.
int storage_map_add(const void *start, size_t length);
void storage_map_remove(int map);

// How many pages of the map could not be read, by any thread.
unsigned long storage_map_faults(int map);

// The offset in the map of the first page that could not be read.
size_t storage_map_first_fault(int map);

int guarded_env_open(MDB_env *env, const char *path, unsigned int flags, mdb_mode_t mode);
int guarded_env_close(MDB_env *env);
int guarded_env_info(MDB_env *env, MDB_envinfo *info);
int guarded_env_stat(MDB_env *env, MDB_stat *statistics);
int guarded_env_set_mapsize(MDB_env *env, size_t size);
int guarded_reader_check(MDB_env *env, int *dead);
int guarded_reader_list(MDB_env *env, MDB_msg_func *tell, void *context);
int guarded_txn_begin(MDB_env *env, MDB_txn *parent, unsigned int flags, MDB_txn **txn);
int guarded_txn_commit(MDB_txn *txn);
int guarded_txn_renew(MDB_txn *txn);
int guarded_txn_reset(MDB_txn *txn);
int guarded_txn_abort(MDB_txn *txn);
int guarded_dbi_open(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi);
int guarded_stat(MDB_txn *txn, MDB_dbi dbi, MDB_stat *statistics);
int guarded_get(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data);
int guarded_put(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, unsigned int flags);
int guarded_del(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data);
int guarded_drop(MDB_txn *txn, MDB_dbi dbi, int deletes);
int guarded_cursor_open(MDB_txn *txn, MDB_dbi dbi, MDB_cursor **cursor);
int guarded_cursor_renew(MDB_txn *txn, MDB_cursor *cursor);
int guarded_cursor_get(MDB_cursor *cursor, MDB_val *key, MDB_val *data, MDB_cursor_op op);
int guarded_cursor_del(MDB_cursor *cursor, unsigned int flags);

// For tests: fails an assertion, or reads an address, inside of a guard.
int guarded_failed_assertion(MDB_env *env);
int guarded_read(const void *address);

#endif
