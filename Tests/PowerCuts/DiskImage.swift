import FailingDisk
import TestSupport

/// What a disk may hold after a power cut: everything that was made durable, and of the later writes any part, in
/// pieces of 512 bytes. A disk that writes in any order leaves no other image: of several writes to one place, any may
/// be the last.
struct DiskImage {
    private static let sector = 512

    let files: [[UInt8]]
    /// How many writes were neither durable nor whole on the disk.
    let lost: Int

    /// The power is cut before the event `cut`. `ignoresSyncs`: a disk that says that it is done when it is not.
    init(_ recording: Recording, cut: Int, ignoresSyncs: Bool, _ random: inout SeededGenerator) {
        var files = recording.before
        var lost = 0
        for file in files.indices {
            let events = recording.events[..<cut]
            var isDurable = Set<Int>()
            var synced = 0
            var size = files[file].count
            for event in events where event.file == file && !ignoresSyncs {
                if event.kind == recorded_durable { isDurable.insert(event.covered) }
                if event.kind == recorded_sync { synced = max(synced, event.covered) }
                if event.kind == recorded_durable || event.kind == recorded_sync { size = max(size, Int(event.size)) }
            }
            // How much of what is not durable has reached the disk.
            let share = [0, 1, Double.random(in: 0...1, using: &random)][Int.random(in: 0..<3, using: &random)]
            let isTorn = Bool.random(using: &random)
            var present = size
            for (number, event) in events.enumerated() where event.file == file && event.kind == recorded_write {
                let bytes = UnsafeRawBufferPointer(start: event.bytes, count: event.count)
                let isOnDisk = number < synced || isDurable.contains(number)
                if !isOnDisk, Bool.random(using: &random) { present = max(present, Int(event.size)) }
                var wrote = true
                let keepsWhole = Double.random(in: 0..<1, using: &random) < share
                var start = 0
                while start < bytes.count {
                    let place = Int(event.offset) + start
                    let end = min(bytes.count, start + DiskImage.sector - place % DiskImage.sector)
                    let isKept = isTorn ? Double.random(in: 0..<1, using: &random) < share : keepsWhole
                    if isOnDisk || isKept {
                        let last = Int(event.offset) + end
                        if files[file].count < last {
                            files[file] += repeatElement(0, count: last - files[file].count)
                        }
                        files[file].replaceSubrange(place..<last, with: bytes[start..<end])
                    } else {
                        wrote = false
                    }
                    start = end
                }
                if !wrote { lost += 1 }
            }
            if files[file].count < present { files[file] += repeatElement(0, count: present - files[file].count) }
        }
        (self.files, self.lost) = (files, lost)
    }
}
