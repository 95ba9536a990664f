// Stands between LMDB and the system in a program that is linked with it: chosen writes to a data file fail.
#ifndef FAILING_DISK_H
#define FAILING_DISK_H

enum failing_call {
    failing_nothing,
    // Writing the 120 bytes of a meta page that a commit changes.
    failing_meta,
    // Writing pages.
    failing_data,
    // Making them durable.
    failing_sync,
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

#endif
