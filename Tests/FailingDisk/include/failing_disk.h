// Stands between LMDB and the system in a program that is linked with it: chosen writes to a data file fail.
//
// As a shared library that is loaded before the others (LD_PRELOAD), it stands before all of a program, and the
// environment says which reads fail:
//
// FAILING_READS=AFTER:COUNT:ERROR:PATH: reads of the file at PATH, or of what is in the folder. So many succeed, and
// the next COUNT ones fail with ERROR. If that is 0, each of them gets half of the bytes that it asks for.
//
// FAILING_READS_WHILE=PATH: reads fail, and are counted, only while there is such a file.
//
// Each read that fails or is cut short writes a line to standard error.
#ifndef FAILING_DISK_H
#define FAILING_DISK_H

#include <stddef.h>
#include <stdint.h>

enum failing_call {
    failing_nothing,
    // Writing the 120 bytes of a meta page that a commit changes.
    failing_meta,
    // Writing pages.
    failing_data,
    // Making them durable.
    failing_sync,
    // Writing the 184 bytes of the note of the newest commit.
    failing_note,
};

// From now on calls of that kind succeed `after` times, and the next `count` ones fail with `error`.
void failing_disk_plan(enum failing_call kind, int after, int count, int error);

// How many calls have failed.
int failing_disk_failures(void);

// From now on no file gets bytes behind `bytes`, 0: any number. If it `promises`, the disk says that it keeps room for
// them, and cuts writes short.
void failing_disk_end(long bytes, int promises);

// How many milliseconds each call that makes files durable takes longer.
void failing_disk_delay(int milliseconds);

// What is recorded, in order.
enum recorded_kind {
    // Bytes of a file that the disk may have from now on.
    recorded_write,
    // The write with the number `covered` is on the disk.
    recorded_durable,
    // All writes to the file with lower numbers than `covered` are on the disk.
    recorded_sync,
    // Something that the program has noted.
    recorded_mark,
};

struct recorded_event {
    enum recorded_kind kind;
    // 0 or 1, as given to `failing_disk_follow`.
    int file;
    int64_t offset;
    size_t count;
    const unsigned char *bytes;
    size_t covered;
    // The length of the file.
    int64_t size;
    uint64_t value;
};

// From now on what is done to these two files, which must exist, is recorded; what was recorded before is forgotten.
// Returns 0 on success.
int failing_disk_follow(const char *first, const char *second);

// From now on nothing is recorded.
void failing_disk_rest(void);

// Records a note of the program.
void failing_disk_mark(uint64_t value);

// How many events were recorded, and the event with that number. Its bytes last until the next `failing_disk_follow`.
size_t failing_disk_events(void);
struct recorded_event failing_disk_event(size_t number);

#endif
