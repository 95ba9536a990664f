import DiskImages
import FailingDisk
import Foundation

/// The disk below the service's data. A power cut takes away what the service has not made durable, the end of the
/// process within a commit what it has not written.
struct SimulatedDisk {
    private let paths: [String]
    /// The files' contents when the recording began, all of which is durable. A process that ends between two commits
    /// without a power cut ends no recording: the system still has what it has written.
    private var before: [[UInt8]] = []
    private var dice: Dice

    init(directory: String, seed: UInt64) {
        paths = ["data.mdb", "newest-commit"].map { "\(directory)/\($0)" }
        dice = Dice(seed, part: 3)
    }

    /// From now on what is done to the files, which must exist, is recorded.
    mutating func record() throws {
        before = try paths.map { Array(try Data(contentsOf: URL(fileURLWithPath: $0))) }
        guard failing_disk_follow(paths[0], paths[1]) == 0 else { throw Violation("files of the data are missing") }
    }

    /// How much was recorded until now.
    var moment: Int { failing_disk_events() }

    /// Leaves in the files what a disk may hold when the power is cut at that moment. The service must have ended.
    mutating func cutPower(at moment: Int) throws {
        try leave(DiskImage(before, events(until: moment), ignoresSyncs: false, &dice))
    }

    /// Leaves in the files what the system holds when the process has ended at that moment.
    func endProcess(at moment: Int) throws { try leave(DiskImage(before, written: events(until: moment))) }

    private func events(until moment: Int) -> [recorded_event] { (0..<moment).map { failing_disk_event($0) } }

    private func leave(_ image: DiskImage) throws {
        for (path, bytes) in zip(paths, image.files) { try Data(bytes).write(to: URL(fileURLWithPath: path)) }
    }
}
