#define _GNU_SOURCE
#include "failing_disk.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

// MARK: Recording

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_recording;
static struct stat followed[2];
static struct recorded_event *events;
static size_t events_count, events_capacity;

int failing_disk_follow(const char *first, const char *second) {
    pthread_mutex_lock(&lock);
    for (size_t number = 0; number < events_count; number++) free((void *)events[number].bytes);
    events_count = 0;
    int code = stat(first, &followed[0]) | stat(second, &followed[1]);
    is_recording = code == 0;
    pthread_mutex_unlock(&lock);
    return code;
}

void failing_disk_rest(void) {
    pthread_mutex_lock(&lock);
    is_recording = 0;
    pthread_mutex_unlock(&lock);
}

size_t failing_disk_events(void) {
    pthread_mutex_lock(&lock);
    size_t count = events_count;
    pthread_mutex_unlock(&lock);
    return count;
}

struct recorded_event failing_disk_event(size_t number) {
    pthread_mutex_lock(&lock);
    struct recorded_event event = events[number];
    pthread_mutex_unlock(&lock);
    return event;
}

// Which of the followed files it is; -1 when it is none. Fills in the file's length.
static int followed_file(int file, int64_t *size) {
    struct stat status;
    if (!is_recording || fstat(file, &status) != 0) return -1;
    *size = status.st_size;
    for (int index = 0; index < 2; index++) {
        if (status.st_ino == followed[index].st_ino && status.st_dev == followed[index].st_dev) return index;
    }
    return -1;
}

// Adds an event and returns its number.
static size_t add(struct recorded_event event) {
    pthread_mutex_lock(&lock);
    if (events_count == events_capacity) {
        events_capacity = events_capacity ? 2 * events_capacity : 1024;
        events = realloc(events, events_capacity * sizeof *events);
        if (!events) abort();
    }
    size_t number = events_count++;
    events[number] = event;
    pthread_mutex_unlock(&lock);
    return number;
}

static size_t now(void) {
    pthread_mutex_lock(&lock);
    size_t count = events_count;
    pthread_mutex_unlock(&lock);
    return count;
}

void failing_disk_mark(uint64_t value) {
    if (is_recording) add((struct recorded_event){.kind = recorded_mark, .value = value});
}

// Records a write that is about to be made. Returns its number.
static size_t record_write(int index, int64_t size, const void *bytes, size_t count, int64_t offset) {
    unsigned char *copy = malloc(count);
    if (!copy) abort();
    memcpy(copy, bytes, count);
    if (offset + (int64_t)count > size) size = offset + (int64_t)count;
    return add((struct recorded_event){
        .kind = recorded_write, .file = index, .offset = offset, .count = count, .bytes = copy, .size = size});
}

// Calls a function that makes a file durable, and records it when it has succeeded.
static int synchronize(int file, long call) {
    int64_t size = 0;
    int index = followed_file(file, &size);
    size_t covered = now();
    int code = (int)syscall(call, file);
    if (code == 0 && index >= 0) {
        add((struct recorded_event){.kind = recorded_sync, .file = index, .covered = covered, .size = size});
    }
    return code;
}

// MARK: The disk

// The system's functions of these names, which LMDB finds here first.

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    if (count == 120 && offset % 4096 == 32 && fails(failing_meta)) return -1;
    if (count == 184 && offset == 0 && fails(failing_note)) return -1;
    if (count >= 4096 && fails(failing_data)) return -1;
    size_t taken = room(offset, count);
    if (taken == 0 && count > 0) return no_room();
    int64_t size = 0;
    int index = followed_file(file, &size);
    if (index < 0) return syscall(SYS_pwrite64, file, bytes, taken, offset);
    size_t number = record_write(index, size, bytes, taken, offset);
    ssize_t written = syscall(SYS_pwrite64, file, bytes, taken, offset);
    // What is written through such a descriptor is on the disk when the call returns.
    if (written == (ssize_t)taken && fcntl(file, F_GETFL) & O_DSYNC) {
        struct recorded_event event = {.kind = recorded_durable, .file = index, .covered = number, .size = size};
        if (offset + (int64_t)taken > size) event.size = offset + (int64_t)taken;
        add(event);
    }
    return written;
}

ssize_t writev(int file, const struct iovec *pieces, int count) {
    if (count > 0 && pieces[0].iov_len >= 4096 && fails(failing_data)) return -1;
    off_t offset = end > 0 ? lseek(file, 0, SEEK_CUR) : -1;
    size_t bytes = 0;
    for (int index = 0; index < count; index++) bytes += pieces[index].iov_len;
    // Sockets and pipes have no place.
    if (offset < 0 || room(offset, bytes) == bytes) {
        int64_t size = 0;
        int64_t place = 0;
        int followed = followed_file(file, &size);
        if (followed >= 0) place = lseek(file, 0, SEEK_CUR);
        for (int piece = 0; followed >= 0 && piece < count; piece++) {
            record_write(followed, size, pieces[piece].iov_base, pieces[piece].iov_len, place);
            place += (int64_t)pieces[piece].iov_len;
        }
        return syscall(SYS_writev, file, pieces, count);
    }
    size_t first = count > 0 ? room(offset, pieces[0].iov_len) : 0;
    if (first == 0) return no_room();
    return syscall(SYS_write, file, pieces[0].iov_base, first);
}

int posix_fallocate(int file, off_t offset, off_t length) {
    if (end > 0 && offset + length > end) {
        if (!promises) return ENOSPC;
        // The file gets longer, as if the disk had the room.
        struct stat status;
        if (fstat(file, &status) != 0) return errno;
        if (status.st_size >= offset + length) return 0;
        return ftruncate(file, offset + length) == 0 ? 0 : errno;
    }
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
    return synchronize(file, SYS_fsync);
}

int fdatasync(int file) {
    wait_for_disk();
    if (fails(failing_sync)) return -1;
    return synchronize(file, SYS_fdatasync);
}

// MARK: Reads

static char failing_path[PATH_MAX], failing_while[PATH_MAX];
static atomic_int reads_before, reads_to_fail, read_error;

__attribute__((constructor)) static void plan_reads(void) {
    const char *plan = getenv("FAILING_READS");
    const char *while_there = getenv("FAILING_READS_WHILE");
    int after, count, error, path = 0;
    if (plan == NULL || sscanf(plan, "%d:%d:%d:%n", &after, &count, &error, &path) != 3 || path == 0) return;
    reads_before = after;
    reads_to_fail = count;
    read_error = error;
    snprintf(failing_while, sizeof failing_while, "%s", while_there ? while_there : "");
    snprintf(failing_path, sizeof failing_path, "%s", plan + path);
}

// Whether the file is the chosen one or below it. Fills in its path.
static int is_chosen(int file, char *path) {
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t count = readlink(link, path, PATH_MAX - 1);
    if (count <= 0) return 0;
    path[count] = 0;
    size_t length = strlen(failing_path);
    return strncmp(path, failing_path, length) == 0 && (path[length] == 0 || path[length] == '/');
}

// Whether this read of at most `count` bytes fails, with `errno`. Cuts `count` when it is to be a short one.
static int read_fails(int file, size_t *count) {
    if (failing_path[0] == 0) return 0;
    int saved = errno;
    char path[PATH_MAX], line[PATH_MAX + 64];
    struct stat status;
    int is_due = is_chosen(file, path) && (failing_while[0] == 0 || stat(failing_while, &status) == 0) &&
        atomic_fetch_sub(&reads_before, 1) <= 0;
    errno = saved;
    if (!is_due) return 0;
    reads_before = 0;
    if (atomic_fetch_sub(&reads_to_fail, 1) <= 0) {
        reads_to_fail = 0;
        return 0;
    }
    int bytes =
        snprintf(line, sizeof line, "failing disk: %s %s\n", read_error ? "can't read" : "cuts a read of", path);
    syscall(SYS_write, STDERR_FILENO, line, bytes);
    if (read_error == 0) {
        if (*count > 1) *count /= 2;
        errno = saved;
        return 0;
    }
    errno = read_error;
    return 1;
}

ssize_t read(int file, void *bytes, size_t count) {
    if (read_fails(file, &count)) return -1;
    return syscall(SYS_read, file, bytes, count);
}

ssize_t pread(int file, void *bytes, size_t count, off_t offset) {
    if (read_fails(file, &count)) return -1;
    return syscall(SYS_pread64, file, bytes, count, offset);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t offset) { return pread(file, bytes, count, offset); }

struct dirent *readdir(DIR *folder) {
    struct dirent *(*systems)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
    size_t count = 0;
    if (systems == NULL || read_fails(dirfd(folder), &count)) return NULL;
    return systems(folder);
}
