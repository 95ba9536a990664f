#define _GNU_SOURCE
#include "failing_disk.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int planned, left_before, left_to_fail, error_number, failures, delay;

void failing_disk_plan(enum failing_call kind, int after, int count, int error) {
    left_before = after;
    left_to_fail = count;
    error_number = error;
    planned = kind;
}

int failing_disk_failures(void) { return failures; }
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

// The system's functions of these names, which LMDB finds here first.

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    if (count == 120 && offset % 4096 == 32 && fails(failing_meta)) return -1;
    if (count >= 4096 && fails(failing_data)) return -1;
    return syscall(SYS_pwrite64, file, bytes, count, offset);
}

ssize_t writev(int file, const struct iovec *pieces, int count) {
    if (count > 0 && pieces[0].iov_len >= 4096 && fails(failing_data)) return -1;
    return syscall(SYS_writev, file, pieces, count);
}

int fdatasync(int file) {
    if (delay > 0) usleep((useconds_t)delay * 1000);
    if (fails(failing_sync)) return -1;
    return (int)syscall(SYS_fdatasync, file);
}
