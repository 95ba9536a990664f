import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

@Suite("A storage that a snapshot takes the place of")
struct StorageReplacementTests {
    private let scratch = ScratchDirectory()

    private func name(_ text: String) throws -> CollaborationIdentifier { try #require(CollaborationIdentifier(text)) }

    /// A storage in a folder, with one collaboration. `log` gets its lines.
    private func storage(_ folder: String, _ log: Log = .none) throws -> RootSets {
        try RootSets(RootSets.Configuration(directory: scratch.path + "/" + folder), log: log)
    }

    private func made(_ folder: String) throws -> RootSets {
        let sets = try storage(folder)
        try sets.apply(Mutation(.createCollaboration(try name(folder), .challenge)))
        return sets
    }

    private func holds(_ sets: RootSets, _ text: String) throws -> Bool {
        let identifier = try name(text)
        return try sets.read { snapshot throws(ServiceError) in
            try identifier.utf8.withRawBytes { bytes throws(ServiceError) in try snapshot.collaboration(bytes) != nil }
        }
    }

    /// Writes a snapshot of a running storage, and returns the open file, at its beginning.
    private func snapshot(of sets: RootSets) throws -> CInt {
        let file = open(scratch.path + "/snapshot", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        _ = try sets.backUp(to: file, time: 1_700_000_000_000)
        lseek(file, 0, SEEK_SET)
        return file
    }

    @discardableResult
    private func replace(_ directory: String, by file: CInt) throws -> StorageRestore.Summary {
        try StorageReplacement.replace(in: directory, by: file) { _ in }
    }

    @Test("It has what the snapshot has, and no alarm, and leftovers of a replacement that was killed are gone")
    func replaced() throws {
        try made("old").close()
        let new = try made("new")
        let file = try snapshot(of: new)
        defer { close(file) }
        let directory = scratch.path + "/old"
        try FileManager.default.createDirectory(
            atPath: directory + "/replacing.restoring-abcdef", withIntermediateDirectories: false)
        #expect(try replace(directory, by: file).collaborations == 1)
        let lines = Lock<[String]>([])
        let log = Log { line in if line.level != .info { lines.withLock { $0.append(line.text) } } }
        let replaced = try storage("old", log)
        #expect(try holds(replaced, "new") && !holds(replaced, "old"))
        #expect(lines.withLock { $0 } == [])
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(!names.contains { $0.hasPrefix("replacing") }, "\(names)")
        replaced.close()
    }

    @Test("A snapshot that was cut leaves the storage as it is, and so does one for a storage in use")
    func refused() throws {
        var old: RootSets? = try made("old")
        let file = try snapshot(of: try made("new"))
        defer { close(file) }
        let directory = scratch.path + "/old"
        let isInUse = #expect(throws: ServiceError.self) { try replace(directory, by: file) }
        #expect(isInUse?.code == .storageInUse)
        old?.close()
        old = nil
        var status = stat()
        try #require(fstat(file, &status) == 0)
        lseek(file, 0, SEEK_SET)
        let isUnwanted = #expect(throws: ServiceError.self) {
            try StorageReplacement.replace(in: directory, by: file) { place throws(ServiceError) in
                // It shares no log.
                guard place == nil else { return }
                throw ServiceError(.storageFailed, "unwanted")
            }
        }
        #expect(isUnwanted?.reason == "unwanted")
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(!names.contains { $0.hasPrefix("replacing") }, "\(names)")
        try #require(ftruncate(file, status.st_size - 1) == 0)
        lseek(file, 0, SEEK_SET)
        let isCut = #expect(throws: ServiceError.self) { try replace(directory, by: file) }
        #expect(isCut?.code == .storageFailed || isCut?.code == .storageDamaged, "\(isCut.map { "\($0)" } ?? "")")
        let kept = try storage("old")
        #expect(try holds(kept, "old") && !holds(kept, "new"))
    }
}
