package import FailingDisk

/// What a disk may hold after a power cut: everything that was made durable, and of the later writes any part, in
/// pieces of 512 bytes. A disk that writes in any order leaves no other image: of several writes to one place, any may
/// be the last.
package struct DiskImage {
    private static let sector = 512

    package private(set) var files: [[UInt8]]
    /// How many writes were neither durable nor whole on the disk.
    package private(set) var lost = 0

    /// `before`: the files' contents when the recording began. `events`: what was recorded from then until the power
    /// was cut. `ignoresSyncs`: a disk that says that it is done when it is not.
    package init(
        _ before: [[UInt8]], _ events: [recorded_event], ignoresSyncs: Bool,
        _ random: inout some RandomNumberGenerator
    ) {
        files = before
        for file in files.indices { leave(file, events, ignoresSyncs: ignoresSyncs, &random) }
    }

    /// What the system holds of the files when the process ends: everything that it has written.
    package init(_ before: [[UInt8]], written events: [recorded_event]) {
        files = before
        for event in events where event.kind == recorded_write {
            put(
                UnsafeRawBufferPointer(start: event.bytes, count: event.count), at: Int(event.offset),
                in: Int(event.file))
        }
    }

    /// Changes one of the files into what may be left of it.
    private mutating func leave(
        _ file: Int, _ events: [recorded_event], ignoresSyncs: Bool,
        _ random: inout some RandomNumberGenerator
    ) {
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
            guard number >= synced, !isDurable.contains(number) else {
                put(bytes, at: Int(event.offset), in: file)
                continue
            }
            if Bool.random(using: &random) { present = max(present, Int(event.size)) }
            var wrote = true
            let keepsWhole = Double.random(in: 0..<1, using: &random) < share
            var start = 0
            while start < bytes.count {
                let place = Int(event.offset) + start
                let end = min(bytes.count, start + DiskImage.sector - place % DiskImage.sector)
                if isTorn ? Double.random(in: 0..<1, using: &random) < share : keepsWhole {
                    put(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), at: place, in: file)
                } else {
                    wrote = false
                }
                start = end
            }
            if !wrote { lost += 1 }
        }
        lengthen(file, to: present)
    }

    private mutating func put(_ bytes: UnsafeRawBufferPointer, at place: Int, in file: Int) {
        lengthen(file, to: place + bytes.count)
        files[file].withUnsafeMutableBytes { contents in
            UnsafeMutableRawBufferPointer(rebasing: contents[place...]).copyMemory(from: bytes)
        }
    }

    private mutating func lengthen(_ file: Int, to count: Int) {
        let missing = count - files[file].count
        if missing > 0 { files[file] += [UInt8](repeating: 0, count: missing) }
    }
}
