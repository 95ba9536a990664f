import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

/// A closed storage with some commits, whose files a test changes.
final class ClosedStorage {
    let scratch = ScratchDirectory()
    var folder: String { scratch.path + "/data" }
    /// The room that is reserved is small: tests copy the file often.
    private var configuration: RootSets.Configuration {
        RootSets.Configuration(directory: folder, reserveBytes: 1 << 20, logRetentionBytes: 1 << 20)
    }
    private let roots: [Digest]
    private static let page = 4096

    init(commits: Int = 5) throws {
        var random = SeededGenerator(seed: runSeed)
        roots = (0..<commits).map { _ in random.digest() }
        let sets = try RootSets(configuration, acceptsLoss: true)
        let name = try #require(CollaborationIdentifier("deck"))
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        for root in roots { try sets.apply(Mutation(.addRoots(name, [root]))) }
        sets.close()
    }

    func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name)))
    }

    func write(_ name: String, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: folder + "/" + name))
    }

    func change(_ name: String, _ body: (inout [UInt8]) -> Void) throws {
        var changed = try bytes(name)
        body(&changed)
        try write(name, changed)
    }

    func metaPages() throws -> (newer: MetaPage, older: MetaPage) {
        let data = try bytes("data.mdb")
        let pages = [0, 1].compactMap { MetaPage(Array(data[$0 * 4096..<$0 * 4096 + MetaPage.byteCount]), slot: $0) }
        try #require(pages.count == 2)
        return pages[0].transaction > pages[1].transaction ? (pages[0], pages[1]) : (pages[1], pages[0])
    }

    func firstMetaPage() throws -> MetaPage {
        try #require(MetaPage(Array(try bytes("data.mdb")[..<MetaPage.byteCount]), slot: 0))
    }

    /// Where a page's meta page is in the file.
    func offset(of page: MetaPage) -> Int { Int(page.transaction & 1) * ClosedStorage.page }

    /// How many of the roots are there, or why the storage does not open.
    func open() -> Result<Int, ServiceError> {
        for _ in 0..<5000 {
            do throws(ServiceError) {
                let sets = try RootSets(configuration, acceptsLoss: true)
                defer { sets.close() }
                let tests = try sets.read { snapshot throws(ServiceError) in
                    guard let name = CollaborationIdentifier("deck") else { return nil as [Bool]? }
                    return try snapshot.test(roots, in: name)
                }
                return .success(tests?.count { $0 } ?? 0)
            } catch {
                guard error.code == .storageInUse else { return .failure(error) }
                usleep(1000)
            }
        }
        return .failure(ServiceError(.storageInUse, "it stays in use"))
    }

    /// What the refusal says; `nil` unless it is refused as damaged.
    func refusal() -> String? {
        guard case .failure(let error) = open(), error.code == .storageDamaged else { return nil }
        return error.reason
    }

    /// How many of the roots are there; `nil` when the storage does not open.
    var rootCount: Int? { try? open().get() }
}
