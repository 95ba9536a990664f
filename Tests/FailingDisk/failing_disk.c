#define _GNU_SOURCE
#include "failing_disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int planned, left_before, left_to_fail, error_number, failures, delay, promises;
static atomic_long end;

void failing_disk_plan(enum failing_call kind, int after, int count, int error) {
    left_before = after;
    left_to_fail = count;
    error_number = error;
    planned = kind;
}

int failing_disk_failures(void) { return failures; }
void failing_disk_end(long bytes, int promises_room) {
    end = bytes;
    promises = promises_room;
}
void failing_disk_delay(int milliseconds) { delay = milliseconds; }

static int fails(enum failing_call kind) {
    if (planned != (int)kind) return 0;
    if (atomic_fetch_sub(&left_before, 1) > 0) return 0;
    left_before = 0;
    if (atomic_fetch_sub(&left_to_fail, 1) <= 0) {
        planned = failing_nothing;
        return 0;
    }
    failures += 1;
    errno = error_number;
    return 1;
}

// How many of the bytes at `offset` the disk takes: fewer than `count` when it ends there.
static size_t room(off_t offset, size_t count) {
    if (end == 0 || offset + (off_t)count <= end) return count;
    return offset < end ? (size_t)(end - offset) : 0;
}

static ssize_t no_room(void) {
    errno = ENOSPC;
    return -1;
}

// The system's functions of these names, which LMDB finds here first.

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    if (count == 120 && offset % 4096 == 32 && fails(failing_meta)) return -1;
    if (count >= 4096 && fails(failing_data)) return -1;
    size_t taken = room(offset, count);
    if (taken == 0 && count > 0) return no_room();
    return syscall(SYS_pwrite64, file, bytes, taken, offset);
}

ssize_t writev(int file, const struct iovec *pieces, int count) {
    if (count > 0 && pieces[0].iov_len >= 4096 && fails(failing_data)) return -1;
    off_t offset = end > 0 ? lseek(file, 0, SEEK_CUR) : -1;
    size_t bytes = 0;
    for (int index = 0; index < count; index++) bytes += pieces[index].iov_len;
    // Sockets and pipes have no place.
    if (offset < 0 || room(offset, bytes) == bytes) return syscall(SYS_writev, file, pieces, count);
    size_t first = count > 0 ? room(offset, pieces[0].iov_len) : 0;
    if (first == 0) return no_room();
    return syscall(SYS_write, file, pieces[0].iov_base, first);
}

int posix_fallocate(int file, off_t offset, off_t length) {
    if (end > 0 && offset + length > end) return promises ? 0 : ENOSPC;
    return syscall(SYS_fallocate, file, 0, offset, length) == 0 ? 0 : errno;
}

// Says how much room is left behind the file.
int fstatvfs(int file, struct statvfs *answer) {
    int (*systems)(int, struct statvfs *) = (int (*)(int, struct statvfs *))dlsym(RTLD_NEXT, "fstatvfs");
    if (systems == NULL) return -1;
    int result = systems(file, answer);
    struct stat status;
    if (end == 0 || result != 0 || fstat(file, &status) != 0 || answer->f_frsize == 0) return result;
    off_t left = end > status.st_size ? end - status.st_size : 0;
    answer->f_bavail = (fsblkcnt_t)left / answer->f_frsize;
    return 0;
}

static void wait_for_disk(void) {
    if (delay > 0) usleep((useconds_t)delay * 1000);
}

int fsync(int file) {
    wait_for_disk();
    return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
    wait_for_disk();
    if (fails(failing_sync)) return -1;
    return (int)syscall(SYS_fdatasync, file);
}
